"""How many statements the database is sent, and how many rows it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    """The statements of the block, as they are sent."""
    statements: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


@contextmanager
def rows_counted(engine: Engine) -> Iterator[list[int]]:
    """How many rows each statement of the block gave or changed."""
    rows: list[int] = []

    def note(_: Any, cursor: Any, *___: Any) -> None:
        rows.append(cursor.rowcount)

    event.listen(engine, "after_cursor_execute", note)
    try:
        yield rows
    finally:
        event.remove(engine, "after_cursor_execute", note)
