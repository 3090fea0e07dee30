"""Runs that share one budget, on real Postgres, once nobody is to go on: what is told, and what may begin anew."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.states import Status
from server.settings import Settings
from server.sweeps.schemas import SweepChange
from server.sweeps.service import change_sweep
from tests.server.forecasts.seeds import add_evaluations, make_run
from tests.worker.refitting import COMPUTE, Sessions
from tests.worker.sharing import LATER, PAUSED, allocate, begin, curve, dirty_at, states


def test_why_it_is_over_stands_and_what_runs_reported_since_counts(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9}, budget=20.0)
    said = allocate(sessions, settings, sweep_id)
    end(sessions, runs)
    with sessions.begin() as session:  # it was evaluated once more as it was stopped, and fell
        add_evaluations(session, session.get_one(Run, runs["higher"]), COMPUTE[9:12], [0.2] * 3, first_step=90)
    again = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert (said.choice, said.over) == (runs["higher"], "the budget is spent")
    assert (again.choice, again.over) == (runs["control"], "the budget is spent")
    assert again.spent > said.spent
    assert again.sentence.endswith("No run goes on: the budget is spent.")


def test_what_was_said_at_the_end_stands_while_runs_stop(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9}, budget=20.0)
    allocate(sessions, settings, sweep_id)
    with sessions.begin() as session:  # asked to stop, it ends with an evaluation
        add_evaluations(
            session, session.get_one(Run, runs["higher"]), COMPUTE[9:10], curve("higher")[9:10], first_step=90
        )
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert (said.choice, said.over) == (runs["higher"], "the budget is spent")
    assert {one.run_id for one in said.runs} == set(runs.values())
    assert dirty_at(sessions, sweep_id) is None
    end(sessions, {"control": runs["control"]})  # one is sooner over than the other
    again = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=2))
    assert (again.choice, again.over, len(again.runs)) == (runs["higher"], "the budget is spent", 2)


def test_runs_that_are_asked_to_stop_are_not_let_on_beside_a_further_one(
    sessions: Sessions, settings: Settings
) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9}, budget=20.0)
    allocate(sessions, settings, sweep_id)
    with sessions.begin() as session:
        change_sweep(session, sweep_id, SweepChange(budget_compute=300.0), actor="tok", now=LATER)
        further = make_run(session, name="top", arm="top", sweep_id=sweep_id, allocated=True, goes_to=0.0)
        add_evaluations(session, further, COMPUTE[:5], curve("top")[:5])
        runs |= {"top": further.id}
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert {one.run_id for one in said.runs} == set(runs.values())
    assert [one.run_id for one in said.runs if one.reason] == [runs["top"]]
    assert {arm: state[0] for arm, state in states(sessions, runs).items()} == {
        "control": "stop",
        "higher": "stop",
        "top": "run",
    }


def end(sessions: Sessions, runs: Mapping[str, str]) -> None:
    """Stop those runs, as they were asked to."""
    with sessions.begin() as session:
        for run_id in runs.values():
            run = session.get_one(Run, run_id)
            transition(session, run, Status.STOPPED, actor="reconciler", reason="", now=LATER)


def ended(sessions: Sessions, settings: Settings) -> tuple[str, dict[str, str]]:
    """A sweep that has spent its budget, and whose runs are over."""
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9}, budget=20.0)
    allocate(sessions, settings, sweep_id)
    end(sessions, runs)
    return sweep_id, runs


def test_a_budget_that_is_raised_when_all_is_over_is_not_spent(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = ended(sessions, settings)
    with sessions.begin() as session:
        change_sweep(session, sweep_id, SweepChange(budget_compute=300.0), actor="tok", now=LATER)
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert said.over == "each is over, or left to its user"
    assert said.sentence.endswith("No run goes on: each is over, or left to its user.")
    assert {state[1] for state in states(sessions, runs).values()} == {"stopped"}


def test_a_sweep_that_is_over_goes_on_with_a_further_run(sessions: Sessions, settings: Settings) -> None:
    sweep_id, _ = ended(sessions, settings)
    with sessions.begin() as session:
        change_sweep(session, sweep_id, SweepChange(budget_compute=300.0), actor="tok", now=LATER)
        make_run(session, name="further", arm="further", sweep_id=sweep_id, allocated=True, goes_to=0.0)
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert said.over is None
    assert said.sentence == "Every run trains until it can be forecast: 2 of 3 can be."


def test_who_stopped_a_run_is_known_after_another_policy(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = ended(sessions, settings)
    for policy in ("advise", "allocate"):
        with sessions.begin() as session:
            change_sweep(session, sweep_id, SweepChange(policy=policy), actor="tok", now=LATER)
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert {one.run_id for one in said.runs} == set(runs.values())


def test_where_only_runs_of_their_users_are_left_that_is_said(sessions: Sessions, settings: Settings) -> None:
    theirs = PAUSED | {"allocated": False}
    sweep_id, _ = begin(sessions, {"control": 5, "higher": 9}, control=theirs, higher=theirs)
    assert allocate(sessions, settings, sweep_id).over == "each is over, or left to its user"


def test_that_it_is_over_is_said_where_all_runs_came_to_an_end_by_themselves(
    sessions: Sessions, settings: Settings
) -> None:
    sweep_id, runs = begin(sessions, {"control": 12, "lower": 3})
    assert allocate(sessions, settings, sweep_id).over is None
    with sessions.begin() as session:
        session.get_one(Run, runs["lower"]).status = "failed"
        run = session.get_one(Run, runs["control"])
        add_evaluations(session, run, COMPUTE[12:], curve("control")[12:], first_step=120)
        run.status = "succeeded"
    said = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert (said.choice, said.over) == (runs["control"], "every run is at its end")
    again = allocate(sessions, settings, sweep_id, LATER + timedelta(hours=2))
    assert (again.choice, again.over, again.sentence) == (said.choice, said.over, said.sentence)
