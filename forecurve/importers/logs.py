"""What a run logged, as every reader here gives it: rows of named cells, in the order in which they were logged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

STEPS = (
    # transformers and Lightning count their steps here, while W&B's own `_step` counts what was logged
    "train/global_step",
    "trainer/global_step",
    "training/global_step",
    "global_step",
    "step",
    "Step",
    "_step",
    "training_step",
    "steps",
    "iteration",
)
"""What tables call the step, best first."""

CLOCKS = ("Wall Time", "_timestamp", "timestamp")
"""Dates: when something was logged, which is no compute."""

_DEEPEST = 8  # objects in objects of JSON
_SAYS_NUMBERS = (str, int, float)
_PLAIN = frozenset({*_SAYS_NUMBERS, bool, NoneType})  # of which it is known without asking that they are no objects


class Row(NamedTuple):
    """What was logged at once: `where` it stands (`run.csv, line 7`) and its cells that are not empty.

    `part` tells rows apart that no order of logging is known of, as they are from files that were given together.
    """

    where: str
    cells: Mapping[str, Any]
    part: int = 0


@dataclass(eq=False)
class Log:
    """What one run logged.

    Attributes:
        run: its name.
        path: the file or folder that it is from.
        rows: in the order of logging.
        axes: what may be its step, best first.
        said: the name stands in the file, so that the same name elsewhere is the same run. Else the file has given it.
        seed: where the log is of one seed of a run.
        place: the folder in which the name is to be looked for, where it is not that of the file.
    """

    run: str
    path: Path
    rows: list[Row]
    axes: tuple[str, ...] = STEPS
    said: bool = False
    seed: int | None = None
    place: Path | None = None

    @property
    def home(self) -> Path:
        """The folder in which a run of this name lies."""
        return self.place or self.path.parent


@dataclass
class Reading:
    """The runs of some files, and what a person should know of how they were read."""

    logs: list[Log] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, other: Reading) -> None:
        self.logs += other.logs
        self.notes += other.notes


def cells_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a row that are not empty, those of objects inside it named by their path.

    What stands in an object `data` or `metrics` of the row keeps its own name, for these only wrap it (verl's file
    logger writes `{"step": 10, "data": {...}}`).

    >>> cells_of({"step": 1, "data": {"val/acc": 0.5, "config": {"lr": 1}}, "note": ""})
    {'step': 1, 'val/acc': 0.5, 'config/lr': 1}
    """
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if type(value) in _PLAIN or not isinstance(value, Mapping):
            cells[name] = value
        elif name in ("data", "metrics"):
            for inner, cell in _flat(value, "", 1):
                cells[f"{name}/{inner}" if inner in row else inner] = cell
        else:
            cells.update(_flat(value, f"{name}/", 1))
    return {name: cell for name, cell in cells.items() if not _is_empty(cell)}


def _flat(value: Mapping[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping) and depth < _DEEPEST:
            yield from _flat(inner, f"{prefix}{name}/", depth + 1)
        else:
            yield f"{prefix}{name}", inner


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def is_number(cell: Any) -> bool:
    """Whether a cell says a number, NaN and infinities among them."""
    if isinstance(cell, bool) or not isinstance(cell, _SAYS_NUMBERS):
        return False
    try:
        float(cell)
    except (ValueError, OverflowError):
        return False
    return True


def is_finite(cell: Any) -> bool:
    return is_number(cell) and math.isfinite(float(cell))
