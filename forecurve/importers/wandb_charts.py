"""A chart of W&B that was exported as CSV: a column for each run and metric, over one x axis.

The page writes `"Step","run-a - eval/acc","run-a - eval/acc__MIN","run-a - eval/acc__MAX",...`; where the x axis is not
the step there are columns `run-a - _step` as well. A run without a value at an x has an empty cell.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .logs import Log, Reading, Row, is_finite
from .tables import Sheet

_ENDS = ("__MIN", "__MAX")
_BETWEEN = " - "


class _Column(NamedTuple):
    at: int
    run: str
    metric: str


def is_chart(header: list[str]) -> bool:
    """Whether a CSV file is such an export: known by its spreads, or by every column's name having a run before it."""
    others = header[1:]
    spread = any(name.endswith("__MIN") and name.removesuffix("__MIN") in others for name in others)
    return spread or (bool(others) and _BETWEEN not in header[0] and all(_BETWEEN in name for name in others))


def read_chart(path: Path, sheet: Sheet, metric: str | None) -> Reading:
    """A log for each run.

    Args:
        metric: the metric asked for. It tells a run's name from the metric's where both may have ` - ` in them.
    """
    axis = sheet.header[0]
    columns, notes = _columns(sheet.header, path, metric)
    logs = []
    for run in dict.fromkeys(column.run for column in columns):
        of_run = [column for column in columns if column.run == run]
        rows = [
            Row(f"{path.name}, line {number}", {axis: cells[0]} | _cells(of_run, cells))
            for number, cells in sheet.lines
            if any(cells[column.at].strip() for column in of_run)
        ]
        logs.append(Log(run, path, rows, axes=(axis,), said=_BETWEEN in "".join(sheet.header[1:])))
    return Reading(logs, [*notes, *_averaged(path, sheet)])


def _cells(columns: list[_Column], cells: list[str]) -> dict[str, str]:
    return {column.metric: cells[column.at] for column in columns if cells[column.at].strip()}


def _columns(header: list[str], path: Path, metric: str | None) -> tuple[list[_Column], list[str]]:
    """Those of values; the spreads that stand beside each are left alone.

    W&B's runs may share a name: the second is `name (2)`.
    """
    known = set(header)
    found: list[_Column] = []
    notes: dict[str, None] = {}
    for at, name in enumerate(header[1:], start=1):
        if any(name.endswith(end) and name.removesuffix(end) in known for end in _ENDS):
            continue
        run, named = _split(name, path, metric)
        taken = sum(column.metric == named and header[column.at] == name for column in found)
        if taken:
            notes[f"{path.name} has several runs {run}: the second is {run} (2) here"] = None
            run = f"{run} ({taken + 1})"
        found.append(_Column(at, run, named))
    return found, list(notes)


def _split(name: str, path: Path, metric: str | None) -> tuple[str, str]:
    """The run and the metric of a column. Of metrics few have ` - ` in their names, of runs some."""
    if metric is not None and name.endswith(f"{_BETWEEN}{metric}"):
        return name.removesuffix(f"{_BETWEEN}{metric}"), metric
    run, between, named = name.rpartition(_BETWEEN)
    return (run, named) if between else (path.stem, name)


def _averaged(path: Path, sheet: Sheet) -> list[str]:
    """Where a value stands for several: a chart of groups has their mean, one of very many points the last of each
    of its buckets, with the spread beside it."""
    places = {name: at for at, name in enumerate(sheet.header)}
    spreads = [(places[f"{name}__MIN"], places[f"{name}__MAX"]) for name in places if _has_spread(name, places)]
    lines = sum(_differ(cells, spreads) for _, cells in sheet.lines)
    if not lines:
        return []
    told = f"{path.name}: in {lines:,} line{'s' * (lines > 1)} a value stands for several (__MIN is not __MAX)"
    return [f"{told}: ungroup the runs, or export each run's history"]


def _has_spread(name: str, places: dict[str, int]) -> bool:
    return not name.endswith(f"{_BETWEEN}_step") and all(f"{name}{end}" in places for end in _ENDS)


def _differ(cells: list[str], spreads: list[tuple[int, int]]) -> bool:
    pairs = [(cells[low], cells[high]) for low, high in spreads if is_finite(cells[low]) and is_finite(cells[high])]
    return any(float(low) != float(high) for low, high in pairs)
