"""A file of JSON lines that is only ever whole lines, on a disk that may fill up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trainer.errors import TrainerError
from trainer.terminal import say

MOST_WAITING = 10_000
"""Lines kept in memory while the disk refuses; with more the run ends, for its curve would have a hole."""


class JsonLines:
    """Appends lines. What the disk refuses waits in memory and is written with the next line."""

    def __init__(self, path: Path):
        self.path = path
        self._waiting: list[str] = []
        self.size = path.stat().st_size if path.exists() else 0

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line.

        Raises:
            TrainerError: the disk has refused so many lines that some would have to be forgotten.
        """
        self._waiting.append(json.dumps(line, allow_nan=False) + "\n")
        if not self._write() and len(self._waiting) > MOST_WAITING:
            raise TrainerError(f"{self.path} could not be written for {MOST_WAITING} lines; free the disk and resume")

    def sync(self) -> int:
        """Length of the file in bytes, all of it on disk; 0 when there is none."""
        if not self._write() or not self.path.exists():
            return self.size
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
        return self.size

    def cut(self, size: int) -> None:
        """Forget all beyond `size` bytes. A file that is shorter (lost with its disk) keeps its whole lines."""
        self._waiting = []
        if not self.path.exists():
            self.size = 0
            return
        body = self.path.read_bytes()[:size]
        self.size = body.rfind(b"\n") + 1
        os.truncate(self.path, self.size)

    def settle(self) -> None:
        """Write what waits.

        Raises:
            TrainerError: the disk still refuses.
        """
        if not self._write():
            lost = len(self._waiting)
            raise TrainerError(f"the last {lost} lines of {self.path} could not be written; free the disk and resume")

    def last(self, wanted: Callable[[dict[str, Any]], bool] = lambda line: True) -> dict[str, Any] | None:
        """The last whole line that is `wanted`; None without one. What was cut off in the middle of a write is none."""
        lines = self.path.read_bytes().split(b"\n")[:-1] if self.path.exists() else []
        parsed = (dict(json.loads(line)) for line in reversed(lines))
        return next((line for line in parsed if wanted(line)), None)

    def _write(self) -> bool:
        if not self._waiting:
            return True
        try:
            with self.path.open("ab") as file:
                file.write("".join(self._waiting).encode())
        except OSError as error:
            self._undo(error)
            return False
        self.size += sum(len(line.encode()) for line in self._waiting)
        self._waiting = []
        return True

    def _undo(self, error: OSError) -> None:
        """Take back half a line; say so once for every run of refusals."""
        if len(self._waiting) == 1:
            say(f"{self.path} cannot be written ({error}); its lines wait in memory", sys.stderr)
        if self.path.exists():
            os.truncate(self.path, self.size)
