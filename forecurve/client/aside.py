"""What is not to be sent, with the reason: a file of one line each, in which a process that was killed puts nothing
twice."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

_BLOCK = 1 << 16


class Aside:
    """Lines that are added to a file; any thread may call it. It is made when there is something to put into it."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.RLock()  # held for no fsync, and no reading: the training loop puts aside too
        self._once = threading.RLock()
        self._known: set[bytes] | None = None

    def add(self, thing: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Append a thing with the reason why it stands here."""
        with self._lock:
            self._append(_json(dict(thing)), answer)

    def add_once(self, thing: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Append a thing unless it stands here, and wait for the disk: whoever noted then that it is done with may
        have been killed before he could, and so may his machine after it."""
        told = _json(dict(thing))
        with self._once:
            if self._known is None:
                self._known = self._read()
            if _mark(told) not in self._known:
                with self._lock:
                    self._append(told, answer)
                self._known.add(_mark(told))
        with self.path.open("rb") as file:
            os.fsync(file.fileno())

    def _append(self, told: str, answer: Mapping[str, Any]) -> None:
        line = f'{told[:-1]},"answer":{_json(dict(answer))}}}\n'.encode()
        with self.path.open("a+b", buffering=0) as file:
            end = _cut(file)
            try:
                while line:
                    line = line[file.write(line) :]
            except OSError:
                with suppress(OSError):
                    file.truncate(end)  # what a full disk took of it
                raise

    def _read(self) -> set[bytes]:
        """The marks of all that stands here."""
        if not self.path.exists():
            return set()
        with self.path.open("rb") as file:
            return {_mark(told) for line in file if (told := _thing_of(line)) is not None}


def _cut(file: FileIO) -> int:
    """Cut off a line that a crash left half-written, and answer where the file ends then."""
    size = end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - _BLOCK)
        if whole := os.pread(file.fileno(), end - begin, begin).rfind(b"\n") + 1:
            end = begin + whole
            break
        end = begin
    if end < size:
        file.truncate(end)
    return end


def _thing_of(line: bytes) -> str | None:
    """What a line says, without the answer."""
    try:
        thing = json.loads(line)
        del thing["answer"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return _json(thing)


def _mark(told: str) -> bytes:
    return hashlib.sha256(told.encode()).digest()


def _json(thing: dict[str, Any]) -> str:
    return json.dumps(thing, separators=(",", ":"), default=repr)
