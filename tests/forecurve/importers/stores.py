"""Trackers' databases, made of what the trackers themselves once wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"


def stored(path: Path, dump: str) -> Path:
    """The database at `path`, of what `.dump` said of its tables: `mlflow-3.17.2`, `mlflow-2.9.2`, `trackio-0.43.0`."""
    path.write_bytes(_written(dump))
    return path


@cache
def _written(dump: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript((DATA / f"{dump}.sql").read_text())
        return database.serialize()
