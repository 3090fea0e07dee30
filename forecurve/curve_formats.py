"""Rows of evaluations from files: CSV, JSONL, JSON or Parquet; and what is wrong with a file that has none."""

from __future__ import annotations

import csv
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from forecurve.curve_cells import CurveFileError
from forecurve.parquet_files import batches, parquet_file, refuse_large, rows_in
from forecurve.science.checks import short
from forecurve.signs import visible
from forecurve.spreadsheets import unguarded

NUMBERS = ("compute", "reward")
"""Columns that every file needs."""
REQUIRED = ("series", *NUMBERS)
"""Columns that a file of several runs needs."""
NAMES_OF_RUNS = ("run_name", "run", "series", "run_id")
"""Columns that name the run of a row, the first that is there; a file that has none is of one run."""
OPTIONAL = ("prompts", "samples", "seed", "unit")
TEXTS = ("series", "unit")
FORMATS = {".csv": "CSV", ".tsv": "CSV", ".json": "JSON", ".jsonl": "JSONL", ".ndjson": "JSONL", ".parquet": "Parquet"}
_PACKED = (".bz2", ".gz", ".xz", ".zip", ".zst")
MOST_IN_A_LINE = 4 << 20
"""Characters. A file without ends of lines would be read into memory as its first one."""
MOST_JSON_BYTES = 256 << 20
"""Of a document, which is in memory as a whole, some ten times as large."""
_NAMED_DELIMITER = re.compile(r'"?sep=(?P<sign>[,;|\t])"?', re.IGNORECASE)
Row = tuple[str, dict[str, Any]]  # where it stands, and its columns


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, whatever its format; without a column `series` all are of one run, called as the file is.

    CurveFileError where it is no file of evaluations.
    """
    if path.is_dir():
        raise CurveFileError("file", str(path.resolve()), "it is a folder", "name a file in it")
    kind = FORMATS.get(path.suffix.lower())
    if kind is None:
        known = ", ".join(sorted(FORMATS))
        packed = path.suffix.lower() in _PACKED
        way_out = "unpack it, or pipe it unpacked into `forecurve fit -`" if packed else "save it as CSV"
        raise CurveFileError("file", path.name, f"the name must end in one of {known}", way_out)
    if not path.is_file():
        raise CurveFileError("file", str(path), "no such file", "check the path")
    reader = {"CSV": _csv_rows, "JSON": _json_rows, "JSONL": _jsonl_rows, "Parquet": _parquet_rows}[kind]
    try:
        yield from _of_one_run(reader(path), path.stem)
    except UnicodeDecodeError as error:  # what a spreadsheet calls Unicode text is UTF-16
        told = f"it is not {kind} in UTF-8 ({error})"
        raise CurveFileError("file", path.name, told, f"save it as {kind} UTF-8") from error
    except csv.Error as error:
        raise CurveFileError("file", path.name, f"it is not {kind} ({error})", "save it again") from error
    except OSError as error:  # no leave to read it
        raise CurveFileError("file", path.name, f"it cannot be read ({error})", "save it again") from error


def _of_one_run(rows: Iterator[Row], name: str) -> Iterator[Row]:
    """Rows as they are where they name their run; all with this name where none does."""
    first = next(rows, None)
    if first is None:
        return
    is_named = "series" in first[1]
    for where, row in chain([first], rows):
        if ("series" in row) != is_named:
            value, told = short(row.get("series", "none")), "only some rows have this column"
            raise CurveFileError(f"series at {where}", value, told, "name the run in every row")
        yield where, row if is_named else row | {"series": name}


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        lines = CsvLines(lines_of(stream), delimiter_of(stream))
        reader = csv.DictReader(lines, skipinitialspace=True, delimiter=lines.delimiter)
        while reader.fieldnames is not None and not any(name.strip() for name in reader.fieldnames):
            reader.fieldnames = None  # a blank line: the header is behind it
        reader.fieldnames = [column_of(name) for name in reader.fieldnames or []]
        lines.check_row()
        check_once(reader.fieldnames)
        check_header(reader.fieldnames)
        for row in reader:
            lines.check_row()
            beyond = row.pop(None, [])
            if any(cell.strip() for cell in beyond):
                raise CurveFileError(
                    f"line {reader.line_num}", short(beyond), "more cells than columns", "mend the line"
                )
            if any(cell and cell.strip() for cell in row.values()):  # spreadsheets leave blank lines at the end
                yield f"line {reader.line_num}", row | {name: unguarded(row[name]) for name in TEXTS if row.get(name)}


class CsvLines(Iterator[str]):
    """The lines of a CSV file for a reader, a first one that names the delimiter as a blank one, and a check of the row
    that the reader gave last.

    A reader takes all lines behind a quote that is never closed for one cell: without the check a file would end there,
    and nobody be told.

    Args:
        stream: of the file, at its beginning.
        file: begins the place of a fault, `runs.csv, ` say.
        growing: the last cell may still be on its way.
    """

    def __init__(self, stream: Iterable[str], delimiter: str, file: str = "", *, growing: bool = False):
        self.delimiter = delimiter
        self._file = file
        self._growing = growing
        self._numbered = enumerate(stream, start=1)
        self._row: list[tuple[int, str]] = []

    def __next__(self) -> str:
        number, line = next(self._numbered)
        if number == 1 and named_delimiter(line) is not None:
            line = "\n"
        self._row.append((number, line))
        return line

    def check_row(self) -> None:
        """That a row of several lines has them in cells that end with their quote. CurveFileError names its line."""
        row, self._row = [(number, line) for number, line in self._row if line.strip()], []
        if len(row) < 2:
            return
        lines = (line for _, line in row)
        try:
            deque(csv.reader(lines, strict=True, skipinitialspace=True, delimiter=self.delimiter), maxlen=0)
        except csv.Error as error:
            if self._growing and next(self._numbered, None) is None:
                return
            number, line = row[0]
            told, way_out = "a quote opens a cell that does not end with one", "close it or leave it out"
            raise CurveFileError(f"{self._file}line {number}", short(line.strip()), told, way_out) from error


def lines_of(stream: TextIO) -> Iterator[str]:
    """The lines of a file. CurveFileError names one that is too long to be of an evaluation."""
    for number, line in enumerate(iter(partial(stream.readline, MOST_IN_A_LINE + 1), ""), start=1):
        if len(line) > MOST_IN_A_LINE:
            told = f"more than {MOST_IN_A_LINE:,} characters"
            raise CurveFileError(f"line {number}", told, "this is too long for an evaluation", "write one a line")
        yield line


def delimiter_of(stream: TextIO) -> str:
    """What stands between the cells of a CSV file: a spreadsheet copies tabs, and in some countries saves semicolons.

    It is known by a first line that names it, else by the header, the first line that is not blank. The stream is at
    its beginning before and after.
    """
    first = stream.readline(MOST_IN_A_LINE)
    rest = iter(partial(stream.readline, MOST_IN_A_LINE), "")
    header = first if first.strip() else next((line for line in rest if line.strip()), "")
    stream.seek(0)
    named = named_delimiter(first)
    if named is not None:
        return named
    for sign in "\t;":
        if {*NUMBERS} <= {column_of(name.strip().strip('"')) for name in header.split(sign)}:
            return sign
    return ","


def named_delimiter(line: str) -> str | None:
    r"""What a first line names as the delimiter, as spreadsheets write and read it; None of any other line.

    >>> named_delimiter("sep=;\r\n"), named_delimiter("series,compute,reward")
    (';', None)
    """
    named = _NAMED_DELIMITER.fullmatch(line.strip("\r\n "))
    return None if named is None else named["sign"]


def _jsonl_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig") as stream:
        for number, line in enumerate(lines_of(stream), start=1):
            if line.strip():
                where = f"line {number}"
                row = _json_value(line, where, "one object a line")
                if not isinstance(row, _Object):
                    raise CurveFileError(where, line.strip()[:40], "a JSON object is needed", "one object a line")
                yield where, row.columns(where)


def _json_rows(path: Path) -> Iterator[Row]:
    """A list of rows, or an object that has it as `items`, which is how the exports write it."""
    way_out = 'one list of objects, or {"items": [...]}'
    document = _json_value(json_text(path), "file", way_out)
    rows = document.get("items") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise CurveFileError("file", path.name, "a list of evaluations is needed", way_out)
    for number, row in enumerate(rows, start=1):
        where = f"item {number}"
        if not isinstance(row, _Object):
            raise CurveFileError(where, short(row), "a JSON object is needed", way_out)
        yield where, row.columns(where)


def json_text(path: Path) -> str:
    """What a file of JSON says. CurveFileError where it is too large to be taken as a whole."""
    size = path.stat().st_size
    if size > MOST_JSON_BYTES:
        told = f"JSON of more than {MOST_JSON_BYTES >> 20} MB is not taken as a whole"
        raise CurveFileError("file", f"{size >> 20:,} MB", told, "write it as JSONL, an object a line")
    return path.read_text(encoding="utf-8-sig")


class _Object(dict[str, Any]):
    """An object of JSON that remembers names that were there twice."""

    def __init__(self, pairs: list[tuple[str, Any]]):
        super().__init__(pairs)
        self._pairs = pairs

    def columns(self, where: str) -> dict[str, Any]:
        """As a row; only here do names matter, for what a row has inside is not read."""
        names = [column_of(name) for name, _ in self._pairs]
        check_once(names, where)
        check_header(names, where)
        return dict(zip(names, (value for _, value in self._pairs), strict=True))


def _json_value(text: str, where: str, way_out: str) -> Any:
    shown = text.strip()[:40]
    try:
        return json.loads(text, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        raise CurveFileError(where, shown, f"not JSON ({error.msg})", way_out) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists in lists without end
        raise CurveFileError(where, shown, "JSON that cannot be taken", way_out) from error


def _parquet_rows(path: Path) -> Iterator[Row]:
    with parquet_file(path) as file:
        names = [column_of(name) for name in file.schema_arrow.names]
        check_once(names)
        check_header(names)
        present = [name for name in file.schema_arrow.names if column_of(name) in (*REQUIRED, *OPTIONAL)]
        refuse_large(path, file, present)
        rows = (row for batch in batches(file, present) for row in rows_in(batch))
        for number, row in enumerate(rows, start=1):
            yield f"row {number}", {column_of(name): value for name, value in row.items()}


def column_of(name: str) -> str:
    """A column's name without blanks around it; one that is read may be written in capitals."""
    plain = name.strip()
    return plain.lower() if plain.lower() in (*REQUIRED, *OPTIONAL) else plain


def check_header(names: Sequence[str], where: str = "") -> None:
    """That the columns which are needed are there: `series` too where another one seems to name several runs.

    `where` is the place of a row that has names of its own.
    """
    names_runs = next((name for name in names if name.lower() in NAMES_OF_RUNS), None)
    for name in NUMBERS if names_runs is None else REQUIRED:
        if name not in names:
            known = ", ".join(names[:8])
            shown = visible(known if len(known) <= 80 else f"{known[:77]}...") or "no columns"
            way_out = f"name the columns {','.join(REQUIRED)}"
            if name == "series" and names_runs is not None:
                way_out += f"; {visible(names_runs)} seems to be the first of them"
            elif names and len({*REQUIRED} & {*names}) < 2:
                way_out += ", or let `forecurve convert` make them of what another tool wrote"
            raise CurveFileError(_at(name, where), shown, "this column is missing", way_out)


def check_once(names: Sequence[str], where: str = "") -> None:
    """A column that is there twice has no one meaning; those that are not read may be."""
    for name in (*REQUIRED, *OPTIONAL):
        if names.count(name) > 1:
            told = f"{names.count(name)} of them"
            raise CurveFileError(_at(name, where), told, "this column is needed once", "leave one out")


def _at(column: str, where: str) -> str:
    return f"{column} at {where}" if where else column
