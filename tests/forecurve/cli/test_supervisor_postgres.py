"""The database that `forecurve up` starts: what it logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from forecurve.cli.supervisor import parts
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.postgres import PostgresPart

from .services import wait_until

pytestmark = [pytest.mark.usefixtures("own_short_paths"), pytest.mark.timeout(200)]

SLOW = "SELECT pg_sleep(1.1), %s::text"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout.of(tmp_path / "data")
    layout.make()
    return layout


@pytest.fixture
def postgres(layout: Layout) -> Iterator[PostgresPart]:
    part = PostgresPart(layout)
    part.start()
    yield part
    part.stop(15.0)


def test_its_log_has_no_values_and_begins_anew_when_it_has_grown_too_long(
    postgres: PostgresPart, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(SLOW, ["hunter2"])
        wait_until(lambda: "pg_sleep" in postgres.log.read_text())
        monkeypatch.setattr(parts, "LOG_BYTES", 10)
        postgres.keep_log_short()
        connection.execute(SLOW.replace("text", "varchar"), ["hunter2"])
        wait_until(lambda: "varchar" in postgres.log.read_text())

    older = layout.logs / "postgres.log.1"
    assert "::text" in older.read_text()
    assert "hunter2" not in older.read_text() + postgres.log.read_text()
    assert "::text" not in postgres.log.read_text()
    assert not postgres.log.read_bytes().startswith(b"\0")  # it appends
    assert older.stat().st_mode & 0o777 == 0o600
