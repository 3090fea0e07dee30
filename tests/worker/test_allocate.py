"""Runs that share one budget of compute, on real Postgres: who is let on, who is held, and when all are stopped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

import worker.allocate
import worker.compare
from server.events.models import Event
from server.runs import pausing
from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.service import request_stop
from server.runs.states import Status
from server.settings import Settings
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import Sweep, SweepComparison
from server.sweeps.schemas import SweepChange
from server.sweeps.service import change_sweep, get_sweep, sweep_read
from tests.worker.refitting import COMPUTE, Sessions
from tests.worker.sharing import CEILINGS, LATER, PAUSED, allocate, begin, dirty_at, run_of, states
from worker.compare import compare_sweep
from worker.refit import refit


def test_runs_that_can_be_forecast_are_held_until_the_others_can(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 2, "lower": 0}, lower={"status": "queued"})
    said = allocate(sessions, settings, sweep_id)
    assert states(sessions, runs) == {
        "control": ("pause", "running", False),  # its trainer is told, and ends in its own time
        "higher": ("run", "running", True),
        "lower": ("run", "queued", True),
    }
    assert said.sentence == "Every run trains until it can be forecast: 1 of 3 can be."
    assert (said.choice, said.over, said.runs, said.spent) == (None, None, [], COMPUTE[4] + COMPUTE[1])


def test_looks_are_taken_in_the_places_that_there_are(sessions: Sessions, settings: Settings) -> None:
    settings.max_concurrent_runs = 1
    held = {"higher": PAUSED, "lower": PAUSED, "control": PAUSED}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, **held)
    said = allocate(sessions, settings, sweep_id)
    let_on = [arm for arm, state in states(sessions, runs).items() if state == ("run", "queued", True)]
    assert len(let_on) == 1
    run = run_of(sessions, runs[let_on[0]])
    assert run.goes_to is not None
    assert COMPUTE[4] < run.goes_to < 100
    assert run.reason is not None
    assert run.reason.startswith("Let on by its sweep to ")
    (told,) = [one for one in said.runs if one.reason]
    assert told.run_id == run.id
    assert sum(one.p_best for one in said.runs) == pytest.approx(1)
    assert [one.p_best for one in said.runs] == sorted((one.p_best for one in said.runs), reverse=True)


def test_a_run_on_its_way_is_left_alone_and_one_that_arrived_is_thought_over(
    sessions: Sessions, settings: Settings
) -> None:
    settings.max_concurrent_runs = 1
    on = {"control": {"goes_to": 90.0}, "higher": PAUSED, "lower": {"goes_to": COMPUTE[4]}}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, **on)
    allocate(sessions, settings, sweep_id)
    assert run_of(sessions, runs["control"]).goes_to == 90.0
    assert states(sessions, runs) == {
        "control": ("run", "running", True),
        "higher": ("pause", "paused", False),
        "lower": ("pause", "running", False),  # the place is the control's
    }


def test_an_arm_of_several_seeds_is_chosen_by_their_mean(sessions: Sessions, settings: Settings) -> None:
    points = dict.fromkeys(CEILINGS, 24)
    sweep_id, runs = begin(sessions, points, top={"arm": "mixed"}, lower={"arm": "mixed", "seed": 1})
    said = allocate(sessions, settings, sweep_id)
    assert said.choice == runs["higher"]
    told = {one.run_id: one for one in said.runs}
    assert {arm: told[run_id].seed_of for arm, run_id in runs.items()} == {
        "control": None,
        "higher": None,
        "top": "mixed",
        "lower": "mixed",
    }
    assert told[runs["top"]].p_best == told[runs["lower"]].p_best
    places = [one.run_id for one in said.runs]
    assert places.index(runs["lower"]) == places.index(runs["top"]) + 1  # side by side, the higher one first
    with sessions.begin() as session:
        session.get_one(Run, runs["top"]).arm = "top"
    assert allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1)).choice == runs["top"]


@pytest.mark.parametrize(
    "gone", [{"status": "failed"}, PAUSED | {"allocated": False}, {"status": "stopped", "allocated": False}]
)
def test_a_seed_that_cannot_be_chosen_counts_for_its_arm(
    sessions: Sessions, settings: Settings, gone: dict[str, Any]
) -> None:
    """And its arm's odds are those of the ranking."""
    points = {"control": 24, "top": 18, "lower": 24}
    arm = {"top": {"arm": "mixed"}, "lower": {"arm": "mixed", "seed": 1} | gone}
    sweep_id, runs = begin(sessions, points, **arm)
    said = allocate(sessions, settings, sweep_id)
    told = {one.run_id: one for one in said.runs}
    assert said.choice == runs["control"]  # the mean of the other arm is lower
    assert [told[runs[name]].seed_of for name in ("top", "lower")] == ["mixed", "mixed"]
    with sessions() as session:
        row = session.get_one(SweepComparison, sweep_id)
    assert row.result is not None
    ranked = {one["arm"]: one["p_best"] for one in row.result["ranking"]["arms"]}
    assert told[runs["top"]].p_best == pytest.approx(ranked["mixed"], abs=0.02)
    with sessions.begin() as session:
        session.get_one(Run, runs["control"]).status = "failed"
    assert allocate(sessions, settings, sweep_id, LATER + timedelta(hours=1)).choice == runs["top"]


def test_how_far_seeds_lie_apart_is_the_comparisons(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    think = worker.allocate.think
    monkeypatch.setattr(
        worker.allocate, "think", lambda shared, fits, seed_sd: asked.append(seed_sd) or think(shared, fits, seed_sd)
    )
    sweep_id, _ = begin(sessions, {"control": 24, "higher": 24, "top": 24}, top={"arm": "higher", "seed": 1})
    allocate(sessions, settings, sweep_id)
    with sessions() as session:
        row = session.get_one(SweepComparison, sweep_id)
    assert row.result is not None
    assert [one.to_dict() for one in asked] == [row.result["seed_spread"]]


def test_why_a_run_trains_on_is_told_while_it_does(sessions: Sessions, settings: Settings) -> None:
    settings.max_concurrent_runs = 1
    held = {"higher": PAUSED, "lower": PAUSED}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, **held)
    first, again = (allocate(sessions, settings, sweep_id, LATER + timedelta(hours=hour)) for hour in range(2))
    (told,) = [one for one in first.runs if one.reason]
    assert [(one.run_id, one.reason) for one in again.runs if one.reason] == [(told.run_id, told.reason)]
    with sessions() as session:
        let_on = select(Event).where(Event.kind.in_(["run.allocated", "run.status"]), Event.actor == "allocation")
        (event,) = session.scalars(let_on.where(Event.run_id.in_(runs.values()))).all()
    assert (event.run_id, event.reason) == (told.run_id, run_of(sessions, told.run_id).reason or event.reason)
    assert event.reason is not None
    assert told.reason is not None
    assert told.reason in event.reason


def test_the_best_goes_to_its_end_and_then_all_is_over(sessions: Sessions, settings: Settings) -> None:
    apart = {"control": PAUSED, "lower": PAUSED}
    sweep_id, runs = begin(sessions, {"control": 51, "lower": 30}, **apart)
    with sessions.begin() as session:
        session.get_one(Run, runs["control"]).status = "succeeded"
    said = allocate(sessions, settings, sweep_id)
    assert said.choice == runs["control"]
    assert said.settled
    assert said.over is not None
    assert states(sessions, runs)["lower"][0] == "stop"
    reason = run_of(sessions, runs["lower"]).desired_reason
    assert reason == f"Its sweep is over: {said.over}."
    with sessions() as session:
        actors = session.scalars(select(Event.actor).where(Event.run_id == runs["lower"])).all()
    assert actors == ["allocation"]


def test_a_spent_budget_ends_the_sweep_but_for_what_is_a_persons(sessions: Sessions, settings: Settings) -> None:
    own = {"lower": {"allocated": False, "goes_to": None}}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9, "lower": 3}, budget=20.0, **own)
    said = allocate(sessions, settings, sweep_id)
    assert said.over == "the budget is spent"
    assert {arm: state[0] for arm, state in states(sessions, runs).items()} == {
        "control": "stop",
        "higher": "stop",
        "lower": "run",
    }


def test_what_a_person_paused_or_resumed_is_theirs(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, higher=PAUSED, lower=PAUSED)
    with sessions.begin() as session:
        pausing.pause_run(session, runs["higher"], actor="tok", reason=None, now=LATER)  # it was held: now it stays
        pausing.resume_run(session, runs["lower"], actor="tok", now=LATER)
    for _ in range(2):
        allocate(sessions, settings, sweep_id)
    found = states(sessions, runs)
    assert (found["higher"], found["lower"]) == (("pause", "paused", False), ("run", "queued", False))
    assert not run_of(sessions, runs["higher"]).allocated
    assert not run_of(sessions, runs["lower"]).allocated


def test_a_run_that_a_person_stopped_is_not_chosen(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 8, "higher": 12, "lower": 8}, higher=PAUSED)
    with sessions.begin() as session:
        run = request_stop(session, session.get_one(Run, runs["higher"]), actor="tok", reason=None)
        transition(session, run, Status.STOPPED, actor="reconciler", reason="", now=LATER)
    said = allocate(sessions, settings, sweep_id)
    assert runs["higher"] not in {one.run_id for one in said.runs}
    assert said.choice in {runs["control"], runs["lower"]}


@pytest.mark.parametrize("to", [Status.FAILED, Status.PAUSED])
def test_the_end_of_a_run_has_the_others_thought_over(sessions: Sessions, settings: Settings, to: Status) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5}, higher={"status": "running", "goes_to": 50.0})
    allocate(sessions, settings, sweep_id)
    assert dirty_at(sessions, sweep_id) is None
    with sessions.begin() as session:
        transition(session, session.get_one(Run, runs["higher"]), to, actor="reconciler", reason="", now=LATER)
    assert dirty_at(sessions, sweep_id) is not None


def test_without_a_control_it_is_allocated_all_the_same(sessions: Sessions, settings: Settings) -> None:
    sweep_id, _ = begin(sessions, {"higher": 5, "lower": 5})
    said = allocate(sessions, settings, sweep_id)
    assert len(said.runs) == 2


def test_two_runs_of_one_name_are_two(sessions: Sessions, settings: Settings) -> None:
    same = {"higher": {"name": "control"}}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, **same)
    said = allocate(sessions, settings, sweep_id)
    assert {one.run_id for one in said.runs} == set(runs.values())


def test_a_run_that_is_called_as_another_arm_is_told_from_it(sessions: Sessions, settings: Settings) -> None:
    seeds = {"control": {"name": "control s0"}, "higher": {"name": "control s1", "arm": "control"}}
    sweep_id, runs = begin(sessions, {"control": 24, "higher": 24, "top": 24}, top={"name": "control"}, **seeds)
    said = allocate(sessions, settings, sweep_id)
    assert said.sentence.startswith(f"control ({runs['top']}) ends highest at 100 GPU-hours with ")
    assert [one.seed_of for one in said.runs] == [None, "control", "control"]


def test_a_run_that_changed_meanwhile_is_left_for_the_next_time(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 2})
    think = worker.allocate.think

    def resumed_meanwhile(*given: Any) -> Any:
        with sessions.begin() as session:
            pausing.pause_run(session, runs["control"], actor="tok", reason="mine", now=LATER)
        return think(*given)

    monkeypatch.setattr(worker.allocate, "think", resumed_meanwhile)
    allocate(sessions, settings, sweep_id)
    control = run_of(sessions, runs["control"])
    assert (control.desired_reason, control.allocated) == ("mine", False)


def test_what_cannot_be_thought_over_is_tried_again(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 2})

    def broken(*given: Any) -> Any:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(worker.allocate, "next_round", broken)
        allocate(sessions, settings, sweep_id)
    with sessions() as session:
        row = session.get_one(SweepComparison, sweep_id)
        again_at = row.again_at
    assert states(sessions, runs)["control"] == ("run", "running", True)
    assert again_at is not None
    compare_sweep(sessions, settings, sweep_id, again_at + timedelta(minutes=1))
    assert states(sessions, runs)["control"] == ("pause", "running", False)


def test_another_policy_allocates_nothing(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 2})
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, sweep_id)
        sweep.policy, sweep.budget_compute = "advise", None
        ask_for_comparison(session, sweep_id, LATER)
    compare_sweep(sessions, settings, sweep_id, LATER)
    assert states(sessions, runs)["control"] == ("run", "running", True)
    with sessions() as session:
        assert sweep_read(session, get_sweep(session, sweep_id), LATER).allocation is None


def meanwhile(sessions: Sessions, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Session], object]) -> None:
    """Have something happen while who trains on is thought over."""
    think = worker.allocate.think

    def interrupted(*given: Any) -> Any:
        with sessions.begin() as session:
            happens(session)
        return think(*given)

    monkeypatch.setattr(worker.allocate, "think", interrupted)


def test_a_comparison_that_fails_stops_and_holds_nobody(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5})

    def broken(_compared: Any) -> Any:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patched:
        patched.setattr(worker.compare, "find", broken)
        said = allocate(sessions, settings, sweep_id)
    assert said.over is None
    assert {state[0] for state in states(sessions, runs).values()} == {"run"}
    with sessions() as session:
        again_at = session.get_one(SweepComparison, sweep_id).again_at
    assert again_at is not None
    compare_sweep(sessions, settings, sweep_id, again_at + timedelta(minutes=1))
    with sessions() as session:
        found = sweep_read(session, get_sweep(session, sweep_id), LATER).allocation
    assert found is not None
    assert found.planned_at is not None


def test_who_was_to_go_on_and_became_a_persons_meanwhile_has_the_others_thought_over(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.max_concurrent_runs = 1
    held = {"control": PAUSED, "higher": PAUSED, "lower": PAUSED}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5, "lower": 5}, **held)

    def paused_by_a_person(session: Session) -> None:
        for run_id in (runs["control"], runs["higher"]):
            pausing.pause_run(session, run_id, actor="tok", reason=None, now=LATER)

    with monkeypatch.context() as patched:
        meanwhile(sessions, patched, paused_by_a_person)
        allocate(sessions, settings, sweep_id)
    assert {state[0] for state in states(sessions, runs).values()} == {"pause"}
    assert dirty_at(sessions, sweep_id) is not None
    compare_sweep(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert states(sessions, runs)["lower"][0] != "pause"


def test_what_began_meanwhile_is_stopped_the_next_time(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower = {"lower": {"status": "launching"}}
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9, "lower": 0}, budget=20.0, **lower)

    def begins(session: Session) -> None:
        run = session.get_one(Run, runs["lower"])
        transition(session, run, Status.RUNNING, actor="trainer", reason=None, now=LATER)

    with monkeypatch.context() as patched:
        meanwhile(sessions, patched, begins)
        allocate(sessions, settings, sweep_id)
    assert dirty_at(sessions, sweep_id) is not None
    compare_sweep(sessions, settings, sweep_id, LATER + timedelta(hours=1))
    assert {state[0] for state in states(sessions, runs).values()} == {"stop"}
    assert dirty_at(sessions, sweep_id) is None


def test_a_budget_that_was_raised_meanwhile_stops_nobody(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 9}, budget=20.0)

    def raised(session: Session) -> None:
        change_sweep(session, sweep_id, SweepChange(budget_compute=300.0), actor="tok", now=LATER)

    with monkeypatch.context() as patched:
        meanwhile(sessions, patched, raised)
        allocate(sessions, settings, sweep_id)
    assert "stop" not in {state[0] for state in states(sessions, runs).values()}
    assert dirty_at(sessions, sweep_id) is not None


def test_what_runs_spend_before_their_first_forecast_is_seen_too(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 2, "higher": 3}, budget=3.0)
    with sessions.begin() as session:
        session.get_one(Run, runs["higher"]).dirty_at = LATER
    refit(sessions, settings, runs["higher"], LATER)
    compare_sweep(sessions, settings, sweep_id, LATER)
    assert {state[0] for state in states(sessions, runs).values()} == {"stop"}
    with sessions() as session:
        found = sweep_read(session, get_sweep(session, sweep_id), LATER).allocation
    assert found is not None
    assert (found.over, found.sentence) == ("the budget is spent", "No run goes on: the budget is spent.")


def test_a_run_that_is_left_out_is_none_that_can_be_forecast(sessions: Sessions, settings: Settings) -> None:
    theirs = {"lower": {"allocated": False, "goes_to": None}}
    sweep_id, _ = begin(sessions, {"control": 5, "higher": 2, "lower": 1}, **theirs)
    said = allocate(sessions, settings, sweep_id)
    assert said.sentence == "Every run trains until it can be forecast: 1 of 3 can be."


def test_a_held_run_that_a_person_pauses_has_the_others_thought_over(sessions: Sessions, settings: Settings) -> None:
    sweep_id, runs = begin(sessions, {"control": 5, "higher": 5}, higher=PAUSED)
    with sessions.begin() as session:
        pausing.pause_run(session, runs["higher"], actor="tok", reason=None, now=LATER)
    assert dirty_at(sessions, sweep_id) is not None
