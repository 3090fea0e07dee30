"""The declarative base, the engine and the session: one dialect, Postgres."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import Connection, DateTime, Engine, MetaData, cast, create_engine, make_url
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.pool import NullPool
from sqlalchemy.types import UserDefinedType

_NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base of every table. Times carry a zone; dicts and lists are JSONB."""

    metadata = MetaData(naming_convention=_NAMING)
    type_annotation_map: ClassVar = {
        datetime: DateTime(timezone=True),
        dict[str, Any]: JSONB,
        list[Any]: JSONB,
    }


class TransactionId(UserDefinedType[int]):
    """Postgres' xid8: the number of a transaction, by which readers of events keep their cursor."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"

    def bind_processor(self, dialect: Any) -> Any:
        """xid8 has no cast from a number, only from text."""
        return lambda value: None if value is None else str(value)

    def bind_expression(self, bindparam: Any) -> Any:
        return cast(bindparam, self)

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return lambda value: None if value is None else int(value)


_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


class _Numbers:
    """Rising numbers: 48 bits of milliseconds, 80 random bits; within a millisecond each is above the one before, so
    that the arms of a sweep, made at once, stay in order."""

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def next(self) -> int:
        fresh = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
        with self._lock:
            self._last = max(fresh, self._last + 1 + secrets.randbits(32))
            return self._last


_NUMBERS = _Numbers()


def new_id(prefix: str) -> str:
    """`prefix_` and 26 characters that sort by creation, see `_Numbers`."""
    number = _NUMBERS.next()
    digits = [_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def is_id(text: str, *, prefix: str) -> bool:
    """Whether `new_id` may have made it."""
    start, _, digits = text.partition("_")
    return start == prefix and len(digits) == 26 and set(digits) <= set(_CROCKFORD)


@dataclass(frozen=True)
class Patience:
    """How long Postgres bears with the connections of an engine, in seconds; 0 is for ever.

    Attributes:
        statement_s: one statement may take.
        lock_s: one may wait for what another transaction holds.
        idle_s: a transaction may do nothing. One that nobody ends would hold every reader of events back (see
            events.service).
    """

    statement_s: float = 0.0
    lock_s: float = 0.0
    idle_s: float = 60.0

    def __str__(self) -> str:
        """As the options of a connection; milliseconds rounded up, for 0 would be for ever."""
        limits = {
            "statement_timeout": self.statement_s,
            "lock_timeout": self.lock_s,
            "idle_in_transaction_session_timeout": self.idle_s,
        }
        return " ".join(f"-c {name}={math.ceil(1000 * seconds)}" for name, seconds in limits.items())


def psycopg_url(url: str) -> str:
    """The URL as SQLAlchemy's for psycopg 3, whatever spelling of it was given.

    Raises:
        ValueError: it is none of Postgres. Says no more of it than its scheme: it holds a password.
    """
    wanted = "it must be postgresql://USER:PASSWORD@HOST/NAME"
    scheme, found, rest = url.partition("://")
    if not found:
        raise ValueError(f"is no URL; {wanted}")
    if scheme not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ValueError(f"begins with {scheme}:; {wanted}")
    ours = f"postgresql+psycopg://{rest}"
    try:
        holds = "@" not in (make_url(ours).host or "")  # else part of the password would be taken for the host
    except (ArgumentError, ValueError):
        holds = False
    if not holds:
        raise ValueError(f"cannot be read; {wanted}, with @ in its password as %40")
    return ours


def make_engine(url: str, patience: Patience = Patience(), **options: Any) -> Engine:
    """An engine on psycopg 3, whatever spelling of the Postgres URL was given. Times come back in UTC."""
    ours = {"connect_timeout": 5, "options": f"-c timezone=UTC {patience}"}
    options["connect_args"] = ours | options.get("connect_args", {})
    try:
        url = psycopg_url(url)
    except ValueError as fault:
        raise ValueError(f"DATABASE_URL {fault}") from None
    # Errors go to the log without the values of their statement: among them are secrets of channels.
    return create_engine(url, pool_pre_ping=True, hide_parameters=True, **options)


@contextmanager
def connected_once(url: str) -> Iterator[Connection]:
    """One connection to this database, and nothing left of it."""
    engine = make_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def make_sessions(engine: Engine) -> sessionmaker[Session]:
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def transaction(sessions: sessionmaker[Session]) -> Iterator[Session]:
    """A session that commits at the end of the block, or rolls back when it raises. Only edges call this.

    An error of a connection that was lost while Postgres was asked to commit carries `MAY_BE_STORED` as a note.
    """
    committing = False
    try:
        with sessions() as session, session.begin():
            yield session
            session.flush()  # whatever fails until here has stored nothing
            committing = True
    except DBAPIError as error:
        if committing and error.connection_invalidated:
            error.add_note(MAY_BE_STORED)
        raise


MAY_BE_STORED = "The connection was lost during the commit, which may have been made."
