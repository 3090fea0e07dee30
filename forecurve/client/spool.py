"""The disk spool: what was logged is on disk before it is sent, and stays there until the service took it.

A directory per attempt:

    queue.jsonl     one entry a line: {"n": 7, "kind": "metrics", "body": {...}}
    settled.json    {"place": of the last entry that needs no sending, "seq": last batch number given}
    rejected.jsonl  entries that the service refused, with its answer

An entry is replayed with the same body and the same batch number, so the service can tell a replay from news. A batch
that was refused is divided: its halves are written at the end of the file, "of" the entry whose place they take.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right, insort
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

COMPACT_BYTES = 4 << 20
"""A queue whose entries are all settled is emptied once it is larger than this."""
MAX_DIVISIONS = 200
"""Of one batch: enough to part each of its evaluations from all others; a flood of faults must not become a flood of
requests."""

Place = tuple[int, int]


@dataclass(frozen=True)
class Entry:
    """One thing to send: `kind` is metrics, checkpoint or outcome; `n` counts entries of the attempt from 1; `of` is
    the entry that this one is a part of."""

    n: int
    kind: str
    body: dict[str, Any]
    of: int | None = None

    @property
    def place(self) -> Place:
        """Where it stands in the queue."""
        return (self.n, 0) if self.of is None else (self.of, self.n)


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
        self._settled, self._last_seq = _read_settled(self._settled_path)
        self._last_n = max(self._settled)
        self._divisions = (0, 0)  # (entry, how often it was divided)
        self._waiting: list[tuple[Place, int]] = []  # with the offset in the file, in order of place
        self._size = 0
        self._file: BinaryIO = self._recover()

    @property
    def rejected(self) -> Path:
        """Where refused entries are kept."""
        return self.directory / "rejected.jsonl"

    @property
    def waiting(self) -> int:
        """Entries not settled yet."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self._size >= self.limit_bytes

    def seal_batch(self, body: dict[str, Any], of: int | None = None) -> Entry:
        """Number a metric batch and put it on disk."""
        self._last_seq += 1
        return self.seal("metrics", body | {"seq": self._last_seq}, of)

    def seal(self, kind: str, body: dict[str, Any], of: int | None = None) -> Entry:
        """Put an entry on disk (fsync) and in the queue.

        Raises:
            TypeError, ValueError: the body is nothing that JSON has. Nothing is written then.
        """
        entry = Entry(self._last_n + 1, kind, body, of)
        line = _line(entry)
        offset = self._size
        self._file.seek(offset)
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._size += len(line)
        self._last_n = entry.n
        insort(self._waiting, (entry.place, offset))
        return entry

    def first(self) -> Entry | None:
        """The oldest entry not settled, or None."""
        if not self._waiting:
            return None
        self._file.seek(self._waiting[0][1])
        return _parse(self._file.readline())

    def settle(self, entry: Entry) -> None:
        """The service has it (or it was put aside): never send it again."""
        self._settled = entry.place
        del self._waiting[: bisect_right(self._waiting, entry.place, key=lambda waiting: waiting[0])]
        self._write_settled()
        if not self._waiting and self._size > COMPACT_BYTES:
            self._file.truncate(0)
            self._size = 0

    def divide(self, entry: Entry) -> bool:
        """Let two halves take the place of a batch, so that only what is at fault is refused; false when it is not to
        be divided any further."""
        root = entry.of or entry.n
        divisions = self._divisions[1] if self._divisions[0] == root else 0
        halves = _halves(entry.body) if entry.kind == "metrics" and divisions < MAX_DIVISIONS else []
        if not halves:
            return False
        for half in halves:
            self.seal_batch(half, of=root)
        self._divisions = root, divisions + 1
        self.settle(entry)
        return True

    def reject(self, entry: Entry, answer: dict[str, Any]) -> None:
        """Put an entry aside with the service's answer, and go on with the next."""
        self.put_aside({"n": entry.n, "kind": entry.kind, "body": entry.body}, answer)
        self.settle(entry)

    def put_aside(self, thing: dict[str, Any], answer: dict[str, Any]) -> None:
        """Append to rejected.jsonl; nothing that was logged is lost silently."""
        line = json.dumps(thing | {"answer": answer}, separators=(",", ":"), default=repr)
        with self.rejected.open("a") as file:
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
            if entry.place > self._settled:
                insort(self._waiting, (entry.place, offset))
            self._last_n = max(self._last_n, entry.n)
            self._last_seq = max(self._last_seq, int(entry.body.get("seq", 0)))
            offset += len(line)
        file.truncate(offset)
        self._size = offset
        return file

    def _write_settled(self) -> None:
        temporary = self._settled_path.with_suffix(".tmp")
        temporary.write_text(json.dumps({"place": self._settled, "seq": self._last_seq}))
        temporary.replace(self._settled_path)


def _read_settled(path: Path) -> tuple[Place, int]:
    try:
        body = json.loads(path.read_text())
        n, part = body["place"]
        return (int(n), int(part)), int(body["seq"])
    except (OSError, ValueError, KeyError, TypeError):
        return (0, 0), 0


def _line(entry: Entry) -> bytes:
    body: dict[str, Any] = {"n": entry.n, "kind": entry.kind, "body": entry.body}
    if entry.of is not None:
        body["of"] = entry.of
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _parse(line: bytes) -> Entry | None:
    try:
        body = json.loads(line)
        return Entry(body["n"], body["kind"], body["body"], body.get("of"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _halves(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """The two halves of a batch; none of a batch with one report."""
    points, evaluations = batch["points"], batch["evaluations"]
    if points and evaluations:
        return [{"points": [], "evaluations": evaluations}, {"points": points, "evaluations": []}]
    several = "points" if points else "evaluations"
    middle = len(batch[several]) // 2
    empty: dict[str, Any] = {"points": [], "evaluations": []}
    return [empty | {several: part} for part in (batch[several][:middle], batch[several][middle:])] if middle else []
