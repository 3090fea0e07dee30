"""What the benchmarks share: their arguments and a plain table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def parser(doc: str | None, runs: int | None = None) -> argparse.ArgumentParser:
    """--runs and --json; the docstring of the script is its help."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--runs", type=int, default=runs, help=f"how many; {runs or 'all'} when left out")
    made.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    return made


def answer_rows(rows: Sequence[dict[str, object]], as_json: bool) -> None:
    """A row a cell, all with the same columns: as JSON, or as a table."""
    if as_json:
        answer({"cells": rows})
    else:
        table(list(rows[0]), [list(row.values()) for row in rows])


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns as wide as they need to be; the first to the left, the others to the right."""
    cells = [list(columns), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    for row in cells:
        line = [
            text.ljust(w) if at == 0 else text.rjust(w) for at, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(line).rstrip())


def cell(value: Any) -> str:
    """A figure with the digits it deserves; a dash for none."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1 else f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return str(value)


def note(text: str) -> None:
    """A word on stderr while the work goes on."""
    print(text, file=sys.stderr, flush=True)


def show(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Rows with the same columns, as JSON or as a table."""
    if as_json:
        answer({"rows": rows})
    else:
        table(list(rows[0]), [list(row.values()) for row in rows])


def answer(body: Any) -> None:
    """The one JSON object; never NaN."""
    print(json.dumps(body, indent=2, allow_nan=False))
