"""The disk spool: what was logged is on disk before it is sent, and stays there until the service took it.

A directory per attempt:

    queue.jsonl     one entry a line: {"n": 7, "kind": "metrics", "body": {...}}
    settled.json    {"n": last entry that needs no sending, "seq": last batch number given}
    rejected.jsonl  entries that the service refused, with its answer

An entry is replayed with the same body and the same batch number, so the service can tell a replay from news.
"""

from __future__ import annotations

import json
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

COMPACT_BYTES = 4 << 20
"""A queue whose entries are all settled is emptied once it is larger than this."""


@dataclass(frozen=True)
class Entry:
    """One thing to send: `kind` is metrics, checkpoint or outcome; `n` counts entries of the attempt from 1."""

    n: int
    kind: str
    body: dict[str, Any]


class Spool:
    """An append-only queue on disk. One thread of one process uses it at a time.

    Args:
        directory: made when missing; holds one attempt.
        limit_bytes: above this size `is_full` is true, and the caller should leave out what it can spare.
    """

    def __init__(self, directory: Path, *, limit_bytes: int = 256 << 20):
        self.directory = directory
        self.limit_bytes = limit_bytes
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / "queue.jsonl"
        self._settled_path = directory / "settled.json"
        settled = _read_settled(self._settled_path)
        self._settled, self._last_seq = settled["n"], settled["seq"]
        self._last_n = self._settled
        self._waiting: deque[tuple[int, int]] = deque()  # (entry number, offset in the file)
        self._size = 0
        self._file: BinaryIO = self._recover()

    @property
    def waiting(self) -> int:
        """Entries not settled yet."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self._size >= self.limit_bytes

    def seal_batch(self, body: dict[str, Any]) -> Entry:
        """Number a metric batch and put it on disk."""
        self._last_seq += 1
        return self.seal("metrics", body | {"seq": self._last_seq})

    def seal(self, kind: str, body: dict[str, Any]) -> Entry:
        """Put an entry on disk (fsync) and in the queue."""
        entry = Entry(self._last_n + 1, kind, body)
        line = (
            json.dumps({"n": entry.n, "kind": kind, "body": body}, separators=(",", ":"), allow_nan=False).encode()
            + b"\n"
        )
        offset = self._size
        self._file.seek(offset)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._size += len(line)
        self._last_n = entry.n
        self._waiting.append((entry.n, offset))
        return entry

    def first(self) -> Entry | None:
        """The oldest entry not settled, or None."""
        if not self._waiting:
            return None
        self._file.seek(self._waiting[0][1])
        return _parse(self._file.readline())

    def settle(self, entry: Entry) -> None:
        """The service has it (or it was put aside): never send it again."""
        self._settled = entry.n
        while self._waiting and self._waiting[0][0] <= entry.n:
            self._waiting.popleft()
        self._write_settled()
        if not self._waiting and self._size > COMPACT_BYTES:
            self._file.truncate(0)
            self._size = 0

    def reject(self, entry: Entry, answer: dict[str, Any]) -> None:
        """Put an entry aside with the service's answer, and go on with the next."""
        self.put_aside({"n": entry.n, "kind": entry.kind, "body": entry.body}, answer)
        self.settle(entry)

    def put_aside(self, thing: dict[str, Any], answer: dict[str, Any]) -> None:
        """Append to rejected.jsonl; nothing that was logged is lost silently."""
        line = json.dumps(thing | {"answer": answer}, separators=(",", ":"), default=repr)
        with (self.directory / "rejected.jsonl").open("a") as file:
            file.write(line + "\n")

    def close(self) -> None:
        self._file.close()

    def _recover(self) -> BinaryIO:
        """Open the queue, find what is still to be sent, cut off a line that a crash left half-written."""
        file = self._path.open("r+b") if self._path.exists() else self._path.open("w+b")
        offset = 0
        for line in file:
            if not line.endswith(b"\n") or (entry := _parse(line)) is None:
                break
            if entry.n > self._settled:
                self._waiting.append((entry.n, offset))
            self._last_n = max(self._last_n, entry.n)
            self._last_seq = max(self._last_seq, int(entry.body.get("seq", 0)))
            offset += len(line)
        file.truncate(offset)
        self._size = offset
        return file

    def _write_settled(self) -> None:
        temporary = self._settled_path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"n": self._settled, "seq": self._last_seq}))
        temporary.replace(self._settled_path)


def _read_settled(path: Path) -> dict[str, int]:
    try:
        body = json.loads(path.read_text())
        return {"n": int(body["n"]), "seq": int(body["seq"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"n": 0, "seq": 0}


def _parse(line: bytes) -> Entry | None:
    try:
        body = json.loads(line)
        return Entry(body["n"], body["kind"], body["body"])
    except (ValueError, KeyError, TypeError):
        return None
