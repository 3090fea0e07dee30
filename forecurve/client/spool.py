"""The disk spool: what was logged is on disk before it is sent, and stays there until the service took it.

A directory per attempt:

    queue.jsonl     one entry a line: {"n": 7, "kind": "metrics", "body": {...}}
    settled.json    {"place": of the last entry that needs no sending, "seq": last batch number given}
    rejected.jsonl  entries that the service refused, with its answer, and lines of the queue that were damaged: each
                    once, though a process may be killed before it notes in settled.json that it put one there
    writer.lock     locked by the process that writes here, which it names

An entry is replayed with the same body and the same batch number, so the service can tell a replay from news. A batch
that was refused is divided: its halves are written at the end of the file, "of" the entry whose place they take and
"half_of" the one that was divided. Where both are there, that one is not sent again; a half without the other never is.
A damaged line leaves an entry of kind "damaged" behind, and a large queue that was all taken one of kind "emptied":
they keep numbers from being given again.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from .aside import Aside
from .lock import WriterLock

log = logging.getLogger("forecurve")

KINDS = frozenset({"metrics", "checkpoint", "outcome"})
"""Of the entries that are sent."""
COMPACT_BYTES = 4 << 20
"""A queue whose entries are all settled is emptied once it is larger than this."""
MAX_DIVISIONS = 200
"""Of one batch: enough to part each of its evaluations from all others; a flood of faults must not become a flood of
requests."""

Place = tuple[int, int]
Waiting = tuple[Place, int, int]
"""An entry's place in the queue; where its line begins in the file, and how long it is."""


@dataclass(frozen=True)
class Entry:
    """One thing to send: `kind` is metrics, checkpoint or outcome; `n` counts entries of the attempt from 1; `of` is
    the entry that this one is a part of, `half_of` the part of that which was divided last."""

    n: int
    kind: str
    body: dict[str, Any]
    of: int | None = None
    half_of: int | None = None

    @property
    def place(self) -> Place:
        """Where it stands in the queue."""
        return (self.n, 0) if self.of is None else (self.of, self.n)

    @property
    def whole(self) -> Place | None:
        """The place of what it is a half of."""
        if self.of is None or self.half_of is None:
            return None
        return (self.of, 0 if self.half_of == self.of else self.half_of)


class Spool:
    """An append-only queue on disk. One Spool at a time has a directory; any thread may call it.

    Args:
        directory: made when missing; holds one attempt.
        limit_bytes: above this size `is_full` is true, and the caller should leave out what it can spare.
        lock: that of the directory, where the caller holds it already; from here on it is the spool's to release.

    Raises:
        InUse: another process, or another Spool of this one, writes there.
        OSError: the directory cannot be written.
    """

    def __init__(self, directory: Path, *, limit_bytes: int = 256 << 20, lock: WriterLock | None = None):
        self.directory = directory
        self.limit_bytes = limit_bytes
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = lock or WriterLock(directory)
        self._lock = threading.RLock()
        self._aside = Aside(directory / "rejected.jsonl")
        self._closed = False
        self._path = directory / "queue.jsonl"
        self._settled_path = directory / "settled.json"
        self._settled, self._last_seq = _read_settled(self._settled_path)
        self._last_n = max(self._settled)
        self._divisions = (0, 0)  # (entry, how often it was divided)
        self._waiting: list[Waiting] = []  # in order of place
        self._size = 0
        self._recover()
        self._file = self._opened()

    @property
    def rejected(self) -> Path:
        """Where refused entries are kept."""
        return self._aside.path

    @property
    def waiting(self) -> int:
        """Entries not settled yet."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return self._size >= self.limit_bytes

    def seal_batch(self, body: dict[str, Any]) -> Entry:
        """Number a metric batch and put it on disk."""
        return self._seal_batches([body])[0]

    def seal(self, kind: str, body: dict[str, Any]) -> Entry:
        """Put an entry on disk (fsync) and in the queue.

        Raises:
            TypeError, ValueError: the body is nothing that JSON has. Nothing is written then.
        """
        with self._lock:
            entry = Entry(self._last_n + 1, kind, body)
            self._put([entry])
            return entry

    def first(self) -> Entry | None:
        """The oldest entry not settled, or None."""
        with self._lock:
            while self._waiting and not self._closed:
                place, offset, length = self._waiting[0]
                self._file.seek(offset)
                line = self._file.read(length)
                entry = _parse(line)
                if entry is not None and entry.place == place:
                    return entry
                self._put_line_aside(line)  # damaged since it was written: what comes after it must not wait
                del self._waiting[0]
            return None

    def settle(self, entry: Entry) -> None:
        """The service has it (or it was put aside): never send it again. Nothing, once the spool was closed."""
        with self._lock:
            if self._closed:
                return
            self._settled = entry.place
            del self._waiting[: bisect_right(self._waiting, entry.place, key=lambda waiting: waiting[0])]
            self._write_settled()
            if not self._waiting and self._size > COMPACT_BYTES and entry.kind != "outcome":  # whoever resumes reads it
                self._empty()

    def divide(self, entry: Entry) -> bool:
        """Let two halves take the place of a batch, so that only what is at fault is refused; false when it is not to
        be divided any further."""
        with self._lock:
            root = entry.of or entry.n
            divisions = self._divisions[1] if self._divisions[0] == root else 0
            halves = _halves(entry.body) if entry.kind == "metrics" and divisions < MAX_DIVISIONS else []
            if not halves:
                return False
            self._seal_batches(halves, of=root, half_of=entry.n)
            self._divisions = root, divisions + 1
            self.settle(entry)
            return True

    def reject(self, entry: Entry, answer: dict[str, Any]) -> None:
        """Put an entry aside with the service's answer, once however often it is refused, and go on with the next."""
        self._aside.add_once({"n": entry.n, "kind": entry.kind, "body": entry.body}, answer)
        self.settle(entry)

    def put_aside(self, thing: dict[str, Any], answer: dict[str, Any]) -> None:
        """Append to rejected.jsonl; nothing that was logged is lost silently."""
        self._aside.add(thing, answer)

    def close(self) -> None:
        """Write no more, and let others write."""
        with self._lock:
            self._closed = True
            self._file.close()
            self._writer.release()

    def discard(self) -> None:
        """Close a spool that nothing was put into, and remove its folder: nobody is to find it."""
        with self._lock:
            if not (self._size or self._waiting or self.rejected.exists()):
                shutil.rmtree(self.directory, ignore_errors=True)
            self.close()

    def _seal_batches(self, bodies: Sequence[dict[str, Any]], **parts: int) -> list[Entry]:
        """Number batches and put them on disk: all of them, or none where the disk refuses."""
        with self._lock:
            numbered = enumerate(bodies, 1)
            entries = [
                Entry(self._last_n + place, "metrics", body | {"seq": self._last_seq + place}, **parts)
                for place, body in numbered
            ]
            self._put(entries)
            self._last_seq += len(entries)
            return entries

    def _put(self, entries: Sequence[Entry]) -> None:
        lines = [_line(entry) for entry in entries]
        offset = self._append(b"".join(lines))
        for entry, line in zip(entries, lines, strict=True):
            insort(self._waiting, (entry.place, offset, len(line)))
            offset += len(line)
        self._last_n = entries[-1].n

    def _empty(self) -> None:
        """Leave nothing in the queue but the numbers that were given: a crash of the machine may cost the other note of
        them."""
        line = _line(Entry(self._last_n, "emptied", {"seq": self._last_seq}))
        self._write_anew([line])
        self._file.close()
        self._file, self._size = self._opened(), len(line)

    def _append(self, lines: bytes) -> int:
        """Write lines at the end and wait for the disk; where the first begins."""
        end = self._file.seek(0, os.SEEK_END)
        if end > self._size:
            self._file.truncate(self._size)  # the part that a full disk took
        offset = min(end, self._size)
        try:
            self._write(lines)
        except OSError:
            with suppress(OSError):
                self._file.truncate(offset)  # a half of a batch without the other would be sent beside the whole
            raise
        self._size = offset + len(lines)
        return offset

    def _write(self, lines: bytes) -> None:
        left = memoryview(lines)
        while left:
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def _opened(self) -> FileIO:
        return self._path.open("a+b", buffering=0)  # appending: no other process can make it leave a hole

    def _write_anew(self, lines: Iterable[bytes]) -> None:
        """Replace the queue; a crash leaves the old one or the new one."""
        temporary = self._path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _recover(self) -> None:
        """Find what is still to be sent, put damaged lines aside, cut off a line that a crash left half-written."""
        if not self._path.exists():
            return
        if self._load():
            self._bury_damaged()
            self._load()
        if self._path.stat().st_size > self._size:
            os.truncate(self._path, self._size)

    def _load(self) -> bool:
        """Read the queue up to a last line without an end; true when a line in it is damaged."""
        self._waiting, self._size = [], 0
        damaged = False
        halves: dict[Place, list[Place]] = {}  # by what was divided
        with self._path.open("rb") as file:
            for line in _whole_lines(file):
                entry = _parse(line)
                damaged |= entry is None
                if entry is not None:
                    self._note(entry, len(line))
                if entry is not None and entry.whole is not None:
                    halves.setdefault(entry.whole, []).append(entry.place)
                self._size += len(line)
        for whole, places in halves.items():
            self._leave_one_of(whole, places)
        return damaged

    def _leave_one_of(self, whole: Place, halves: Sequence[Place]) -> None:
        """Of a batch that waits beside its halves, because its process ended before it could note that it divided it,
        let only them be sent; or only the batch, where one of them is missing."""
        if any(place == whole for place, *_ in self._waiting):
            gone = {whole} if len(halves) == 2 else set(halves)
            self._waiting = [waiting for waiting in self._waiting if waiting[0] not in gone]

    def _note(self, entry: Entry, length: int) -> None:
        """Count an entry of the queue, which begins at the size so far."""
        if entry.kind in KINDS and entry.place > self._settled:
            insort(self._waiting, (entry.place, self._size, length))
        self._last_n = max(self._last_n, entry.n)
        self._last_seq = max(self._last_seq, _seq(entry))

    def _bury_damaged(self) -> None:
        """Put damaged lines aside and write the queue anew, with an entry in each one's place that keeps its numbers:
        the service may have seen them, and takes none twice."""
        with self._path.open("rb") as file:
            self._write_anew(self._mended(file))

    def _mended(self, file: BinaryIO) -> Iterator[bytes]:
        n, seq = max(self._settled), self._last_seq
        for line in _whole_lines(file):
            entry = _parse(line)
            if entry is None:
                entry = Entry(n + 1, "damaged", {"seq": seq + 1})
                if entry.place > self._settled:
                    self._put_line_aside(line)
                line = _line(entry)
            yield line
            n, seq = max(n, entry.n), max(seq, _seq(entry))

    def _put_line_aside(self, line: bytes) -> None:
        text = line.decode("utf-8", "backslashreplace").rstrip("\n")
        self._aside.add_once({"line": text}, {"detail": "this line of queue.jsonl is damaged", "by": "client"})
        log.warning("forecurve: a report in %s is damaged; it is kept in %s", self._path, self.rejected)

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
        body |= {"of": entry.of, "half_of": entry.half_of}
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    return (line for line in file if line.endswith(b"\n"))


def _parse(line: bytes) -> Entry | None:
    """The entry of a line; None when the line is damaged."""
    try:
        body = json.loads(line)
        entry = Entry(body["n"], body["kind"], body["body"], body.get("of"), body.get("half_of"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return entry if _holds(entry) else None


def _holds(entry: Entry) -> bool:
    numbers = isinstance(entry.n, int) and isinstance(entry.of, int | None) and isinstance(entry.half_of, int | None)
    return numbers and entry.kind in KINDS | {"damaged", "emptied"} and isinstance(entry.body, dict)


def _seq(entry: Entry) -> int:
    """The number of its batch; 0 when it is none."""
    seq = entry.body.get("seq", 0)
    return seq if isinstance(seq, int) else 0


def _halves(batch: dict[str, Any]) -> list[dict[str, Any]]:
    """The two halves of a batch; none of a batch with one report."""
    points, evaluations = batch["points"], batch["evaluations"]
    if points and evaluations:
        return [{"points": [], "evaluations": evaluations}, {"points": points, "evaluations": []}]
    several = "points" if points else "evaluations"
    middle = len(batch[several]) // 2
    empty: dict[str, Any] = {"points": [], "evaluations": []}
    return [empty | {several: part} for part in (batch[several][:middle], batch[several][middle:])] if middle else []
