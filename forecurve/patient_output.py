"""Output whose writer never waits for its reader, who may read no further for a while: Ctrl-S stops a terminal,
`... 2>&1 | less` a pipe."""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TextIO, cast

MOST_HELD = 1 << 20
"""Characters that are kept for somebody who reads no further: some ten thousand lines."""
_MOST_BEGUN = 1 << 13  # characters of a line that are kept until it ends


def patient(stream: TextIO, on_error: Callable[[OSError], None] = lambda error: None) -> TextIO:
    """The stream as one that makes nobody wait; itself where it does not anyway, as a file.

    Args:
        on_error: told why the stream takes no more. What is held then is gone.
    """
    try:
        kind = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # none at all (`2>&-`), a test's, or one that is closed
        return stream
    may_wait = stat.S_ISFIFO(kind) or stat.S_ISCHR(kind) or stat.S_ISSOCK(kind)
    return cast(TextIO, PatientOutput(stream, on_error)) if may_wait else stream


def leave(stream: TextIO, within_s: float) -> None:
    """Give the reader of a patient stream so long to read what is held; who writes to it then waits as everybody."""
    if isinstance(stream, PatientOutput):
        stream.leave(within_s)


def is_behind(stream: TextIO, by: int = 0) -> bool:
    """Whether more than so many characters that were written to it are not read yet."""
    return isinstance(stream, PatientOutput) and stream.size > by


class PatientOutput:
    """Holds what is not read yet, up to a bound, and counts the lines beyond it. A thread of its own hands them on.

    A line is handed on as a whole, for others may write there too; its beginning where it is flushed. Whatever else one
    asks of it, such as its encoding, is that of the stream.
    """

    def __init__(self, stream: TextIO, on_error: Callable[[OSError], None]):
        self._stream, self._on_error = stream, on_error
        self._forget()
        self._is_through = False
        self._thread = threading.Thread(target=self._hand_on, name="forecurve-output", daemon=True)
        self._thread.start()
        os.register_at_fork(after_in_child=self._forked)

    def _forget(self) -> None:
        self._begun: list[str] = []  # of a line
        self._held: deque[str] = deque()
        self._size = self._lines_left_out = 0
        self._changed = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def size(self) -> int:
        """Characters that are held."""
        return self._size

    def write(self, text: str) -> int:
        if self._is_through:
            return self._stream.write(text)
        with self._changed:
            self._begun.append(text)
            if "\n" in text or "\r" in text or len(text) > _MOST_BEGUN or len(self._begun) > _MOST_BEGUN:
                self._end_line()
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """What is held is handed on as soon as somebody reads."""
        if self._is_through:
            self._stream.flush()
            return
        with self._changed:
            self._end_line()

    def leave(self, within_s: float) -> None:
        with self._changed:
            self._end_line()
            self._changed.wait_for(lambda: not self._size and not self._lines_left_out, within_s)
            self._is_through = True

    def _end_line(self) -> None:
        text = "".join(self._begun)
        self._begun.clear()
        if self._size and self._size + len(text) > MOST_HELD:
            self._lines_left_out += text.count("\n")
        elif text:
            self._hold(text)

    def _hold(self, text: str) -> None:
        if count := self._lines_left_out:
            what = "1 line is" if count == 1 else f"{count} lines are"
            text = f"({what} left out: too many were not read)\n{text}"
            self._lines_left_out = 0
        self._held.append(text)
        self._size += len(text)
        self._changed.notify_all()

    def _hand_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._held or self._lines_left_out))
                if not self._held:
                    self._hold("")  # all is read that was held, so what was left out is told now
                text = self._held.popleft()
            try:
                self._write(text)
            except OSError as error:
                self._on_error(error)
            except ValueError:  # somebody has closed it
                pass
            with self._changed:
                self._size -= len(text)
                self._changed.notify_all()

    def _write(self, text: str) -> None:
        """Past the stream's own buffer, whose lock the end of the interpreter would wait for."""
        left = memoryview(text.encode(self._stream.encoding or "utf-8", "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._stream.fileno(), left) :]
            except BlockingIOError:  # whoever shares the terminal has made it so
                select.select([], [self._stream.fileno()], [])

    def _forked(self) -> None:
        """Another process has no such thread, and what is held is not its own."""
        self._forget()
        self._is_through = True
        if sys.stderr is cast(TextIO, self):
            sys.stderr = self._stream
