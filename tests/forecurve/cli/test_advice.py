"""`forecurve advice` against the real API."""

from __future__ import annotations

import io
import sys

import pytest
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import ApiError
from forecurve.client.api import Api

from .conftest import Forecurve
from .seeded import seeded_advice, seeded_run


class _Person(io.StringIO):
    """Somebody at a terminal, who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def run_id(sessions: sessionmaker[Session]) -> str:
    return seeded_run(sessions)


def _wanted(forecurve: Forecurve, run_id: str) -> str:
    return str(forecurve("run", "show", run_id, "--json").json["desired_state"])


def test_advice_is_listed_by_run_and_by_what_came_of_it(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str
) -> None:
    assert "forecurve run list" in forecurve("advice", "list").out
    advice_id = seeded_advice(sessions, run_id)

    listed = forecurve("advice", "list", "--run", run_id, "--status", "open")

    assert [word in listed.out for word in (advice_id, run_id, "stop", "would buy")] == [True] * 4
    assert forecurve("advice", "list", "--status", "accepted").out.startswith("No such advice.")
    assert [one["id"] for one in forecurve("advice", "list", "--json").json["items"]] == [advice_id]
    assert forecurve("advice", "list", "--status", "forgotten").code == 2


def test_accepting_a_stop_needs_a_word_where_nobody_can_be_asked(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str
) -> None:
    advice_id = seeded_advice(sessions, run_id)

    silent = forecurve("advice", "accept", advice_id)

    assert silent.code == 2
    assert f"accepting this stops run {run_id}; give --yes" in silent.err
    assert _wanted(forecurve, run_id) == "run"
    accepted = forecurve("advice", "accept", advice_id, "--reason", "flat", "--yes")
    assert accepted.out.strip() == f"{advice_id}  accepted; run {run_id} is asked to stop"
    assert _wanted(forecurve, run_id) == "stop"


@pytest.mark.parametrize(("answer", "code", "wanted"), [("y\n", 0, "stop"), ("n\n", 1, "run")])
def test_a_person_is_asked_before_a_run_is_stopped(
    forecurve: Forecurve,
    service: str,
    sessions: sessionmaker[Session],
    run_id: str,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    wanted: str,
) -> None:
    advice_id = seeded_advice(sessions, run_id)
    monkeypatch.setattr(sys, "stdin", _Person(answer))

    result = forecurve("advice", "accept", advice_id, "--json")

    assert result.code == code
    assert f"Accepting this stops run {run_id}. Go on?" in result.err
    assert _wanted(forecurve, run_id) == wanted


def test_other_advice_is_accepted_without_a_question(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str
) -> None:
    advice_id = seeded_advice(sessions, run_id, "scale")
    accepted = forecurve("advice", "accept", advice_id)
    assert f"forecurve run fork {run_id}" in accepted.out
    assert _wanted(forecurve, run_id) == "run"


def test_a_run_of_ones_own_is_scaled_by_its_own_trainer(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = seeded_run(sessions, executor="external")
    accepted = forecurve("advice", "accept", seeded_advice(sessions, run_id, "scale"))
    said = accepted.out + forecurve("run", "forks", run_id).out
    assert "with your trainer" in said
    assert "run fork" not in said, "the service has none of its checkpoints: a fork would be refused"


def test_advice_that_was_accepted_is_said_to_be_though_the_service_goes_away(
    forecurve: Forecurve,
    service: str,
    sessions: sessionmaker[Session],
    run_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(*_: object) -> None:
        raise ApiError("no answer from the service", code="unreachable")

    advice_id = seeded_advice(sessions, run_id, "scale")
    with monkeypatch.context() as away:
        away.setattr(Api, "run", gone)
        accepted = forecurve("advice", "accept", advice_id)
    assert accepted.code == 0
    assert accepted.out.startswith(f"{advice_id}  accepted; it is for you to carry out: ")
    assert "no answer from the service" in accepted.err
    assert advice_id in forecurve("advice", "list", "--status", "accepted").out


def test_advice_is_dismissed_with_a_reason_and_answered_once(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str
) -> None:
    advice_id = seeded_advice(sessions, run_id)

    assert forecurve("advice", "dismiss", advice_id).code == 2
    assert forecurve("advice", "dismiss", advice_id, "--reason", " ").code == 2
    told = forecurve("advice", "dismiss", advice_id, "--reason", "a warm-up", "--json").json
    again = forecurve("advice", "accept", advice_id)

    assert (told["status"], told["decided_reason"]) == ("dismissed", "a warm-up")
    assert again.code == 1
    assert "is dismissed already" in again.err
    assert f"`forecurve advice list --run {run_id} --status open`" in again.err
    unknown = forecurve("advice", "accept", "adv_nope")
    assert unknown.code == 2
    assert "`forecurve advice list` lists them" in unknown.err
