"""`forecurve run checkpoints`, `attempts` and `events` against the real API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli.showing.events import follow_events
from forecurve.client import ApiError
from server.runs.models import Run
from server.runs.states import Status
from tests.server.reporting import move
from tests.web import seeding

from .conftest import Forecurve
from .seeded import seeded_run


def test_checkpoints_are_listed_newest_first(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = seeded_run(sessions)
    assert f"forecurve run show {run_id}" in forecurve("run", "checkpoints", run_id).out
    with sessions.begin() as session:
        for step in (25, 50, 100):  # the recipe keeps the newest two
            run = session.get_one(Run, run_id)
            seeding.add_checkpoint(session, run, step=step, compute=step / 5, now=datetime.now(UTC))

    listed = forecurve("run", "checkpoints", run_id)

    assert "427 kB" in listed.out
    assert f"runs/{run_id}/step-100" in listed.out
    items = forecurve("run", "checkpoints", run_id, "--json").json["items"]
    assert [(one["step"], one["on_disk"]) for one in items] == [(100, True), (50, True), (25, False)]
    assert [row.split()[-2] for row in listed.out.splitlines()[1:]] == ["kept", "kept", "dropped"]


def test_a_runs_recipe_is_one_that_can_be_submitted(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    run_id = forecurve("run", "submit", "--preset", "scalerl", "--set", "seed=3", "--json").json["id"]

    (tmp_path / "again.yaml").write_text(forecurve("run", "recipe", run_id).out)
    again = forecurve("run", "submit", "--recipe", tmp_path / "again.yaml", "--json").json

    assert again["seed"] == 3
    digests = [forecurve("run", "recipe", one, "--json").json["digest"] for one in (run_id, again["id"])]
    assert digests[0] == digests[1]


def test_forks_are_listed(forecurve: Forecurve, service: str, sessions: sessionmaker[Session]) -> None:
    parent = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    assert f"forecurve run fork {parent}" in forecurve("run", "forks", parent).out
    with sessions.begin() as session:
        seeding.add_checkpoint(session, session.get_one(Run, parent), step=50, compute=10.0, now=datetime.now(UTC))
    fork = forecurve("run", "fork", parent, "--json").json["id"]
    assert fork in forecurve("run", "forks", parent).out


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
    assert items[0]["actor"] not in listed.out
    assert f"  {items[0]['actor_name']}  " in listed.out
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


class _Going:
    """A run that is over at the third look, and a service that is away at the second."""

    def __init__(self) -> None:
        self.statuses = ["running", None, "running", "succeeded"]
        self.pages = {0: ["queued"], 1: ["launching", "running"], 3: ["succeeded"]}

    def run(self, run_id: str) -> dict[str, Any]:
        status = self.statuses.pop(0)
        if status is None:
            raise ApiError("no answer", code="unreachable")
        return {"status": status}

    def events(self, since: int, run_id: str) -> dict[str, Any]:
        if since == 1 and len(self.statuses) > 1:
            return {"items": [], "cursor": since}
        told = self.pages.get(since, [])
        return {"items": [{"to_state": state} for state in told], "cursor": since + len(told)}


def test_what_comes_is_followed_over_an_outage(capsys: pytest.CaptureFixture[str]) -> None:
    follow_events(_Going(), "run_a", every_s=0, as_json=True)  # type: ignore[arg-type]
    told = [json.loads(line)["to_state"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["queued", "launching", "running", "succeeded"]


@pytest.mark.parametrize(
    "command", ["recipe", "forks", "checkpoints", "attempts", "logs", "events", "metrics", "export"]
)
def test_an_unknown_run_is_bad_input_that_names_the_list(forecurve: Forecurve, service: str, command: str) -> None:
    result = forecurve("run", command, "run_nope")
    assert result.code == 2
    assert "`forecurve run list` lists them" in result.err
    assert forecurve("run", command, "../me").code == 2


@pytest.mark.parametrize("status", ["stopped", "succeeded", "failed"])
def test_of_a_run_that_is_over_nothing_more_is_promised(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], status: str
) -> None:
    run_id = seeded_run(sessions, "over", status=status, until=0)
    for command in ("metrics", "checkpoints"):
        said = forecurve("run", command, run_id).out
        assert f"the run is {status}" in said
        assert "yet" not in said


def test_a_run_that_ended_in_the_queue_was_never_launched(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    assert "Not launched yet" in forecurve("run", "attempts", run_id).out
    move(sessions, run_id, Status.STOPPED, datetime.now(UTC))
    assert forecurve("run", "attempts", run_id).out == "Never launched: the run is stopped.\n"
