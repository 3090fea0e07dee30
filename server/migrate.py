"""Bring a database to the newest revision: `python -m server.migrate`, or `upgrade(url)`.

Works from a checkout and from an installed tree alike: the scripts are found beside this package, no alembic.ini.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy.pool import NullPool

from server.database import make_engine, psycopg_url
from server.events.service import forget_numbers_ahead

SCRIPTS = Path(__file__).resolve().parent.parent / "migrations"


def alembic_config(url: str) -> Config:
    """Alembic's configuration for the database at `url`."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["url"] = url
    return config


def upgrade(url: str, revision: str = "head") -> None:
    """Run the migrations that are missing up to `revision`; does nothing when there are none."""
    command.upgrade(alembic_config(url), revision)


def settle(url: str) -> None:
    """Mend what a dump of another cluster brings that is true only there. The newest revision is in place."""
    engine = make_engine(url, poolclass=NullPool)
    try:
        with engine.begin() as connection:
            forget_numbers_ahead(connection)
    finally:
        engine.dispose()


def main() -> int:
    url = os.environ.get("DATABASE_URL")
    if not url:
        print("Set DATABASE_URL to the database to migrate.", file=sys.stderr)
        return 2
    try:
        psycopg_url(url)
    except ValueError as fault:
        print(f"DATABASE_URL {fault}", file=sys.stderr)
        return 2
    upgrade(url)
    settle(url)
    return 0


if __name__ == "__main__":
    sys.exit(main())
