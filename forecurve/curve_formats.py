"""Rows of evaluations from files: CSV, JSONL, JSON or Parquet; and what is wrong with a file that has none."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from forecurve.science.checks import short

REQUIRED = ("series", "compute", "reward")
OPTIONAL = ("prompts", "samples", "seed", "unit")
FORMATS = {".csv": "CSV", ".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL", ".parquet": "Parquet"}
Row = tuple[str, dict[str, Any]]  # where it stands, and its columns


class CurveFileError(ValueError):
    """A file of curves that cannot be read.

    Attributes:
        field: the column, series or file at fault.
        value: the offending value.
        way_out: what to do about it.
    """

    def __init__(self, field: str, value: Any, message: str, way_out: str):
        self.field = field
        self.value = value
        self.way_out = way_out
        super().__init__(f"{field}: {message}, got {value}; {way_out}")


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, whatever its format. CurveFileError where it is no file of evaluations."""
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(sorted(FORMATS))
        raise CurveFileError("file", path.name, f"the name must end in one of {known}", "save it as CSV")
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "no such file"
        raise CurveFileError("file", str(path), what, "check the path")
    reader = {"CSV": _csv_rows, "JSON": _json_rows, "JSONL": _jsonl_rows, "Parquet": _parquet_rows}[kind]
    try:
        yield from reader(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise CurveFileError("file", path.name, f"it is not {kind} in UTF-8 ({error})", "save it again") from error


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.DictReader(stream, skipinitialspace=True)
        reader.fieldnames = [column_of(name) for name in reader.fieldnames or []]
        check_once(reader.fieldnames)
        check_header(reader.fieldnames)
        for row in reader:
            beyond = row.pop(None, [])
            if any(cell.strip() for cell in beyond):
                raise CurveFileError(
                    f"line {reader.line_num}", short(beyond), "more cells than columns", "mend the line"
                )
            if any(cell and cell.strip() for cell in row.values()):  # spreadsheets leave blank lines at the end
                yield f"line {reader.line_num}", row


def _jsonl_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                row = _json_object(line, f"line {number}")
                check_header(list(row))
                yield f"line {number}", row


def _json_rows(path: Path) -> Iterator[Row]:
    """A list of rows, or an object that has it as `items`, which is how the exports write it."""
    way_out = 'one list of objects, or {"items": [...]}'
    document = _json_value(path.read_text(encoding="utf-8-sig"), "file", way_out)
    rows = document.get("items") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise CurveFileError("file", path.name, "a list of evaluations is needed", way_out)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise CurveFileError(f"item {number}", short(row), "a JSON object is needed", way_out)
        check_header(list(row))
        yield f"item {number}", row


def _json_object(line: str, where: str) -> dict[str, Any]:
    row = _json_value(line, where, "one object a line")
    if not isinstance(row, dict):
        raise CurveFileError(where, line.strip()[:40], "a JSON object is needed", "one object a line")
    return row


def _json_value(text: str, where: str, way_out: str) -> Any:
    shown = text.strip()[:40]
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except json.JSONDecodeError as error:
        raise CurveFileError(where, shown, f"not JSON ({error.msg})", way_out) from error
    except CurveFileError:
        raise
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists in lists without end
        raise CurveFileError(where, shown, "JSON that cannot be taken", way_out) from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named = [(column_of(name), value) for name, value in pairs]
    check_once([name for name, _ in named])
    return dict(named)


def _parquet_rows(path: Path) -> Iterator[Row]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        way_out = "pip install 'forecurve[parquet]', or save it as CSV"
        raise CurveFileError("file", path.name, "Parquet needs pyarrow", way_out) from error
    try:
        file = parquet.ParquetFile(path)
    except arrow.ArrowInvalid as error:
        raise CurveFileError("file", path.name, "it is not Parquet", "save it again, or save it as CSV") from error
    names = [column_of(name) for name in file.schema_arrow.names]
    check_once(names)
    check_header(names)
    present = [name for name in file.schema_arrow.names if column_of(name) in (*REQUIRED, *OPTIONAL)]
    number = 0
    for batch in file.iter_batches(columns=present):
        for row in batch.to_pylist():
            number += 1
            yield f"row {number}", {column_of(name): value for name, value in row.items()}


def column_of(name: str) -> str:
    """A column's name without blanks around it; one that is read may be written in capitals."""
    plain = name.strip()
    return plain.lower() if plain.lower() in (*REQUIRED, *OPTIONAL) else plain


def check_header(names: list[str]) -> None:
    for name in REQUIRED:
        if name not in names:
            shown = ", ".join(names[:8]) or "no columns"
            raise CurveFileError(name, shown, "this column is missing", f"name the columns {','.join(REQUIRED)}")


def check_once(names: Sequence[str]) -> None:
    """A column that is there twice has no one meaning; those that are not read may be."""
    for name in (*REQUIRED, *OPTIONAL):
        if names.count(name) > 1:
            raise CurveFileError(name, f"{names.count(name)} of them", "this column is needed once", "leave one out")
