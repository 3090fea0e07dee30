"""Tables of what was logged: one run's history, or a long table with a column that names the run of each row.

`run.history().to_csv()` of W&B, trackio's Parquet, verl's file logger and most loggers' own files are such tables.
"""

from __future__ import annotations

from pathlib import Path

from forecurve.curve_cells import CurveFileError, text_of
from forecurve.curve_formats import NAMES_OF_RUNS, NUMBERS, OPTIONAL, REQUIRED

from .logs import Log, Reading, Row
from .naming import each_its_own

_IDS = "run_id"  # trackio makes a new one at every init, also where the name was there before
_Runs = dict[tuple[str, str], list[Row]]  # by name and id


def read_history(path: Path, rows: list[Row], series: str | None) -> Reading:
    """A log for each run.

    Args:
        series: the column that names the run of a row; else the first of `NAMES_OF_RUNS` that is there, else all rows
            are of one run, which is called as the file is. Runs of one `run_name` that have several `run_id` are told
            apart where no column is asked for: the second is `name (2)`.

    Raises:
        CurveFileError: there is nothing in the file, it has no such column, or it is a curve file already.
    """
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    if not columns:
        raise CurveFileError("file", path.name, "nothing is logged in it", "name a file that has rows")
    nothing_else = set(columns) <= {*REQUIRED, *OPTIONAL}  # a curve file of one run need not name it
    if set(NUMBERS if nothing_else else REQUIRED) <= set(columns):
        raise CurveFileError(
            "file",
            path.name,
            "it is a curve file already",
            "give it to `forecurve fit` or `forecurve run import` as it is",
        )
    if series is not None and series not in columns:
        known = ", ".join(list(columns)[:8])
        raise CurveFileError("series", series, f"{path.name} has no such column", f"it has {known}")
    named = series or next((name for name in NAMES_OF_RUNS if name in columns), None)
    if named is None:
        return Reading([Log(path.stem, path, rows)])
    ids = _IDS if series is None and named == "run_name" and _IDS in columns else None
    runs = _by_run(rows, named, ids)
    names = list(each_its_own([name for name, _ in runs]))
    logs = [Log(name, path, found, said=True) for name, found in zip(names, runs.values(), strict=True)]
    told = f"{path.name}: runs are told apart by the column {named} (--series names another)"
    return Reading(logs, [] if series else [told, *_several(path, [name for name, _ in runs], names)])


def _by_run(rows: list[Row], named: str, ids: str | None) -> _Runs:
    """The rows of each name, and of each id where there are ids; rows without one are a run of that name too."""
    runs: _Runs = {}
    for row in rows:
        name = text_of(named, row.cells.get(named), row.where)
        if not name:
            raise CurveFileError(f"{named} at {row.where}", "nothing", "a name is needed", "name the run of every row")
        own = text_of(ids, row.cells.get(ids), row.where) if ids else ""
        runs.setdefault((name, own), []).append(row)
    return runs


def _several(path: Path, bare: list[str], names: list[str]) -> list[str]:
    """Of each name that several runs have, what the second is called."""
    second = {name: own for name, own in reversed([*zip(bare, names, strict=True)]) if name != own}
    way_out = "(--series run_name takes them as one)"
    return [
        f"{path.name} has several runs {name}, by {_IDS}: the second is {own} here {way_out}"
        for name, own in second.items()
    ]
