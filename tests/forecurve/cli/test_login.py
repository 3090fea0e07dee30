"""`forecurve login` on a database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from forecurve.cli.supervisor.files import read_json
from tests.conftest import TEMPLATE, database_url

from .conftest import spawn
from .services import clean_environment

NAME = "forecurve_login"
ADMINS = "SELECT prefix FROM tokens WHERE kind = 'api' AND revoked_at IS NULL"


@pytest.fixture
def database(postgres_url: str) -> Iterator[str]:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {NAME} TEMPLATE {TEMPLATE}")
        yield database_url(postgres_url, NAME)
        server.execute(f"DROP DATABASE {NAME} WITH (FORCE)")


def test_an_admin_token_that_a_login_mints_is_kept_for_the_command_line(database: str, tmp_path: Path) -> None:
    environment = clean_environment() | {"DATABASE_URL": database}
    secrets = tmp_path / "data" / "secrets.json"
    kept = []
    for revoke in (True, False):
        ended = spawn("login", "--data-dir", secrets.parent, env=environment)
        assert "/login?code=fc_login_" in ended.stdout, ended.stderr
        kept.append(read_json(secrets)["admin_token"])
        with psycopg.connect(database) as connection:
            assert [kept[-1][:12]] == [row[0] for row in connection.execute(ADMINS).fetchall()]
            if revoke:
                connection.execute("UPDATE tokens SET revoked_at = now()")
    assert kept[0] != kept[1]
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert kept[1] not in ended.stdout + ended.stderr

    assert spawn("login", "--data-dir", secrets.parent, env=environment).returncode == 0
    assert read_json(secrets)["admin_token"] == kept[1]  # which is good
