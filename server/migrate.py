"""Bring a database to the newest revision: `python -m server.migrate`, or `upgrade(url)`.

Works from a checkout and from an installed tree alike: the scripts are found beside this package, no alembic.ini.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from server.database import connected_once
from server.database_faults import in_words
from server.events.service import forget_numbers_ahead
from server.settings import get_settings

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


@cache
def newest() -> str:
    """The revision that this version of the service works with."""
    return str(ScriptDirectory(str(SCRIPTS)).get_current_head())


def revision_of(session: Session) -> str | None:
    """The revision of the session's database; None where none was ever made there."""
    there = session.scalar(text("SELECT to_regclass('alembic_version') IS NOT NULL"))
    return session.scalar(text("SELECT version_num FROM alembic_version")) if there else None


def settle(url: str) -> None:
    """Mend what a dump of another cluster brings that is true only there. The newest revision is in place."""
    with connected_once(url) as connection, connection.begin():
        forget_numbers_ahead(connection)


def main() -> int:
    try:
        url = get_settings().database_url  # a fault of any setting is told before the database is touched
    except SystemExit as faults:
        print(faults, file=sys.stderr)
        return 2
    try:
        upgrade(url)
        settle(url)
    except CommandError as error:  # revisions of a newer version are not known here
        told = f"the database is of another version of Forecurve, and this one knows revisions up to {newest()}"
        print(f"{error}: {told}; start that one, or restore a backup of before", file=sys.stderr)
        return 1
    except DBAPIError as error:
        if not (words := in_words(error)):
            raise
        print(words, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
