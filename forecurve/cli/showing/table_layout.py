"""How a table is put on lines of a given width: as columns while they fit, else a block a row. Pure.

Columns give way in this order: long text is folded between its words, then the columns that can be spared are left
out, and where the rest is still too wide every row becomes a block that has all of them again. An id is never folded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2
SHORT = 24
"""Columns up to this wide are not folded: figures, intervals, states."""
LEAST = 16
"""To which a column of longer text may be folded."""
INDENT = 2

_ID = re.compile(r"[a-z]{2,4}_[0-9a-z]{20,}")
_SEAM = re.compile(r"[-/_.,:;=]")
"""After one of these a word may be divided."""

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Laid:
    """The lines of a table. `header` counts those at the top that head columns; `left_out` names columns that found no
    place."""

    lines: list[str]
    header: int
    left_out: list[str]


def lay_out(
    columns: Sequence[str], rows: Rows, *, width: int | None, right: Sequence[str] = (), spare: Sequence[str] = ()
) -> Laid:
    """The table on lines of `width` cells (None: as wide as it comes).

    Args:
        right: columns that are aligned to the right, and not folded.
        spare: columns that may be left out, the least important first; those that are not there do not matter.
    """
    kept, left_out = list(range(len(columns))), []
    for column in (None, *(name for name in spare if name in columns)):
        if column is not None:
            kept.remove(columns.index(column))
            left_out.append(column)
        chosen = [columns[at] for at in kept]
        cells = [[row[at] for at in kept] for row in rows]
        widths = _widths(chosen, cells, width, right)
        if widths is not None:
            lines = _lines(chosen, cells, widths, right)
            return Laid(lines, 1 if any(chosen) else 0, left_out)
    assert width is not None  # without one, everything fits
    return Laid(_blocks(columns, rows, width), 0, [])


def fold(text: str, width: int) -> list[str]:
    """The text on lines of `width` cells: divided between words, else after a sign, else anywhere; an id never is."""
    lines = []
    while cell_len(text) > width and not _ID.fullmatch(text):
        cut = _cut(text, width)
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return [*lines, text]


def _cut(text: str, width: int) -> int:
    """After how many characters the first line ends."""
    fitting, cells = 0, 0
    for fitting, sign in enumerate(text):  # noqa: B007 - where it stopped is the answer
        cells += cell_len(sign)
        if cells > width:
            break
    fitting = max(fitting, 1)
    space = text.rfind(" ", 1, fitting + 1)
    if space * 3 >= fitting:
        return space
    for found in _ID.finditer(text):
        if found.start() < fitting < found.end():
            return found.start() or found.end()
    seams = [found.end() for found in _SEAM.finditer(text, 0, fitting) if found.end() * 3 >= fitting]
    return seams[-1] if seams else fitting


def _widths(columns: Sequence[str], rows: Rows, width: int | None, right: Sequence[str]) -> list[int] | None:
    """How wide each column is; None when they do not fit."""
    natural = [max(cell_len(column), *(cell_len(row[at]) for row in rows), 0) for at, column in enumerate(columns)]
    if width is None:
        return natural
    free = width - GAP * (len(columns) - 1)
    fixed = [column in right or _has_ids(rows, at) for at, column in enumerate(columns)]
    widths = [
        wide if wide <= SHORT or is_fixed else max(LEAST, cell_len(column), _longest_id(rows, at))
        for at, (column, wide, is_fixed) in enumerate(zip(columns, natural, fixed, strict=True))
    ]
    if sum(widths) > free:
        return None
    for _ in range(free - sum(widths)):  # what is left goes to whichever lacks most
        at = max(range(len(widths)), key=lambda at: natural[at] - widths[at])
        if natural[at] == widths[at]:
            break
        widths[at] += 1
    return widths


def _has_ids(rows: Rows, at: int) -> bool:
    return any(_ID.fullmatch(row[at]) for row in rows)


def _longest_id(rows: Rows, at: int) -> int:
    """Of those within longer text."""
    return max((len(found) for row in rows for found in _ID.findall(row[at])), default=0)


def _lines(columns: Sequence[str], rows: Rows, widths: Sequence[int], right: Sequence[str]) -> list[str]:
    lines = [_line(columns, widths, columns, right)] if any(columns) else []
    for row in rows:
        folded = [fold(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for place in range(max(len(cell) for cell in folded)):
            lines.append(_line([cell[place] if place < len(cell) else "" for cell in folded], widths, columns, right))
    return lines


def _line(cells: Sequence[str], widths: Sequence[int], columns: Sequence[str], right: Sequence[str]) -> str:
    padded = []
    for cell, wide, column in zip(cells, widths, columns, strict=True):
        space = " " * (wide - cell_len(cell))
        padded.append(space + cell if column in right else cell + space)
    return (" " * GAP).join(padded).rstrip()


def _blocks(columns: Sequence[str], rows: Rows, width: int) -> list[str]:
    """What stands first heads the block; each other cell has a line of its own, or several."""
    names = max(cell_len(column) for column in columns[1:]) if len(columns) > 1 else 0
    beside = width - INDENT - names - GAP
    lines: list[str] = []
    for row in rows:
        lines += ["", *fold(row[0], width)] if lines else fold(row[0], width)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                lines += _entry(column, cell, names, beside, width)
    return lines


def _entry(column: str, cell: str, names: int, beside: int, width: int) -> list[str]:
    if beside < max(LEAST, _longest_id([[cell]], 0)):
        below = [" " * 2 * INDENT + part for part in fold(cell, max(width - 2 * INDENT, LEAST))]
        return [" " * INDENT + column, *below] if column else below
    first, *more = fold(cell, beside)
    named = " " * INDENT + column + " " * (names - cell_len(column) + GAP)
    return [named + first, *(" " * len(named) + part for part in more)]
