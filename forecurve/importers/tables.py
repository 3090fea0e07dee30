"""Tables as trackers and loggers write them: CSV, JSONL, JSON or Parquet with columns of any name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecurve.curve_cells import CurveFileError
from forecurve.science.checks import short
from forecurve.signs import visible

from .logs import Row, cells_of

Lines = list[tuple[int, list[str]]]  # each with the number of its line


@dataclass(frozen=True)
class Sheet:
    """A CSV file: its header as it stands, and its rows with as many cells."""

    header: list[str]
    lines: Lines


def sheet_of(path: Path, text: str) -> Sheet:
    """A CSV file, whose cells are parted by commas, semicolons or tabs. CurveFileError names a line that is none."""
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, delimiter=_delimiter(text))
    lines: Lines = []
    try:
        header = [visible(name.strip()) for name in next(reader, [])]
        for cells in reader:
            if any(cell.strip() for cell in cells[len(header) :]):
                raise CurveFileError(
                    f"{path.name}, line {reader.line_num}",
                    short(cells[len(header) :]),
                    "more cells than columns",
                    "mend the line",
                )
            if any(cell.strip() for cell in cells):
                # a logger that was killed leaves a line unfinished
                lines.append((reader.line_num, [*cells[: len(header)], *[""] * (len(header) - len(cells))]))
    except csv.Error as error:
        where = f"{path.name}, line {reader.line_num}"
        raise CurveFileError(where, str(error), "it is not CSV", "export it again") from error
    return Sheet(header, lines)


def _delimiter(text: str) -> str:
    """What parts the columns best, by the header; a comma where nothing does."""
    header = text.split("\n", 1)[0]
    if "," in header:
        return ","
    return "\t" if "\t" in header else ";" if ";" in header else ","


def sheet_rows(path: Path, sheet: Sheet) -> tuple[list[Row], list[str]]:
    """The rows by the names of their columns, and what to say of columns that have the same one."""
    names, notes = _once_each(path, sheet.header)
    rows = [
        Row(f"{path.name}, line {number}", cells_of(dict(zip(names, cells, strict=True))))
        for number, cells in sheet.lines
    ]
    return [Row(row.where, {name: cell for name, cell in row.cells.items() if name}) for row in rows], notes


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
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    found = []
    for at, (number, line) in enumerate(lines):
        try:
            found.append(_Numbered(number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            if at == len(lines) - 1:
                return found, [f"{path.name}: its last line is unfinished and left out"]
            where = f"{path.name}, line {number}"
            raise CurveFileError(where, short(line.strip()[:40]), "not JSON", "one object a line") from error
    return found, []


@dataclass(frozen=True)
class _Numbered:
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
    """The rows of a JSON document that is a list of objects, has one as `items`, or is a single object."""
    found = document.get("items", [document]) if isinstance(document, Mapping) else document
    if not isinstance(found, list):
        raise CurveFileError("file", path.name, "a list of objects is needed", "write an object for each report")
    return list(_json_rows(path, found))


def _json_rows(path: Path, found: list[Any]) -> Iterator[Row]:
    for number, one in enumerate(found, start=1):
        where, value = f"{path.name}, item {number}", one
        if isinstance(one, _Numbered):
            where, value = f"{path.name}, line {one.number}", one.value
        if not isinstance(value, Mapping):
            raise CurveFileError(where, short(value), "a JSON object is needed", "write an object for each report")
        yield Row(where, _visible_names(cells_of(value)))


def _visible_names(cells: dict[str, Any]) -> dict[str, Any]:
    return {visible(name): cell for name, cell in cells.items()}


def parquet_rows(path: Path) -> list[Row]:
    """The rows of a Parquet file; CurveFileError where pyarrow is missing or the file is damaged."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        way_out = "pip install 'forecurve[parquet]', or save it as CSV"
        raise CurveFileError("file", path.name, "Parquet needs pyarrow", way_out) from error
    try:
        found = parquet.read_table(path).to_pylist()
    except (arrow.ArrowException, OSError) as error:
        raise CurveFileError("file", path.name, "it is not Parquet", "save it again, or save it as CSV") from error
    return [Row(f"{path.name}, row {number}", _visible_names(cells_of(row))) for number, row in enumerate(found, 1)]
