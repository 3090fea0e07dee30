"""Curve files without a fault, read many rows at once.

`rows_of` gives one row after another with its place, so that a fault can be told; this takes a fraction of the time
and gives up at whatever is not as it should be, or is rare: the file is then read row by row. Both mean the same.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.curve_cells import name_of, seed_of, unit_of
from forecurve.curve_formats import (
    FORMATS,
    OPTIONAL,
    REQUIRED,
    TEXTS,
    check_header,
    check_once,
    column_of,
    delimiter_of,
    json_text,
    lines_of,
)
from forecurve.parquet_files import batches, parquet_file, refuse_large, told_apart
from forecurve.science import checks
from forecurve.science.arrays import FloatArray, IntArray
from forecurve.spreadsheets import unguarded

if TYPE_CHECKING:
    import pyarrow

Key = tuple[str, int | None]
Floats = Sequence[float | None] | FloatArray
Cells = Mapping[str, Sequence[Any]]
_ROWS_AT_ONCE = 500  # so few that Python does not look through them for garbage
_NUMBERS = ("compute", "reward", "prompts", "samples")


@dataclass(frozen=True)
class Columns:
    """The columns of one curve; what is not known of an evaluation is None or NaN."""

    compute: Sequence[float] | FloatArray
    reward: Sequence[float] | FloatArray
    prompts: Floats
    samples: Floats


def faultless(path: Path, wanted: set[str] | None) -> tuple[dict[Key, Columns], str | None] | None:
    """The columns of every curve of a file, by series and seed, and its unit; None where it is better read row by row.

    Args:
        wanted: only the series of these names.
    """
    read = _BATCHES.get(FORMATS.get(path.suffix.lower(), ""))
    if read is None:
        return None
    gathering = _Gathering(_Codes(wanted))
    try:
        for batch in read(path, gathering.codes):
            gathering.take(batch)
        return gathering.curves(), next(iter(gathering.units), None)
    except (ArithmeticError, ImportError, LookupError, NotImplementedError, OSError, RecursionError, TypeError):
        return None
    except (ValueError, csv.Error):  # a CurveFileError is a ValueError too
        return None


class _Codes(dict[tuple[Any, Any], int]):
    """A number for every curve, by the cells that name its series and its seed; -1 for one that is not wanted."""

    def __init__(self, wanted: set[str] | None):
        super().__init__()
        self._wanted = wanted
        self.keys_found: dict[Key, int] = {}

    def __missing__(self, cells: tuple[Any, Any]) -> int:
        name = name_of(cells[0], "")
        code = -1
        if self._wanted is None or name in self._wanted:
            code = self.keys_found.setdefault((name, seed_of(cells[1], "")), len(self.keys_found))
        self[cells] = code
        return code


@dataclass
class _Batch:
    """Some rows: of which curve each is, its numbers with NaN where unknown, shape (4, rows), and the units named."""

    codes: IntArray
    numbers: FloatArray
    units: Sequence[Any]


@dataclass
class _Gathering:
    """Rows as they come, told apart by curve when all are there."""

    codes: _Codes
    batches: list[_Batch] = field(default_factory=list)
    units: dict[str, None] = field(default_factory=dict)
    points: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def take(self, batch: _Batch) -> None:
        if not set(map(type, batch.units)) <= {str, NoneType}:
            raise TypeError("an unusual unit")
        self.units |= dict.fromkeys(unit for cell in batch.units if (unit := unit_of(cell, "")))
        if len(self.units) > 1:
            raise ValueError("a second unit")
        wanted = batch.codes >= 0
        if not wanted.all():
            batch = _Batch(batch.codes[wanted], batch.numbers[:, wanted], ())
        now = np.bincount(batch.codes, minlength=len(self.codes.keys_found))
        now[: len(self.points)] += self.points
        if (now > checks.MAX_POINTS).any():
            raise ValueError("too many points")
        self.points = now
        self.batches.append(batch)

    def curves(self) -> dict[Key, Columns]:
        if not self.batches:
            return {}
        codes = np.concatenate([batch.codes for batch in self.batches])
        order = np.argsort(codes, kind="stable")
        numbers = np.concatenate([batch.numbers for batch in self.batches], axis=1)[:, order]
        parts = np.split(numbers, np.cumsum(self.points)[:-1], axis=1)
        return {key: Columns(*part) for key, part in zip(self.codes.keys_found, parts, strict=True)}


def _csv_batches(path: Path, codes: _Codes) -> Iterator[_Batch]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        delimiter = delimiter_of(stream)
        reader = csv.reader(lines_of(stream), strict=True, skipinitialspace=True, delimiter=delimiter)
        header = [column_of(name) for name in next(reader, [])]
        check_once(header)
        check_header(header)
        while rows := list(islice(reader, _ROWS_AT_ONCE)):
            cells: dict[str, Sequence[str]] = dict(zip(header, zip(*filter(None, rows), strict=True), strict=True))
            yield _batch_of(cells | {name: [*map(unguarded, cells[name])] for name in TEXTS if name in cells}, codes)


def _jsonl_batches(path: Path, codes: _Codes) -> Iterator[_Batch]:
    decode = json.JSONDecoder(object_pairs_hook=_once_each).decode
    with path.open(encoding="utf-8-sig") as stream:
        all_lines = lines_of(stream)
        while lines := list(islice(all_lines, _ROWS_AT_ONCE)):
            rows = [decode(line) for line in lines if not line.isspace()]
            if rows:
                yield _batch_of(_cells(rows), codes)


def _json_batches(path: Path, codes: _Codes) -> Iterator[_Batch]:
    document = json.loads(json_text(path), object_pairs_hook=_once_each)
    rows = document["items"] if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise TypeError("no list")
    for at in range(0, len(rows), _ROWS_AT_ONCE):
        yield _batch_of(_cells(rows[at : at + _ROWS_AT_ONCE]), codes)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name that is there twice")
    return row


def _cells(rows: Sequence[Any]) -> Cells:
    """Rows of JSON by column. What one of them leaves out is None there."""
    if set(map(type, rows)) != {dict}:
        raise TypeError("no object")
    spelled: dict[str, str] = {}
    for names in {tuple(row) for row in rows}:
        columns = [column_of(name) for name in names]
        check_once(columns)
        check_header(columns)
        for name, column in zip(names, columns, strict=True):
            if column in (*REQUIRED, *OPTIONAL) and spelled.setdefault(column, name) != name:
                raise ValueError("a column that is not spelled as before")
    return {column: [row.get(name) for row in rows] for column, name in spelled.items()}


def _batch_of(cells: Cells, codes: _Codes) -> _Batch:
    rows = len(cells["series"])
    seeds = cells.get("seed", [None] * rows)
    # Python takes 1, 1.0 and True for the same, and names of series are not
    if not set(map(type, cells["series"])) <= {str, int} or not set(map(type, seeds)) <= _NUMERIC:
        raise TypeError("an unusual name")
    numbers = np.full((4, rows), np.nan)
    for at, column in enumerate(_NUMBERS):
        if column in cells:
            numbers[at] = _floats(cells[column], column in REQUIRED)
    found = np.array([codes[pair] for pair in zip(cells["series"], seeds, strict=True)], dtype=np.int64)
    return _Batch(found, numbers, tuple(set(cells.get("unit", ()))))


_NUMERIC = {str, int, float, NoneType}


def _floats(cells: Sequence[Any], needed: bool) -> Sequence[float]:
    kinds = set(map(type, cells))
    if not kinds <= _NUMERIC:
        raise TypeError("no number")
    if needed:
        return cells if kinds == {float} else [float(cell) for cell in cells]
    told = {cell: _float(cell) for cell in set(cells)}  # the same few are met again and again
    return [told[cell] for cell in cells]


def _float(cell: Any) -> float:
    return float("nan") if cell is None or (isinstance(cell, str) and not cell.strip()) else float(cell)


def _parquet_batches(path: Path, codes: _Codes) -> Iterator[_Batch]:
    with parquet_file(path) as file:
        spelled = {column_of(name): name for name in file.schema_arrow.names}
        check_once([column_of(name) for name in file.schema_arrow.names])
        check_header(list(spelled))
        present = {column: spelled[column] for column in (*REQUIRED, *OPTIONAL) if column in spelled}
        refuse_large(path, file, list(present.values()))
        for batch in batches(file, list(present.values())):
            if batch.num_rows:
                yield _arrow_batch({column: batch.column(name) for column, name in present.items()}, codes)


def _arrow_batch(arrays: Mapping[str, pyarrow.Array], codes: _Codes) -> _Batch:
    numbers = np.full((4, len(arrays["series"])), np.nan)
    for at, column in enumerate(_NUMBERS):
        if column in arrays:
            numbers[at] = _arrow_floats(arrays[column], column in REQUIRED)
    units = arrays["unit"].unique().to_pylist() if "unit" in arrays else ()
    return _Batch(_arrow_codes(arrays["series"], arrays.get("seed"), codes), numbers, units)


def _arrow_floats(array: pyarrow.Array, needed: bool) -> FloatArray:
    import pyarrow as arrow

    kind = array.type
    numeric = arrow.types.is_floating(kind) or arrow.types.is_integer(kind) or arrow.types.is_null(kind)
    if not numeric or (needed and array.null_count):
        raise TypeError("no number")
    return np.asarray(array.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False))


def _arrow_codes(series: pyarrow.Array, seeds: pyarrow.Array | None, codes: _Codes) -> IntArray:
    """The curve of each row, new ones in the order of their first row."""
    which, names = told_apart(series)
    if not set(map(type, names)) <= {str, int}:
        raise TypeError("an unusual name")
    seed, values = (np.zeros_like(which), [None]) if seeds is None else told_apart(seeds)
    if not set(map(type, values)) <= _NUMERIC:
        raise TypeError("an unusual seed")
    pairs, first, place = np.unique(which * len(values) + seed, return_index=True, return_inverse=True)
    found = np.zeros(len(pairs), dtype=np.int64)
    for at in np.argsort(first):
        found[at] = codes[names[pairs[at] // len(values)], values[pairs[at] % len(values)]]
    return found[place]


_BATCHES = {"CSV": _csv_batches, "JSON": _json_batches, "JSONL": _jsonl_batches, "Parquet": _parquet_batches}
