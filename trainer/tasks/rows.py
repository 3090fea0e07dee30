"""Rows of a dataset's files: read, checked one by one, faults named with file and row."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

from trainer.errors import ConfigurationError
from trainer.verifiers.code import unit_tests

DEFAULT_TASK = "math"
_ROWS_AT_ONCE = 1000  # the tests of a program may be megabytes
_COLUMNS = ("prompt", "answer", "task", "difficulty", "tests")

MOST_ROWS = 10_000_000
"""Of a file, all of which are in memory. The same row a thousand million times is Parquet of some kilobytes."""
MOST_IN_A_LINE = 256 << 20
"""Bytes of a row of JSONL; a file without ends of lines would be read as one."""
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


@dataclass(frozen=True, slots=True)
class Row:
    """One question. `answer` is what its task's verifier takes: text, or the tests of a program."""

    prompt: str
    answer: str
    task: str
    difficulty: float

    @property
    def place(self) -> float:
        """A number in [0, 1) that follows from the prompt's text alone."""
        return int.from_bytes(hashlib.sha256(self.prompt.encode()).digest()[:8]) / 2**64


def read_rows(field: str, path: str, verifiers: Mapping[str, str]) -> list[Row]:
    """All rows of a JSONL or Parquet file (by its ending): `prompt`, `answer`, and `task`, `difficulty`, `tests`.

    Args:
        field: the recipe's field that names the file, for errors.
        verifiers: the recipe's, task name to verifier.

    Raises:
        ConfigurationError: there is no such file, it is no such file, it has no rows, or a row is not one.
    """
    file = Path(path)
    if not file.is_file():
        raise ConfigurationError(f"{field} is {path!r}, and there is no such file")
    _refuse_ending(field, file)
    read = _parquet if file.suffix.lower() == ".parquet" else _json_lines
    rows = []
    for number, cells in read(file):
        if number > MOST_ROWS:
            raise ConfigurationError(f"{field} is {path!r}, which has more than {MOST_ROWS:,} rows; give fewer")
        rows.append(_row(f"{path}, row {number}", cells, verifiers))
    if not rows:
        raise ConfigurationError(f"{field} is {path!r}, which has no rows")
    return rows


def _refuse_ending(field: str, file: Path) -> None:
    if file.suffix.lower() in PACKED:
        raise ConfigurationError(f"{field} is {str(file)!r}, which is packed ({file.suffix}); unpack it")


def _json_lines(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open("rb") as lines:
        for number, line in enumerate(iter(partial(lines.readline, MOST_IN_A_LINE + 1), b""), start=1):
            if len(line) > MOST_IN_A_LINE:
                more = f"more than {MOST_IN_A_LINE:,} bytes"
                raise ConfigurationError(f"{file}, row {number}: has {more}; one object a line")
            if not line.strip():
                continue
            try:
                yield number, json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError as error:
                raise ConfigurationError(f"{file}, row {number}: not UTF-8 text ({error.reason})") from None
            except (ValueError, RecursionError) as error:
                raise ConfigurationError(f"{file}, row {number}: not JSON ({error}); one object a line") from None


def _parquet(file: Path) -> Iterator[tuple[int, Any]]:
    from forecurve.parquet_files import batches, opened, rows_in

    try:
        from pyarrow import ArrowException
    except ImportError:
        raise ConfigurationError(
            f"{file} is Parquet, and pyarrow is not installed: pip install 'forecurve[parquet]', or give JSONL"
        ) from None
    try:
        with opened(file) as parquet:
            names = parquet.schema_arrow.names
            columns = [name for name in names if name in _COLUMNS] or names[:1]
            known: dict[str, str] = {}
            found = (row for batch in batches(parquet, columns, _ROWS_AT_ONCE) for row in rows_in(batch, known))
            yield from enumerate(found, start=1)
    except (ArrowException, OSError) as error:
        raise ConfigurationError(f"{file} cannot be read as Parquet: {error}") from None


def _row(where: str, cells: Any, verifiers: Mapping[str, str]) -> Row:
    if not isinstance(cells, dict):
        raise ConfigurationError(f"{where}: a {type(cells).__name__}, not an object with prompt and answer")
    prompt, task = cells.get("prompt"), cells.get("task") or DEFAULT_TASK
    if not _is_text(prompt):
        raise ConfigurationError(f"{where}: prompt is {_shown(prompt)}, not text")
    if not isinstance(task, str) or task not in verifiers:
        raise ConfigurationError(
            f"{where}: task is {_shown(task)}, and task.verifiers has verifiers for {', '.join(sorted(verifiers))} only"
        )
    return Row(prompt, _answer(where, cells, verifiers[task]), task, _difficulty(where, cells))


def _answer(where: str, cells: Mapping[str, Any], verifier: str) -> str:
    if verifier == "code":
        return _tests(where, cells)
    answer = cells.get("answer")
    if _is_number(answer) or (isinstance(answer, Decimal) and answer.is_finite()):
        return str(answer)
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise ConfigurationError(f"{where}: no answer; every row needs one that its verifier can compare with")
    if not _is_text(answer):
        raise ConfigurationError(f"{where}: answer is {_shown(answer)}, neither text nor a number")
    return answer


def _tests(where: str, cells: Mapping[str, Any]) -> str:
    tests = cells.get("tests") or cells.get("answer")
    if tests is None:
        raise ConfigurationError(f"{where}: no answer; a program needs `tests`")
    try:
        return unit_tests(tests)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}") from None


def _difficulty(where: str, cells: Mapping[str, Any]) -> float:
    difficulty = cells.get("difficulty")
    if difficulty is None:
        return 0.0
    if not _is_number(difficulty) or abs(difficulty) > sys.float_info.max:
        raise ConfigurationError(f"{where}: difficulty is {_shown(difficulty)}, not a number of a usable size")
    return float(difficulty)


def _is_text(value: Any) -> TypeGuard[str]:
    """Something to read that every file can hold: half of a surrogate pair is no character."""
    return isinstance(value, str) and bool(value.strip()) and not any("\ud800" <= c <= "\udfff" for c in value)


def _is_number(value: Any) -> bool:
    """A whole number of any size, or a finite one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return isinstance(value, numbers.Integral) or math.isfinite(value)


def _shown(value: Any) -> str:
    return f"{value!r:.60}"
