"""Curves from files with `series,compute,reward[,prompts,samples,seed]`: CSV, JSONL, JSON or Parquet.

One row is one evaluation; without a column `series` all are of one run, which is called as the file is. Rows of a
series follow one another in the order of compute; series may be interleaved. A series with several seeds becomes one
curve per seed, named `series (seed 3)`. An optional `unit` column names the unit of compute. Other columns are left
alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from forecurve.curve_cells import CurveFileError, name_of, needed_of, number_of, seed_of, text_of, unit_of
from forecurve.curve_columns import Columns, Key, faultless
from forecurve.curve_formats import Row, rows_of
from forecurve.science import Curve, CurveError, checks
from forecurve.science.curves.curve import DEFAULT_UNIT
from forecurve.signs import visible

Bounds = tuple[float, float]
_SHOWN = 5  # names that an error lists


def read_curves(
    path: str | Path, *, unit: str | None = None, series: Iterable[str] | None = None, bounds: Bounds = (0.0, 1.0)
) -> list[Curve]:
    """Every curve of a file: series in the order in which they first appear, the seeds of a series together.

    Args:
        path: a .csv, .jsonl (.ndjson), .json or .parquet file.
        unit: the unit of compute; else the file's `unit` column, else "compute units".
        series: only these names; `e (seed 3)` is one seed of a series with several.
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
        needed: a series of which at least one seed must not be left out, or such a seed.
    """
    wanted = [name.strip() for name in series] if series is not None else None  # as names in the file are
    only = {one for name in wanted for one in (name, _series_of(name))} if wanted is not None else None
    gathered, stated_unit = faultless(Path(path), only) or _gather(rows_of(Path(path)), only)
    if wanted is not None:
        gathered = _asked_for(gathered, wanted, Path(path))
    elif not gathered:
        raise CurveFileError("file", Path(path).name, "it has no evaluations", "write one row an evaluation")
    arms: dict[str, list[Curve]] = {name: [] for name, _ in gathered}
    seeds = Counter(name for name, _ in gathered)
    one_of_several = set(wanted or ()).difference(seeds)  # is called by its full name
    long_enough = {name for (name, _), columns in gathered.items() if not _is_short(columns)}
    for (name, seed), columns in gathered.items():
        full = _full_name(name, seed)
        full = full if seeds[name] > 1 or full in one_of_several else name
        if full != name and full in seeds:
            raise CurveFileError(
                "series", repr(full), f"it is the name of seed {seed} of {name!r} as well", "rename one of them"
            )
        at_fault = not long_enough or full == needed or (name == needed and name not in long_enough)
        if left_out is not None and _is_short(columns) and not at_fault:
            left_out[full] = len(columns.compute)
            continue
        try:
            arms[name].append(_curve(full, seed, columns, unit or stated_unit or DEFAULT_UNIT, bounds))
        except CurveError as error:
            raise _in_file(error, full, Path(path), (name, seed)) from error
    return {name: curves for name, curves in arms.items() if curves}


def _is_short(columns: Columns) -> bool:
    return len(columns.compute) < checks.MIN_POINTS


def _gather(rows: Iterable[Row], wanted: set[str] | None) -> tuple[dict[Key, Columns], str | None]:
    gathered: dict[Key, list[tuple[float, float, float | None, float | None]]] = {}
    unit: str | None = None
    names: set[str] = set()
    for where, row in rows:
        name = text_of("series", row["series"], where)
        if name not in names:
            names.add(name_of(row["series"], where))
        unit = _one_unit(unit, row.get("unit"), where)
        if wanted is not None and name not in wanted:
            continue
        evaluations = gathered.setdefault((name, seed_of(row.get("seed"), where)), [])
        evaluations.append(
            (
                needed_of("compute", row["compute"], where),
                needed_of("reward", row["reward"], where),
                number_of("prompts", row.get("prompts"), where),
                number_of("samples", row.get("samples"), where),
            )
        )
        if len(evaluations) > checks.MAX_POINTS:
            raise CurveFileError(
                f"series {checks.short(name)}",
                f"more by {where}",
                f"at most {checks.MAX_POINTS:,} evaluations are taken",
                "average neighbours",
            )
    return {key: Columns(*zip(*evaluations, strict=True)) for key, evaluations in gathered.items()}, unit


def _one_unit(known: str | None, stated: Any, where: str) -> str | None:
    unit = unit_of(stated, where)
    if not unit or unit == known:
        return known
    if known is not None:
        raise CurveFileError(f"unit at {where}", unit, f"the file began with {known}", "convert to one unit of compute")
    return unit


def _full_name(name: str, seed: int | None) -> str:
    return f"{name} (seed {'none' if seed is None else seed})"


def _series_of(full: str) -> str:
    """Of `e (seed 3)` the series `e`; any other name is that of a series."""
    found = re.fullmatch(r"(.*) \(seed (?:none|-?\d+)\)", full, re.DOTALL)
    return full if found is None else found[1]


def _asked_for(gathered: dict[Key, Columns], wanted: Sequence[str], path: Path) -> dict[Key, Columns]:
    """The series of these names, and the single seeds that are named as a series with several seeds names them."""
    several = Counter(name for name, _ in gathered)
    known = {*several, *(_full_name(*key) for key in gathered if several[key[0]] > 1)}
    for name in wanted:
        if name not in known:
            raise CurveFileError("series", visible(name), f"{path.name} has no such series", _names(path))
    named = set(wanted)
    return {
        key: columns
        for key, columns in gathered.items()
        if key[0] in named or (several[key[0]] > 1 and _full_name(*key) in named)
    }


def _names(path: Path) -> str:
    """The names that a file has, as a way out."""
    curves, _ = faultless(path, None) or ({}, None)
    names = list(dict.fromkeys(checks.short(name) for name, _ in curves))
    if not names and _is_of_one_run(path):
        return f"it is of one run, {visible(path.stem)}"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"it has {', '.join(names[:_SHOWN])}{more}" if names else "see its column `series`"


def _curve(full: str, seed: int | None, columns: Columns, unit: str, bounds: Bounds) -> Curve:
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


def _in_file(error: CurveError, full: str, path: Path, key: Key) -> CurveFileError:
    """A fault of a curve as one of its file; where a row is at fault, with its place."""
    value = error.value if error.at is None else f"{error.value} ({_place_of(path, key, error.at)})"
    way_out = error.way_out
    if error.field == "compute" and error.at and _is_of_one_run(path):
        way_out += ", or name each run in a column `series`"
    return CurveFileError(f"series {checks.short(full)}, {error.field}", value, error.message, way_out)


def _is_of_one_run(path: Path) -> bool:
    """Whether its rows are called as it is, as those are that name no run."""
    first = next(rows_of(path), None)
    return first is not None and first[1]["series"] == path.stem


def _place_of(path: Path, key: Key, at: int) -> str:
    """Where a curve's evaluation stands, from 0. The file is read once more: columns do not know their rows."""
    places = (where for where, row in rows_of(path) if key == _key_of(row, where))
    return next(islice(places, at, None))


def _key_of(row: dict[str, Any], where: str) -> Key:
    return text_of("series", row["series"], where), seed_of(row.get("seed"), where)
