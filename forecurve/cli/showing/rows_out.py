"""Rows of data for other programs: CSV, JSONL or JSON, to stdout or into a file that is whole or not there."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from forecurve.spreadsheets import guarded

from ..asking.service import Answer
from ..errors import bad_input

Row = Mapping[str, Any]


class Form(StrEnum):
    """How rows are written."""

    csv = "csv"
    jsonl = "jsonl"
    json = "json"


FormFlag = Annotated[
    Form | None, typer.Option("--format", help="How it is written; else by the file's name, and CSV on stdout.")
]
OutFlag = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where it goes, written whole; else stdout.")
]


def rows_answer(columns: Sequence[str], rows: Iterable[Row], form: Form | None, out: Path | None) -> Answer:
    """The answer of a command that gives rows: into `out`, or to stdout as they come."""
    chosen = form or _form_of(out)
    if out is None or str(out) == "-":
        return Answer(lambda: {"items": list(rows)}, lambda: _WRITERS[chosen](sys.stdout, columns, rows))
    with whole_file(out) as stream:
        count = _WRITERS[chosen](stream, columns, rows)
    return Answer({"file": str(out), "format": str(chosen), "rows": count}, f"{count} rows in {out}")


@contextmanager
def whole_file(path: Path, flag: str = "--output") -> Iterator[TextIO]:
    """A file to write, which takes its name once all of it is written; before that, what was there stays.

    Args:
        flag: of the command that names it, for what is said where it cannot be written.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():  # a pipe or a device is not replaced
        with _opened(path, path, flag) as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with _opened(temporary, path, flag) as stream:
            yield stream
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _opened(path: Path, named: Path, flag: str) -> TextIO:
    try:
        return path.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise bad_input(f"{flag}: {named} cannot be written ({error.strerror}); name another file") from error


_SUFFIXES = {"": Form.csv, ".csv": Form.csv, ".jsonl": Form.jsonl, ".ndjson": Form.jsonl, ".json": Form.json}


def _form_of(out: Path | None) -> Form:
    """By the file's name; a name that promises anything else would be a lie to whoever opens it."""
    suffix = out.suffix.lower() if out and str(out) != "-" else ""
    if suffix not in _SUFFIXES:
        raise bad_input(f"--output: {suffix} is none of .csv, .jsonl and .json; name the file so, or give --format")
    return _SUFFIXES[suffix]


def _write_csv(stream: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    written = 0
    for row in rows:
        writer.writerow([guarded(cell) if isinstance(cell := row[column], str) else cell for column in columns])
        written += 1
    return written


def _write_jsonl(stream: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    written = 0
    for row in rows:
        stream.write(json.dumps(row, allow_nan=False) + "\n")
        written += 1
    return written


def _write_json(stream: TextIO, columns: Sequence[str], rows: Iterable[Row]) -> int:
    items = list(rows)
    stream.write(json.dumps({"items": items}, indent=2, allow_nan=False) + "\n")
    return len(items)


_WRITERS = {Form.csv: _write_csv, Form.jsonl: _write_jsonl, Form.json: _write_json}
"""Each writes all rows and says how many they were."""
