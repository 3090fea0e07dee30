"""Alembic's entry: migrates the database named by `config.attributes["url"]`, or by DATABASE_URL.

One migrator at a time: a session-level advisory lock is taken first, so two processes that start together
migrate one after the other and the second finds nothing to do. `lock_timeout` keeps a migration from queueing
behind a long transaction and stopping every query that comes after it.
"""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.dialects.postgresql.base import ischema_names

from server.database import TransactionId, connected_once
from server.models import Base

ADVISORY_LOCK = 0x466F7265  # "Fore": any number that nothing else in this database uses
LOCK_TIMEOUT = os.environ.get("FORECURVE_MIGRATION_LOCK_TIMEOUT", "10s")

ischema_names["xid8"] = TransactionId  # so that `alembic check` can compare the column


def main() -> None:
    url = context.config.attributes.get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("No database to migrate: set DATABASE_URL.")
    with connected_once(url) as connection:
        _migrate_alone(connection)


def _migrate_alone(connection: Connection) -> None:
    connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
    connection.commit()  # the lock belongs to the session and outlives this transaction
    try:
        _migrate(connection)
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
        connection.commit()


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        connection.execute(text("SELECT set_config('lock_timeout', :timeout, true)"), {"timeout": LOCK_TIMEOUT})
        context.run_migrations()


main()
