"""What a job printed, as people read it: its last lines, without colours, secrets and what a progress bar wrote over.

The Jobs API of Ray gives a log whole or not at all, as one JSON string. It is decoded as it arrives, and no more of it
is held than is kept: a log may have any length. Lines keep their numbers, so that whoever read the first hundred can
ask for what came since.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LINES_KEPT = 5_000
CHARACTERS_KEPT = 400_000
TAIL = 8_000
"""Characters that are kept with an attempt which ended badly."""
LONGEST_LINE = 4_000
"""Characters of a line; of a longer one its beginning is kept."""
CUT = "... (cut here)"
_MOST_UNFINISHED = 64_000  # characters of a line without an end: a progress bar may write for hours

_RAY_SAYS = re.compile(r"^(Running entrypoint for job |.*\bjob_manager\.py:\d+ -- )")
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SECRET = re.compile(r"\bfc_(ingest|api|session|login)_[\w-]{8,}")

_LOGS = re.compile(r'\s*\{\s*"logs"\s*:\s*"')
_WHOLE = re.compile(r'(?:[^"\\]+|\\[^u]|\\u[0-9a-fA-F]{4})*+')
"""As much of a JSON string as ends between two characters."""


@dataclass(frozen=True)
class JobLog:
    """The last lines of a job's output.

    Attributes:
        first: how many lines came before `lines`.
        lines: those that are whole, oldest first.
        unfinished: what came after the last of them.
    """

    first: int
    lines: tuple[str, ...]
    unfinished: str = ""

    @property
    def ended(self) -> JobLog:
        """As it is when nothing more will come: the last line is whole without an end."""
        return JobLog(self.first, (*self.lines, self.unfinished)) if self.unfinished else self

    def tail(self, characters: int = TAIL) -> str:
        """The last whole lines of so many characters together.

        >>> JobLog(7, ("one", "two", "three"), "fo").tail(12)
        'two\\nthree\\nfo'
        """
        kept: deque[str] = deque()
        left = characters + 1
        for line in reversed(self.ended.lines):
            left -= len(line) + 1
            if left < 0 and kept:
                break
            kept.appendleft(line)
        return "\n".join(kept).strip()[-characters:]


def job_log(pieces: Iterable[str]) -> JobLog:
    """The log of a text that comes in pieces, cut anywhere."""
    kept = _Kept()
    unfinished = ""
    for piece in pieces:
        *lines, unfinished = (unfinished + piece).split("\n")
        for line in lines:
            kept.add(line)
        unfinished = _shortened(unfinished)
    last = tidy_line(unfinished)
    return JobLog(kept.before, tuple(kept.lines), "" if _is_rays(last) else last)


def decoded(body: Iterable[bytes]) -> Iterator[str]:
    """The text of `{"logs": "..."}`, in pieces as they come.

    Raises:
        ValueError: the body is something else.
    """
    utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest, begun = "", False
    for chunk in body:
        rest += utf8.decode(chunk)
        if not begun:
            found = _LOGS.match(rest)
            if found is None:
                if len(rest) > 1000:
                    break
                continue
            rest, begun = rest[found.end() :], True
        whole = _whole(rest)
        yield json.loads(f'"{rest[:whole]}"', strict=False)
        rest = rest[whole:]
        if rest.startswith('"'):
            return
    raise ValueError("no log, or one that breaks off")


def tidy_line(line: str) -> str:
    """One line for people: what a carriage return wrote over is gone, and so is what Postgres does not keep as text."""
    shown = line.rstrip("\r").rpartition("\r")[2]
    text = _SECRET.sub(r"fc_\1_...", _ANSI.sub("", _storable(shown)).rstrip())
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]} {CUT}"


def _storable(text: str) -> str:
    """Without NULs and halves of surrogate pairs; halves that belong together are one character again."""
    text = text.replace("\x00", "")
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_rays(line: str) -> bool:
    return bool(_RAY_SAYS.match(line))


def _whole(text: str) -> int:
    found = _WHOLE.match(text)
    return found.end() if found else 0


def _shortened(unfinished: str) -> str:
    """Of a line that goes on and on, what it will be told by."""
    if len(unfinished) <= _MOST_UNFINISHED:
        return unfinished
    shown = unfinished.rstrip("\r")
    return shown.rpartition("\r")[2][: _MOST_UNFINISHED // 2] + ("\r" if shown != unfinished else "")


class _Kept:
    """The newest lines, and how many came before them."""

    def __init__(self) -> None:
        self.before = 0
        self.lines: deque[str] = deque()
        self._characters = 0

    def add(self, line: str) -> None:
        text = tidy_line(line)
        if _is_rays(text):
            return
        self.lines.append(text)
        self._characters += len(text) + 1
        while len(self.lines) > LINES_KEPT or self._characters > CHARACTERS_KEPT:
            self._characters -= len(self.lines.popleft()) + 1
            self.before += 1
