"""`forecurve run checkpoints`, `attempts` and `events` against the real API."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from tests.web import seeding

from .conftest import Forecurve
from .seeded import seeded_run


def test_checkpoints_are_listed_newest_first(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = seeded_run(sessions)
    assert f"forecurve run show {run_id}" in forecurve("run", "checkpoints", run_id).out
    with sessions.begin() as session:
        for step in (50, 100):
            run = session.get_one(Run, run_id)
            seeding.add_checkpoint(session, run, step=step, compute=step / 5, now=datetime.now(UTC))

    listed = forecurve("run", "checkpoints", run_id)

    assert "427 kB" in listed.out
    assert f"runs/{run_id}/step-100" in listed.out
    items = forecurve("run", "checkpoints", run_id, "--json").json["items"]
    assert [one["step"] for one in items] == [100, 50]


def test_attempts_say_how_they_ended(forecurve: Forecurve, service: str, sessions: sessionmaker[Session]) -> None:
    run_id = seeded_run(sessions)
    waits = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]

    listed = forecurve("run", "attempts", run_id)

    assert listed.out.splitlines()[1].split()[:2] == ["1", "running"]
    assert forecurve("run", "attempts", run_id, "--json").json["items"][0]["number"] == 1
    assert "Not launched yet." in forecurve("run", "attempts", waits).out


def test_events_are_listed_newest_first_in_the_time_of_who_looks(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = seeded_run(sessions)
    forecurve("run", "stop", run_id, "--reason", "seen\x1b enough")

    listed = forecurve("run", "events", run_id)
    items = forecurve("run", "events", run_id, "--json").json["items"]

    assert items[0]["kind"] == "run.desired"
    here = datetime.fromisoformat(items[0]["created_at"]).astimezone()
    assert f"{here:%Y-%m-%d %H:%M:%S}" in listed.out
    assert "run to stop" in listed.out
    assert "enough" in listed.out
    assert "\x1b" not in listed.out
    assert "there are more" in forecurve("run", "events", run_id, "--limit", "1").err


def test_events_are_followed_from_the_first_until_the_run_is_over(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = seeded_run(sessions, status="succeeded")

    lines = forecurve("run", "events", run_id, "--follow", "--every", "0.2").out.splitlines()
    bodies = [json.loads(line) for line in forecurve("run", "events", run_id, "--follow", "--json").out.splitlines()]

    assert "queued to launching  reconciler" in lines[0]
    assert [body["to_state"] for body in bodies] == ["launching", "running"]


@pytest.mark.parametrize("command", ["checkpoints", "attempts", "events", "metrics", "export"])
def test_an_unknown_run_is_bad_input_that_names_the_list(forecurve: Forecurve, service: str, command: str) -> None:
    result = forecurve("run", command, "run_nope")
    assert result.code == 2
    assert "`forecurve run list` lists them" in result.err
    assert forecurve("run", command, "../me").code == 2
