"""Advisory locks, for work that is to be done by one process at a time."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker


def _key(name: str) -> int:
    return zlib.crc32(f"forecurve:{name}".encode())


def wait_for_turn(session: Session, name: str) -> None:
    """Hold lock `name` until this transaction ends, after whoever holds it now."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(name)})


HELD_S = 120.0
"""How long a turn is held at most: twice as long as a task may take."""


@contextmanager
def only_one(sessions: sessionmaker[Session], name: str, held_s: float = HELD_S) -> Iterator[bool]:
    """True when this process has the turn, False when another has it just now.

    The lock lives on a connection of its own and in no transaction, so that it may be held over network calls; it goes
    with the connection when the process dies. Where the process stands still instead, or its machine was cut off,
    Postgres ends the connection after `held_s`; else nobody would have a turn until then.
    """
    engine: Engine = sessions.kw["bind"]
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"SET idle_session_timeout = {math.ceil(1000 * held_s)}"))
        mine = bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)}))
        try:
            yield mine
        finally:
            try:
                if mine:
                    connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _key(name)})
                connection.execute(text("RESET idle_session_timeout"))  # it goes back to the pool
            except BaseException:  # a task's time limit too: what may hold the lock does not go back
                connection.invalidate()
                raise
