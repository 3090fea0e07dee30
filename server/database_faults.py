"""What a database refused, in words and with the way out, for the commands that an administrator starts by hand.

Of Postgres' own words the first line is told: it names host, user and database, and never the password.
"""

from __future__ import annotations

from psycopg.errors import DiskFull, InsufficientPrivilege, InvalidParameterValue, LockNotAvailable, UndefinedTable
from sqlalchemy.exc import DBAPIError

LOCK_TIMEOUT = "FORECURVE_MIGRATION_LOCK_TIMEOUT"

_WAYS_OUT: dict[type[BaseException], str] = {
    InvalidParameterValue: f"{LOCK_TIMEOUT} must be a time as PostgreSQL writes it, such as 10s or 500ms",
    LockNotAvailable: f"end the other processes on this database, or wait for longer with {LOCK_TIMEOUT}",
    InsufficientPrivilege: "the user of DATABASE_URL must own the database, or be allowed to make tables in it",
    UndefinedTable: "run `python -m server.migrate` first",
    DiskFull: "make room on the database's disk",
}


def in_words(error: DBAPIError) -> str | None:
    """One line; None for what is a fault of ours and needs its traceback."""
    if error.statement is None:  # nothing was asked yet: there was no connection
        way = "see that it runs there, and that user, password and name are right"
        return f"DATABASE_URL: the database cannot be reached ({first_line(error)}); {way}"
    known = next((told for kind, told in _WAYS_OUT.items() if isinstance(error.orig, kind)), None)
    return f"the database refused: {first_line(error)}; {known}" if known else None


def first_line(error: DBAPIError) -> str:
    told = str(error.orig).strip() or type(error.orig).__name__
    return told.splitlines()[0].removeprefix("connection failed: ")
