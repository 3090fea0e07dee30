"""Curves from files with `series,compute,reward[,prompts,samples,seed]`: CSV, JSONL, JSON or Parquet.

One row is one evaluation. Rows of a series follow one another in the order of compute; series may be interleaved. A
series with several seeds becomes one curve per seed, named `series (seed 3)`. An optional `unit` column names the unit
of compute. Other columns are left alone.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from forecurve.curve_formats import FORMATS, CurveFileError, Row, check_header, check_once, column_of, rows_of
from forecurve.science import Curve, CurveError
from forecurve.science.checks import MAX_POINTS, MIN_POINTS, short
from forecurve.signs import is_obeyed

DEFAULT_UNIT = "compute units"
Bounds = tuple[float, float]


@dataclass
class _Series:
    """The columns of one curve as they are gathered."""

    compute: list[float] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    prompts: list[float | None] = field(default_factory=list)
    samples: list[float | None] = field(default_factory=list)


def read_curves(
    path: str | Path, *, unit: str | None = None, series: Iterable[str] | None = None, bounds: Bounds = (0.0, 1.0)
) -> list[Curve]:
    """Every curve of a file: series in the order in which they first appear, the seeds of a series together.

    Args:
        path: a .csv, .jsonl (.ndjson), .json or .parquet file.
        unit: the unit of compute; else the file's `unit` column, else "compute units".
        series: only these names.
        bounds: the range of the rewards.

    Raises:
        CurveFileError: the file cannot be read, or a series is not a curve; names field, value and way out.
    """
    return [curve for curves in read_arms(path, unit=unit, series=series, bounds=bounds).values() for curve in curves]


def read_arms(
    path: str | Path,
    *,
    unit: str | None = None,
    series: Iterable[str] | None = None,
    bounds: Bounds = (0.0, 1.0),
    left_out: dict[str, int] | None = None,
    needed: str | None = None,
) -> dict[str, list[Curve]]:
    """The curves of a file by the name of their series, several where a series has several seeds.

    Args, Raises: as `read_curves`; and

        left_out: where it is given, series with fewer than 3 evaluations go into it, with how many they have, and are
            no fault unless all are so short.
        needed: a series of which at least one seed must not be left out.
    """
    wanted = list(series) if series is not None else None
    only = set(wanted) if wanted is not None else None
    gathered, stated_unit = _faultless_csv(Path(path), only) or _gather(rows_of(Path(path)), only)
    _check_found(gathered, wanted, Path(path))
    arms: dict[str, list[Curve]] = {name: [] for name, _ in gathered}
    seeds = Counter(name for name, _ in gathered)
    long_enough = {name for (name, _), columns in gathered.items() if not _is_short(columns)}
    for (name, seed), columns in gathered.items():
        full = f"{name} (seed {'none' if seed is None else seed})" if seeds[name] > 1 else name
        if full != name and full in seeds:
            raise CurveFileError(
                "series", repr(full), f"it is the name of seed {seed} of {name!r} as well", "rename one of them"
            )
        at_fault = not long_enough or (name == needed and name not in long_enough)
        if left_out is not None and _is_short(columns) and not at_fault:
            left_out[full] = len(columns.compute)
            continue
        arms[name].append(_curve(full, seed, columns, unit or stated_unit or DEFAULT_UNIT, bounds))
    return {name: curves for name, curves in arms.items() if curves}


def _is_short(columns: _Series) -> bool:
    return len(columns.compute) < MIN_POINTS


Key = tuple[str, int | None]
_ROWS_AT_ONCE = 500  # so few that Python does not look through them for garbage


def _gather(rows: Iterable[Row], wanted: set[str] | None) -> tuple[dict[Key, _Series], str | None]:
    gathered: dict[Key, _Series] = {}
    unit: str | None = None
    names: set[str] = set()
    for where, row in rows:
        name = _text("series", row["series"], where)
        if name not in names:
            _check_name(name, row["series"], where)
            names.add(name)
        unit = _one_unit(unit, row.get("unit"), where)
        if wanted is not None and name not in wanted:
            continue
        columns = gathered.setdefault((name, _seed(row.get("seed"), where)), _Series())
        columns.compute.append(_needed("compute", row["compute"], where))
        columns.reward.append(_needed("reward", row["reward"], where))
        columns.prompts.append(_number("prompts", row.get("prompts"), where))
        columns.samples.append(_number("samples", row.get("samples"), where))
        if len(columns.compute) > MAX_POINTS:
            raise CurveFileError(
                f"series {name!r}",
                f"more by {where}",
                f"at most {MAX_POINTS} evaluations are taken",
                "average neighbours",
            )
    return gathered, unit


def _faultless_csv(path: Path, wanted: set[str] | None) -> tuple[dict[Key, _Series], str | None] | None:
    """What `_gather` makes of a CSV file, in a fourth of the time: many rows at once. None where a cell is not as
    it should be, or where it is no CSV file; read row by row it then says what is wrong."""
    if FORMATS.get(path.suffix.lower()) != "CSV":
        return None
    found: dict[Key, _Series] = {}
    units: dict[str, None] = {}
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, skipinitialspace=True)
            header = [column_of(name) for name in next(reader, [])]
            check_once(header)
            check_header(header)
            while rows := list(islice(reader, _ROWS_AT_ONCE)):
                cells = dict(zip(header, zip(*filter(None, rows), strict=True), strict=True))
                units |= dict.fromkeys(cell.strip() for cell in cells.get("unit", ()) if cell.strip())
                _append(found, cells, wanted)
                if len(units) > 1 or any(len(columns.compute) > MAX_POINTS for columns in found.values()):
                    return None
    except (OSError, ValueError, csv.Error):  # a CurveFileError is a ValueError too
        return None
    return found, next(iter(units), None)


def _append(found: dict[Key, _Series], cells: Mapping[str, Sequence[str]], wanted: set[str] | None) -> None:
    """The cells of some rows, by column, to their series. ValueError where one is not as it should be."""
    none = [""] * len(cells["series"])
    places: dict[tuple[str, str], list[int]] = {}
    for place, pair in enumerate(zip(cells["series"], cells.get("seed", none), strict=True)):
        places.setdefault(pair, []).append(place)
    for (name_cell, seed_cell), at in places.items():
        name = name_cell.strip()
        _check_name(name, name_cell, "")
        if wanted is None or name in wanted:
            columns = found.setdefault((name, _seed(seed_cell, "")), _Series())
            columns.compute.extend(float(cells["compute"][place]) for place in at)
            columns.reward.extend(float(cells["reward"][place]) for place in at)
            columns.prompts.extend(_numbers(cells.get("prompts", none), at))
            columns.samples.extend(_numbers(cells.get("samples", none), at))


def _numbers(cells: Sequence[str], at: Sequence[int]) -> list[float | None]:
    """Those of an optional column, in which the same few are met again and again."""
    asked = [cells[place] for place in at]
    told = {cell: float(cell) if cell.strip() else None for cell in set(asked)}
    return [told[cell] for cell in asked]


def _check_name(name: str, cell: Any, where: str) -> None:
    if not name:
        raise CurveFileError(f"series at {where}", _shown(cell), "a name is needed", "name every series")
    if any(is_obeyed(sign) for sign in name):
        raise CurveFileError(f"series at {where}", ascii(name), "a name on one line is needed", "rename the series")


def _one_unit(known: str | None, stated: Any, where: str) -> str | None:
    unit = _text("unit", stated, where)
    if not unit or unit == known:
        return known
    if known is not None:
        raise CurveFileError(f"unit at {where}", unit, f"the file began with {known}", "convert to one unit of compute")
    return unit


def _text(column: str, value: Any, where: str) -> str:
    """What a cell says, blanks around it dropped; a plain number is a name too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise CurveFileError(f"{column} at {where}", _shown(value), "text is needed", "write it as text")
    return "" if value is None else str(value).strip()


def _shown(value: Any) -> str:
    """A cell as an error shows it."""
    return "nothing" if value is None else short(value)


def _seed(value: Any, where: str) -> int | None:
    number = _number("seed", value, where)
    if number is not None and not number.is_integer():
        raise CurveFileError(
            f"seed at {where}", _shown(value), "a whole number is needed", "leave it empty where unknown"
        )
    return None if number is None else int(number)


def _needed(column: str, value: Any, where: str) -> float:
    number = _number(column, value, where)
    if number is None:
        raise CurveFileError(f"{column} at {where}", _shown(value), "a number is needed", "leave the line out")
    return number


def _number(column: str, value: Any, where: str) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        if isinstance(value, bool):
            raise TypeError("a truth value")
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise CurveFileError(
            f"{column} at {where}", _shown(value), "a number is needed", "mend or leave it out"
        ) from error


def _check_found(gathered: dict[Key, _Series], wanted: list[str] | None, path: Path) -> None:
    if not gathered and wanted is None:
        raise CurveFileError("file", path.name, "it has no evaluations", "write one row an evaluation")
    found = {name for name, _ in gathered}
    for name in wanted or []:
        if name not in found:
            raise CurveFileError(
                "series", name, f"{path.name} has no such series", "see the first column for its names"
            )


def _curve(full: str, seed: int | None, columns: _Series, unit: str, bounds: Bounds) -> Curve:
    try:
        return Curve(
            columns.compute,
            columns.reward,
            unit=unit,
            name=full,
            prompts=columns.prompts,
            samples=columns.samples,
            seed=seed,
            bounds=bounds,
        )
    except CurveError as error:
        raise CurveFileError(f"series {full!r}, {error.field}", error.value, error.message, error.way_out) from error
