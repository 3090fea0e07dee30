"""Advice is said once, answered by a person or a policy, and comes back only when it has something new to say."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.forecasts.models import Recommendation
from server.forecasts.recommendations import BINDING, dismiss, is_news, recommend, supersede_if_over
from server.runs.models import Run
from tests.server.forecasts.seeds import START, events, make_forecast, make_run, make_sweep
from tests.server.reporting import faults

Headers = dict[str, dict[str, str]]


def advise(session: Session, run: Run, action: str, **numbers: Any) -> Recommendation | None:
    forecast = make_forecast(session, run)
    return recommend(session, run, forecast, action=action, reason=f"It says {action}.", numbers=numbers, now=START)


def statuses(session: Session, run: Run) -> list[tuple[str, str]]:
    query = select(Recommendation).where(Recommendation.run_id == run.id).order_by(Recommendation.id)
    return [(row.action, row.status) for row in session.scalars(query)]


def test_the_same_advice_is_said_once_while_its_numbers_stand(session: Session) -> None:
    run = make_run(session)
    assert advise(session, run, "continue", expected_gain=0.10, now=5.0) is not None
    assert advise(session, run, "continue", expected_gain=0.105, now=9.0) is None
    assert statuses(session, run) == [("continue", "open")]


def test_another_action_or_moved_numbers_supersede_the_open_one(session: Session) -> None:
    run = make_run(session)
    advise(session, run, "continue", expected_gain=0.10)
    advise(session, run, "continue", expected_gain=0.05)
    advise(session, run, "stop", expected_gain=0.05)
    assert statuses(session, run) == [("continue", "superseded"), ("continue", "superseded"), ("stop", "open")]
    said = [(e.to_state, e.evidence["action"]) for e in events(session, run, "recommendation")]
    assert said == [
        ("open", "continue"),
        ("superseded", "continue"),
        ("open", "continue"),
        ("superseded", "continue"),
        ("open", "stop"),
    ]


def test_advice_of_a_worker_whose_clock_is_ahead_hides_none_that_is_open(session: Session) -> None:
    run = make_run(session)
    ahead = advise(session, run, "stop", expected_gain=0.004)
    assert ahead is not None
    dismiss(session, ahead.id, actor="tok_1", reason="Wanted for the paper's figure.", now=START)
    opened = advise(session, run, "continue", expected_gain=0.10)
    assert opened is not None
    opened.id = opened.id[:4] + "0" * 26  # as if made before
    session.flush()
    assert advise(session, run, "scale", expected_gain=0.10) is not None
    assert sorted(statuses(session, run)) == [("continue", "superseded"), ("scale", "open"), ("stop", "dismissed")]


def test_dismissed_advice_comes_back_only_when_its_numbers_have_moved(session: Session) -> None:
    run = make_run(session)
    advice = advise(session, run, "stop", expected_gain=0.004)
    assert advice is not None
    dismiss(session, advice.id, actor="tok_1", reason="Wanted for the paper's figure.", now=START)
    assert advise(session, run, "stop", expected_gain=0.003) is None
    assert advise(session, run, "stop", expected_gain=-0.1) is not None
    assert statuses(session, run) == [("stop", "dismissed"), ("stop", "open")]


def test_dismissed_advice_stays_so_whatever_was_said_in_between(session: Session) -> None:
    run = make_run(session, sweep_id=make_sweep(session, "auto").id, desired_state="pause")
    advice = advise(session, run, "stop", expected_gain=0.005)
    assert advice is not None
    dismiss(session, advice.id, actor="tok_1", reason="Wanted for the paper's figure.", now=START)
    run.desired_state = "run"
    assert advise(session, run, "continue", expected_gain=0.02) is not None
    assert advise(session, run, "stop", expected_gain=0.005) is None
    assert statuses(session, run) == [("stop", "dismissed"), ("continue", "superseded")]
    assert run.desired_state == "run"


def test_policy_auto_follows_advice_of_a_pause_once_the_run_goes_on(session: Session) -> None:
    run = make_run(session, sweep_id=make_sweep(session, "auto").id, desired_state="pause")
    assert advise(session, run, "stop", expected_gain=0.001) is not None
    assert (run.desired_state, statuses(session, run)) == ("pause", [("stop", "open")])
    run.desired_state = "run"
    assert advise(session, run, "stop", expected_gain=0.001) is None
    assert (run.desired_state, statuses(session, run)) == ("stop", [("stop", "accepted")])


def test_of_a_run_that_is_over_only_scaling_is_advised(session: Session) -> None:
    run = make_run(session)
    advise(session, run, "stop", expected_gain=0.0)
    run.status = "succeeded"
    assert advise(session, run, "continue", expected_gain=0.0) is None
    assert advise(session, run, "scale", expected_gain_beyond=0.04) is not None
    assert statuses(session, run) == [("stop", "superseded"), ("scale", "open")]


@pytest.mark.parametrize(
    ("allocated", "status", "left"), [(True, "stopped", False), (True, "succeeded", True), (False, "stopped", True)]
)
def test_a_run_that_its_sweep_stopped_is_not_advised_to_scale(
    session: Session, allocated: bool, status: str, left: bool
) -> None:
    """Its sweep said so as the compute that its runs share tells more elsewhere."""
    run = make_run(session, allocated=allocated)
    advise(session, run, "scale", expected_gain_beyond=0.04)
    run.status = status
    supersede_if_over(session, run, START)
    assert statuses(session, run) == [("scale", "open" if left else "superseded")]
    assert (advise(session, run, "scale", expected_gain_beyond=0.09) is not None) == left


def test_advice_to_scale_is_renewed_as_what_it_would_buy_moves(session: Session) -> None:
    run = make_run(session)
    advise(session, run, "scale", expected_gain_beyond=0.06, p_doubling_gains_delta=1.0)
    assert advise(session, run, "scale", expected_gain_beyond=0.058, p_doubling_gains_delta=1.0) is None
    assert advise(session, run, "scale", expected_gain_beyond=0.03, p_doubling_gains_delta=1.0) is not None
    assert statuses(session, run) == [("scale", "superseded"), ("scale", "open")]


@pytest.mark.parametrize("action", sorted(BINDING))
def test_what_nobody_can_follow_is_taken_back_with_the_runs_last_evaluations(session: Session, action: str) -> None:
    run = make_run(session, dirty_at=START)
    advise(session, run, action)
    supersede_if_over(session, run, START)
    run.status = "succeeded"
    supersede_if_over(session, run, START)  # its last evaluations are not judged yet
    assert statuses(session, run) == [(action, "open")]
    run.dirty_at = None
    supersede_if_over(session, run, START)
    if action == "scale":
        assert statuses(session, run) == [(action, "open")]
        return
    assert statuses(session, run) == [(action, "superseded")]
    *_, event = events(session, run, "recommendation")
    assert (event.to_state, event.reason) == ("superseded", "The run is over.")


@pytest.mark.parametrize(("policy", "wanted", "status"), [("auto", "stop", "accepted"), ("advise", "run", "open")])
def test_only_under_policy_auto_is_advice_to_stop_followed_at_once(
    session: Session, policy: str, wanted: str, status: str
) -> None:
    run = make_run(session, sweep_id=make_sweep(session, policy).id)
    advise(session, run, "continue", expected_gain=0.1)
    assert run.desired_state == "run"
    advice = advise(session, run, "stop", expected_gain=0.001)
    assert advice is not None
    assert (run.desired_state, advice.status) == (wanted, status)
    if policy == "auto":
        assert advice.decided_by == "policy"
        (event,) = events(session, run, "run.desired")
        assert (event.actor, event.to_state) == ("policy", "stop")
        assert "It says stop." in str(event.reason)


def test_policy_auto_leaves_a_run_alone_that_is_to_be_cancelled(session: Session) -> None:
    run = make_run(session, sweep_id=make_sweep(session, "auto").id, desired_state="cancel")
    advice = advise(session, run, "stop", expected_gain=0.001)
    assert advice is not None
    assert (run.desired_state, advice.status) == ("cancel", "open")


@given(st.sampled_from(["continue", "scale"]), st.one_of(st.none(), st.floats(-1e6, 1e6)), st.floats(-0.009, 0.009))
def test_a_gain_that_stands_or_wavers_by_less_than_what_matters_is_no_news(
    action: str, value: float | None, wavering: float
) -> None:
    moved = None if value is None else value + wavering
    assert not is_news(action, {BINDING[action]: value, "now": 1.0}, {BINDING[action]: moved, "now": 9.0})
    percent = (None if one is None else 100 * one for one in (value, moved))
    assert not is_news(action, *({BINDING[action]: one, "delta": 1.0} for one in percent))


@pytest.mark.parametrize(("old", "new", "news"), [(0.0035, 0.0030, False), (0.0035, 0.0001, True), (1e-4, 2e-4, False)])
def test_of_what_is_left_as_a_run_is_to_stop_a_tenth_of_what_matters_is_news(
    old: float, new: float, news: bool
) -> None:
    """A stop is advised where less than delta is left: both gains are below it."""
    assert is_news("stop", {"expected_gain": old}, {"expected_gain": new, "delta": 0.01}) is news


@pytest.mark.parametrize(
    ("old", "new", "news"),
    [
        ({}, {"misfit": "decline"}, True),
        ({"misfit": "shape"}, {"misfit": "collapse"}, True),
        ({"misfit": "decline"}, {"misfit": "collapse"}, False),
        ({"misfit": "decline"}, {"misfit": "break"}, True),
        ({"misfit": "decline"}, {}, True),
        ({}, {"misfit": "shape"}, False),
        ({"now": 50.0, "budget": 60.0}, {"now": 60.0, "budget": 60.0}, True),
        ({"now": 60.0, "budget": 60.0}, {"now": 100.0, "budget": 60.0}, False),
    ],
)
def test_a_run_that_fell_or_spent_its_budget_is_told_anew(old: dict[str, Any], new: dict[str, Any], news: bool) -> None:
    assert is_news("undecided", {"decide_at": 76.0, **old}, {"decide_at": 80.0, **new}) is news


@given(st.floats(1e-9, 1e9), st.floats(0.8, 1.24))
def test_when_to_decide_is_news_by_its_share_whatever_the_unit_of_compute(at: float, times: float) -> None:
    assert not is_news("undecided", {"decide_at": at}, {"decide_at": times * at})
    assert is_news("undecided", {"decide_at": at}, {"decide_at": 2 * at})


@pytest.mark.parametrize(
    ("old", "new", "news"),
    [
        (0.10, 0.12, False),
        (0.10, 0.06, True),
        (0.02, 0.005, True),
        (40.0, 48.0, False),
        (40.0, 60.0, True),
        (0.0, None, True),
        (None, 30.0, True),
    ],
)
def test_a_quarter_of_the_value_is_news(old: float | None, new: float | None, news: bool) -> None:
    assert is_news("undecided", {"decide_at": old}, {"decide_at": new}) is news


def opened(sessions: sessionmaker[Session], action: str = "stop", **run_columns: Any) -> tuple[str, str]:
    """Ids of a run and of its open recommendation."""
    with sessions.begin() as session:
        run = make_run(session)
        advice = advise(session, run, action, expected_gain=0.001)
        assert advice is not None
        for name, value in run_columns.items():
            setattr(run, name, value)
        return run.id, advice.id


def test_accepting_stop_stops_the_run(api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> None:
    run_id, advice_id = opened(sessions)
    answer = api.post(f"/v1/recommendations/{advice_id}:accept", headers=headers["operate"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "accepted"
    assert answer.json()["decided_by"].startswith("tok_")
    with sessions() as session:
        assert session.get_one(Run, run_id).desired_state == "stop"
    again = api.post(f"/v1/recommendations/{advice_id}:accept", headers=headers["operate"])
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert "accepted already" in again.json()["detail"]
    assert f"`GET /v1/recommendations?run_id={run_id}&status=open`" in faults(again)["status"]


def test_accepting_to_continue_changes_nothing_but_the_record(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run_id, advice_id = opened(sessions, "continue")
    body = {"reason": "Agreed."}
    answer = api.post(f"/v1/recommendations/{advice_id}:accept", json=body, headers=headers["operate"]).json()
    assert (answer["status"], answer["decided_reason"]) == ("accepted", "Agreed.")
    with sessions() as session:
        assert session.get_one(Run, run_id).desired_state == "run"


def test_accepting_to_stop_a_run_that_is_over_is_a_conflict_and_leaves_the_advice_open(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    _, advice_id = opened(sessions, status="succeeded")
    answer = api.post(f"/v1/recommendations/{advice_id}:accept", headers=headers["operate"])
    assert answer.status_code == 409
    listed = api.get("/v1/recommendations?status=open", headers=headers["read"]).json()["items"]
    assert [item["id"] for item in listed] == [advice_id]


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "   "}, {"reason": "x", "why": "y"}])
def test_dismissing_needs_a_reason(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session], body: dict[str, str]
) -> None:
    _, advice_id = opened(sessions)
    path = f"/v1/recommendations/{advice_id}:dismiss"
    refused = api.post(path, json=body, headers=headers["operate"])
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
    taken = api.post(path, json={"reason": "Needed for a figure."}, headers=headers["operate"])
    assert (taken.status_code, taken.json()["status"]) == (200, "dismissed")


def test_one_recommendation_is_read_by_its_id_also_when_it_was_answered(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run_id, advice_id = opened(sessions)
    read = api.get(f"/v1/recommendations/{advice_id}", headers=headers["read"]).json()
    assert (read["run_id"], read["action"], read["status"]) == (run_id, "stop", "open")
    answered = api.post(f"/v1/recommendations/{advice_id}:accept", headers=headers["operate"]).json()
    assert api.get(f"/v1/recommendations/{advice_id}", headers=headers["read"]).json() == answered


def test_recommendations_are_for_operators_to_answer_and_listed_by_run_and_status(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run_id, first = opened(sessions)
    _, second = opened(sessions)
    for verb in ("accept", "dismiss"):
        path = f"/v1/recommendations/{first}:{verb}"
        assert api.post(path, json={"reason": "x"}, headers=headers["read"]).status_code == 403
    missing = api.post("/v1/recommendations/adv_none:accept", headers=headers["operate"])
    assert missing.status_code == 404
    api.post(f"/v1/recommendations/{first}:dismiss", json={"reason": "x"}, headers=headers["operate"])

    def listed(query: str) -> list[str]:
        return [item["id"] for item in api.get(f"/v1/recommendations{query}", headers=headers["read"]).json()["items"]]

    assert listed("") == [second, first]
    assert listed(f"?run_id={run_id}") == [first]
    assert listed("?status=open") == [second]
    with sessions.begin() as session:
        session.get_one(Run, run_id).archived_at = START
    assert listed("") == [second]
    assert listed(f"?run_id={run_id}") == [first]
    assert api.get("/v1/recommendations?status=lost", headers=headers["read"]).status_code == 422
