"""A log that is followed a second time, while the first goes on or afterwards, has one run, against the real API."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import starting, tracking
from forecurve.client.folder import prepare
from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock

from .conftest import Forecurve, Result
from .test_run_follow import TOLD, curve, meanwhile, only_run, written

__all__ = ["meanwhile"]


def flushed() -> None:
    """What the first has logged by now has arrived."""
    tracking.current().flush()


def test_a_second_at_once_is_refused_by_the_name_of_the_run(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)
    told = ("run", "follow", log, *TOLD)
    found: list[Result] = []
    meanwhile(lambda: found.append(forecurve(*told)), lambda: written(log, 20))
    forecurve(*told)
    run = only_run(forecurve)
    (second,) = found
    assert second.code == 2, second.err
    for part in (f"{run['id']} is reported from it already", f"process {os.getpid()}", "--name"):
        assert part in second.err
    assert (run["attempt"], len(curve(forecurve, run["id"]))) == (1, 3)


def test_a_second_that_begins_while_the_first_does_waits_for_it(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have looked, and nobody follows; one of them may begin."""
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)
    told = ("run", "follow", log, *TOLD)
    found: list[Result] = []

    def prepared(*given: Any) -> Any:
        monkeypatch.setattr("forecurve.client.starting.prepare", prepare)
        found.append(forecurve(*told))  # waits, until somebody presses Ctrl-C
        return prepare(*given)

    monkeypatch.setattr("forecurve.client.starting.prepare", prepared)
    meanwhile()
    forecurve(*told)
    assert "which begins to follow here" in found[0].err
    assert only_run(forecurve)["attempt"] == 1


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """As on another machine that sees the same file."""

    def moves() -> None:
        there = tmp_path / "elsewhere"
        there.mkdir(exist_ok=True)
        monkeypatch.chdir(there)

    return moves


def test_a_second_elsewhere_is_known_by_the_evaluations(
    forecurve: Forecurve,
    service: str,
    tmp_path: Path,
    meanwhile: Callable[..., None],
    elsewhere: Callable[[], None],
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)
    told = ("run", "follow", log, *TOLD)
    found: list[Result] = []

    def second() -> None:
        flushed()
        elsewhere()
        written(log, 20)
        found.append(forecurve(*told))

    meanwhile(second)
    forecurve(*told)
    run = only_run(forecurve)
    assert found[0].code == 2, found[0].err
    for part in (f"{run['id']} is being reported and has 2 of these 3 evaluations", "--name"):
        assert part in found[0].err

    on = forecurve(*told, "--over")  # the first has ended with Ctrl-C
    assert (on.code, f"{run['id']}  " in on.err, "goes on" in on.err) == (0, True, True), on.err
    run = only_run(forecurve)
    assert (run["attempt"], len(curve(forecurve, run["id"]))) == (2, 3)
    again = forecurve(*told, "--over")
    assert (again.code, "is over and has 3 of these 3 evaluations; nothing is sent" in again.err) == (0, True)


def test_one_that_is_silent_goes_on_elsewhere(
    forecurve: Forecurve,
    service: str,
    sessions: sessionmaker[Session],
    clock: Clock,
    tmp_path: Path,
    meanwhile: Callable[..., None],
    elsewhere: Callable[[], None],
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)
    told = ("run", "follow", log, *TOLD)
    found: list[Result] = []

    def second() -> None:
        flushed()
        elsewhere()
        with sessions.begin() as session:
            run = session.scalars(select(Run)).one()
            transition(session, run, Status.SUSPECT, actor="test", reason="No heartbeat for 31 s.", now=clock.now)
        found.append(forecurve(*told, "--over"))

    meanwhile(second)
    forecurve(*told)
    assert found[0].code == 0, found[0].err
    run = only_run(forecurve)
    assert (run["attempt"], len(curve(forecurve, run["id"]))) == (2, 2)


def test_another_run_of_the_same_name_that_begins_alike_is_none_of_it(
    forecurve: Forecurve,
    service: str,
    tmp_path: Path,
    meanwhile: Callable[..., None],
    elsewhere: Callable[[], None],
) -> None:
    """From the same model, both begin with the same pass rate."""
    (tmp_path / "other").mkdir()
    first, other = tmp_path / "grpo.jsonl", tmp_path / "other" / "grpo.jsonl"
    written(first, 0)
    written(other, 0, 20)
    found: list[Result] = []

    def second() -> None:
        flushed()
        elsewhere()
        found.append(forecurve("run", "follow", other, *TOLD, "--over"))

    meanwhile(second)
    forecurve("run", "follow", first, *TOLD)
    assert found[0].code == 0, found[0].err
    assert len(forecurve("run", "list", "--json").json["items"]) == 2


def test_of_two_logs_of_one_name_each_goes_on_with_its_own_run(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    for folder, steps in (("a", (0, 20)), ("b", (0, 10))):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "log.jsonl", *steps)
    found: list[Result] = []
    meanwhile(lambda: found.append(forecurve("run", "follow", "b/log.jsonl", *TOLD, "--name", "log", "--over")))
    forecurve("run", "follow", "a/log.jsonl", *TOLD)
    assert found[0].code == 0, found[0].err
    written(tmp_path / "a" / "log.jsonl", 30)
    again = forecurve("run", "follow", "a/log.jsonl", *TOLD, "--over")
    assert (again.code, "goes on" in again.err) == (0, True), again.err
    runs = forecurve("run", "list", "--json").json["items"]
    assert sorted((run["attempt"], run["last_step"]) for run in runs) == [(1, 10), (2, 30)]


def test_what_is_over_and_not_sent_yet_is_not_reported_as_another_run(
    forecurve: Forecurve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)
    told = ("run", "follow", log, *TOLD, "--over")
    monkeypatch.setenv("FORECURVE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(starting, "AWAY_S", 0.0)
    assert forecurve(*told).code == 0
    kept = ["is over, and no service has it yet", "forecurve sync", "--name"]
    forecurve(*told).check_is_bad_input(kept)
    monkeypatch.setenv("FORECURVE_URL", service)
    forecurve(*told).check_is_bad_input(kept)
    (folder,) = (tmp_path / ".forecurve").glob("offline-*")
    assert forecurve("sync", folder).code == 0
    assert "nothing is sent" in forecurve(*told).err
    only_run(forecurve)
    monkeypatch.setenv("FORECURVE_URL", "http://127.0.0.1:9")
    forecurve(*told).check_is_bad_input(["is over, and http://127.0.0.1:9 does not answer", "--name"])
