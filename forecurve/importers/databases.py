"""Databases that trackers keep (SQLite): MLflow's `mlflow.db`, and trackio's, one a project. They may be in use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from forecurve.curve_cells import CurveFileError

from . import mlflow_stores, trackio_stores
from .logs import Reading

_Reader = Callable[[sqlite3.Connection, Path], Reading]
_READERS: tuple[tuple[Callable[[sqlite3.Connection], bool], _Reader], ...] = (
    (mlflow_stores.is_mlflows, mlflow_stores.read_tables),
    (trackio_stores.is_trackios, trackio_stores.read_tables),
)

_SEALED = ("unable to open database file", "attempt to write a readonly database")
"""What SQLite says of a database in write-ahead mode, beside which it cannot put a file of its own."""


def is_database(start: bytes) -> bool:
    """By how it begins; of a tracker or of anybody else."""
    return start.startswith(b"SQLite format 3\0")


def databases_in(folder: Path) -> list[Path]:
    """Those of trackers; others may lie beside them."""
    return [path for path in sorted(folder.glob("*.db")) if path.is_file() and _is_of_tracker(path)]


def _is_of_tracker(path: Path) -> bool:
    with path.open("rb") as stream:
        if not is_database(stream.read(16)):
            return False
    try:
        with closing(_opened(path)) as database:
            return _reader(database) is not None
    except sqlite3.Error:
        return True  # who names what cannot be read is told so


def read_database(path: Path) -> Reading:
    """The logs of the runs in it.

    Raises:
        CurveFileError: it is none of these, or cannot be read.
    """
    try:
        with closing(_opened(path)) as database:
            reader = _reader(database)
            if reader is None:
                known = "name MLflow's or trackio's, or export it as CSV or Parquet"
                raise CurveFileError("file", path.name, "it is a database of a kind that is not read", known)
            return reader(database, path)
    except CurveFileError:  # which is a ValueError, too
        raise
    except (sqlite3.Error, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CurveFileError("file", path.name, f"the database cannot be read ({error})", "copy it again") from error


def _opened(path: Path) -> sqlite3.Connection:
    """To read; of one in a folder that cannot be written to, what was written to it whole."""
    url = f"file:{quote(str(path.resolve()))}?mode=ro"
    database = sqlite3.connect(url, uri=True)
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        database.close()
        if not any(told in str(error) for told in _SEALED):
            raise
        return sqlite3.connect(f"{url}&immutable=1", uri=True)
    return database


def _reader(database: sqlite3.Connection) -> _Reader | None:
    return next((reader for is_its, reader in _READERS if is_its(database)), None)
