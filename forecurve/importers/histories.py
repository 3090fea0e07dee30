"""Tables of what was logged: one run's history, or a long table with a column that names the run of each row.

`run.history().to_csv()` of W&B, trackio's Parquet, verl's file logger and most loggers' own files are such tables.
"""

from __future__ import annotations

from pathlib import Path

from forecurve.curve_cells import CurveFileError, text_of
from forecurve.curve_formats import REQUIRED

from .logs import Log, Reading, Row

NAMES_OF_RUNS = ("run_name", "run", "series", "run_id")
"""Columns that name the run of a row where none is asked for, best first."""


def read_history(path: Path, rows: list[Row], series: str | None) -> Reading:
    """A log for each run.

    Args:
        series: the column that names the run of a row; else the first of `NAMES_OF_RUNS` that is there, else all rows
            are of one run, which is called as the file is.

    Raises:
        CurveFileError: there is nothing in the file, it has no such column, or it is a curve file already.
    """
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    if not columns:
        raise CurveFileError("file", path.name, "nothing is logged in it", "name a file that has rows")
    if set(REQUIRED) <= set(columns):
        raise CurveFileError("file", path.name, "it is a curve file already", "give it to `forecurve fit` as it is")
    if series is not None and series not in columns:
        known = ", ".join(list(columns)[:8])
        raise CurveFileError("series", series, f"{path.name} has no such column", f"it has {known}")
    named = series or next((name for name in NAMES_OF_RUNS if name in columns), None)
    if named is None:
        return Reading([Log(path.stem, path, rows)])
    notes = [] if series else [f"{path.name}: runs are told apart by the column {named} (--series names another)"]
    return Reading(_by_run(path, rows, named), notes)


def _by_run(path: Path, rows: list[Row], named: str) -> list[Log]:
    runs: dict[str, list[Row]] = {}
    for row in rows:
        name = text_of(named, row.cells.get(named), row.where)
        if not name:
            raise CurveFileError(f"{named} at {row.where}", "nothing", "a name is needed", "name the run of every row")
        runs.setdefault(name, []).append(row)
    return [Log(name, path, found, said=True) for name, found in runs.items()]
