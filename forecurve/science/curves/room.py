"""Columns with room for more: one more value costs the same however many there are.

A longer column shares the memory of the one before it and has one place more of it. Who already has another
continuation of the same column, or none left, gets memory of its own, twice as much as it needs.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from ..arrays import FloatArray

Columns = dict[str, FloatArray]


class Room:
    """The memory behind columns of one length, each a read-only view of it."""

    def __init__(self, columns: Columns):
        """Copies them."""
        self._lock = Lock()
        self._names = tuple(columns)
        self._used = len(next(iter(columns.values())))
        self._memory = np.empty((len(columns), 2 * self._used + 8))
        for row, column in zip(self._memory, columns.values(), strict=True):
            row[: self._used] = column

    def _with(self, size: int, values: dict[str, float]) -> Columns | None:
        """The columns with one value more, or None where the next place is taken, or is that of other columns."""
        if self._names != tuple(values):
            return None
        with self._lock:
            if self._used != size or size == self._memory.shape[1]:
                return None
            self._used += 1
        self._memory[:, size] = list(values.values())
        longer = {name: row[: size + 1] for name, row in zip(self._names, self._memory, strict=True)}
        for column in longer.values():
            column.flags.writeable = False
        return longer

    def __reduce__(self) -> tuple[Any, ...]:
        """A lock cannot be copied or sent to another process, and there is no room to share there."""
        return Room, ({name: np.empty(0) for name in self._names},)


def one_more(columns: Columns, values: dict[str, float], room: Room | None) -> tuple[Columns, Room]:
    """The columns with one value more, and the room that they are in.

    Args:
        columns: of one length.
        values: of each column, in the same order.
        room: of these columns or of longer ones, None where they are in none.
    """
    size = len(next(iter(columns.values())))
    longer = None if room is None else room._with(size, values)
    if room is None or longer is None:
        room = Room(columns)
        longer = room._with(size, values)
        assert longer is not None, "new room has a place"
    return longer, room
