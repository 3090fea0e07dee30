"""Tables as trackers and loggers write them: CSV, JSONL, JSON or Parquet with columns of any name."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from forecurve.curve_cells import CurveFileError, as_people_write
from forecurve.curve_formats import CsvLines, named_delimiter
from forecurve.parquet_files import batches, parquet_file, refuse_large, rows_in, single
from forecurve.science.checks import short
from forecurve.signs import visible

from .logs import Row, cells_of, is_number

MOST_CELLS = 50_000_000
"""Of a file; they are in memory at once."""
Lines = list[tuple[int, list[str]]]  # each with the number of its line
_PART_OF_NUMBER = re.compile(r"[-+]|[-+]?(\d*\.|[\d.]*\d\.?[eE][-+]?)")  # `0.`, `1.5e-`: digits are to come


@dataclass(frozen=True)
class Sheet:
    """A CSV file: its header as it stands, its rows with as many cells, and what to say of what was left out."""

    header: list[str]
    lines: Lines
    notes: list[str]


def sheet_of(path: Path, text: str, *, growing: bool = False) -> Sheet:
    """A CSV file, whose cells are parted by commas, semicolons or tabs. CurveFileError names a line that is none.
    `growing`: as in `CsvLines`."""
    physical = CsvLines(io.StringIO(text, newline=""), _delimiter(text), file=f"{path.name}, ", growing=growing)
    reader = csv.reader(physical, skipinitialspace=True, delimiter=physical.delimiter)
    lines: Lines = []
    told = 0
    try:
        names = next((cells for cells in reader if any(cell.strip() for cell in cells)), [])
        header = [visible(name.strip()) for name in names]
        physical.check_row()
        for cells in reader:
            physical.check_row()
            if any(cell.strip() for cell in cells[len(header) :]):
                raise CurveFileError(
                    f"{path.name}, line {reader.line_num}",
                    short(cells[len(header) :]),
                    "more cells than columns",
                    "mend the line",
                )
            if any(cell.strip() for cell in cells):
                told += sum(map(bool, cells))
                if told > MOST_CELLS:
                    raise _too_many(f"{path.name} up to line {reader.line_num:,}")
                lines.append((reader.line_num, cells))
    except csv.Error as error:
        where = f"{path.name}, line {reader.line_num}"
        raise CurveFileError(where, str(error), "it is not CSV", "export it again") from error
    notes, width = [], len(header)
    has_no_end = bool(lines) and lines[-1][0] == reader.line_num and not text.endswith("\n")
    if has_no_end and _is_cut_off(lines[-1][1], width):
        lines.pop()
        notes.append(unfinished(path))
    for _, cells in lines:
        del cells[width:]
        cells.extend([""] * (width - len(cells)))
    return Sheet(header, lines, notes)


def _is_cut_off(cells: list[str], width: int) -> bool:
    """Whether a line that has no end, as a logger leaves it that was killed, lacks cells or the rest of a number."""
    return len(cells) < width or _PART_OF_NUMBER.fullmatch(cells[-1].strip()) is not None


def unfinished(path: Path) -> str:
    """What to say where the last line is left out."""
    return f"{path.name}: its last line is unfinished and left out"


def _delimiter(text: str) -> str:
    """What the first line names, else what parts the columns best: of the signs in the header the one that parts most
    numbers in the line below it, for a name of a column may have another in it; a comma where that does not tell."""
    named = named_delimiter(text.partition("\n")[0])
    if named is not None:
        return named
    header, _, below = text.lstrip("\r\n").partition("\n")
    first = below.partition("\n")[0]
    signs = [sign for sign in ",\t;" if sign in header] or [","]
    return max(signs, key=lambda sign: sum(_is_number(cell) for cell in first.split(sign)))


def _is_number(cell: str) -> bool:
    bare = cell.strip().strip('"')
    return is_number(bare) or as_people_write(bare) is not None


def sheet_rows(path: Path, sheet: Sheet) -> tuple[list[Row], list[str]]:
    """The rows by the names of their columns, and what to say of columns that have the same one."""
    names, notes = _once_each(path, sheet.header)
    file = path.name
    rows = [
        Row(
            f"{file}, line {number}",
            {name: cell for name, cell in zip(names, cells, strict=True) if name and cell.strip()},
        )
        for number, cells in sheet.lines
    ]
    return rows, notes


def _once_each(path: Path, header: list[str]) -> tuple[list[str], list[str]]:
    """Every name once: a second `x` is `x (2)`. The one without a name is pandas' index."""
    times: dict[str, int] = {}
    names = []
    for name in header:
        times[name] = times.get(name, 0) + 1
        names.append(name if times[name] == 1 or not name else f"{name} ({times[name]})")
    again = [name for name, count in times.items() if count > 1 and name]
    notes = [f"{path.name} has several columns {name}: the second is {name} (2) here" for name in again]
    return names, notes


def json_of(path: Path, text: str) -> tuple[Any, list[str]]:
    """What a file of JSON or JSONL says, of JSONL the list of its objects; and what was left out of it.

    The last line of JSONL may be unfinished, which a logger leaves that was killed.
    """
    try:
        return json.loads(text), []
    except json.JSONDecodeError as error:
        first = text.lstrip().split("\n", 1)[0]
        if not _is_json(first):
            where = f"{path.name}, line {error.lineno}"
            way_out = "one JSON document, or an object a line"
            raise CurveFileError(where, _shown(text, error.lineno), f"not JSON ({error.msg})", way_out) from error
    except (ValueError, RecursionError) as error:
        raise CurveFileError(
            "file", path.name, "JSON that cannot be taken", "log numbers that a float holds"
        ) from error
    return _jsonl(path, text)


def _jsonl(path: Path, text: str) -> tuple[list[Any], list[str]]:
    found = []
    lines = text.rstrip().split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found.append(_Numbered(number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                return found, [unfinished(path)]
            where = f"{path.name}, line {number}"
            raise CurveFileError(where, short(line.strip()[:40]), "not JSON", "one object a line") from error
    return found, []


class _Numbered(NamedTuple):
    """An object of JSONL and its line."""

    number: int
    value: Any


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _shown(text: str, line: int) -> str:
    return short(text.split("\n")[line - 1].strip()[:40])


def json_rows(path: Path, document: Any) -> list[Row]:
    """The rows of a JSON document that is a list of objects, has one as `items`, or is a single object; the list is
    emptied."""
    found = document.get("items", [document]) if isinstance(document, Mapping) else document
    if not isinstance(found, list):
        raise CurveFileError("file", path.name, "a list of objects is needed", "write an object for each report")
    return list(_json_rows(path, found))


def _json_rows(path: Path, found: list[Any]) -> Iterator[Row]:
    file, told = path.name, 0
    for number, one in enumerate(found, start=1):
        found[number - 1] = None  # a row is made of it: there is no room for both of a million
        where, value = f"{file}, item {number}", one
        if isinstance(one, _Numbered):
            where, value = f"{file}, line {one.number}", one.value
        if not isinstance(value, Mapping):
            raise CurveFileError(where, short(value), "a JSON object is needed", "write an object for each report")
        cells = _visible_names(cells_of(value))
        told += len(cells)
        if told > MOST_CELLS:
            raise _too_many(f"{path.name} up to {where.removeprefix(f'{file}, ')}")
        yield Row(where, cells)


def _visible_names(cells: dict[str, Any]) -> dict[str, Any]:
    return {_visible_name(name): cell for name, cell in cells.items()}


@lru_cache(maxsize=20_000)
def _visible_name(name: str) -> str:
    """Of a name that a million rows have there is one."""
    return visible(name)


def parquet_rows(path: Path) -> list[Row]:
    """The rows of a Parquet file, without lists, which are neither numbers nor names.

    CurveFileError where it cannot be read, has two columns of one name, or nothing but lists.
    """
    with parquet_file(path) as file:
        for name, count in Counter(file.schema_arrow.names).items():
            if count > 1:  # a row, which has each name once, would have the last
                where = f"{visible(name)} in {path.name}"
                raise CurveFileError(where, f"{count} columns", "this column is needed once", "rename the others")
        _refuse_too_many(path, file.metadata.num_rows, len(file.schema_arrow.names))
        columns = single(file)
        if file.schema_arrow.names and not columns:
            told = "it has lists only, which are neither numbers nor names"
            raise CurveFileError("file", path.name, told, "name a log of a run")
        refuse_large(path, file, columns, as_a_whole=True)
        known: dict[str, str] = {}
        found = (row for batch in batches(file, columns) for row in rows_in(batch, known))
        return [Row(f"{path.name}, row {number}", _parquet_cells(row)) for number, row in enumerate(found, 1)]


def _refuse_too_many(path: Path, rows: int, columns: int) -> None:
    """The same value a thousand million times is a file of some kilobytes."""
    if rows * columns > MOST_CELLS:
        raise _too_many(f"{rows:,} rows of {columns:,} columns")


def _too_many(told: str) -> CurveFileError:
    way_out = "write the columns that are needed, or fewer rows"
    return CurveFileError("file", told, f"more than {MOST_CELLS:,} cells are not taken", way_out)


def _parquet_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Decimals, as which SQL engines write numbers, are the numbers that they say."""
    return {name: _bare(cell) for name, cell in _visible_names(cells_of(row)).items()}


def _bare(cell: Any) -> Any:
    if not isinstance(cell, Decimal):
        return cell
    return int(cell) if cell == cell.to_integral_value() else float(cell)
