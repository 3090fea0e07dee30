"""A sweep's comparison with its control: made in the background, never two at once, nothing forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session

import worker.compare
from forecurve.science import Curve, compare, rank
from forecurve.science.curves.noise import at_levels
from forecurve.science.planning.ranking import ranking_sentence
from server.database import new_id
from server.events.models import Event, OutboxMessage
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.settings import Settings
from server.sweeps.comparisons import COMPARE_TASK, ask_for_comparison
from server.sweeps.models import SweepComparison
from server.sweeps.service import get_sweep, sweep_read
from tests.server.forecasts.seeds import START, add_evaluations, enqueued, make_run, make_sweep, sigmoid
from tests.worker.refitting import COMPUTE, Sessions
from worker.compare import Compared, Found, compare_sweep, find
from worker.refit import refit

LATER = START + timedelta(hours=1)
CEILINGS = {"control": 0.78, "lower": 0.55}


def noisy(arm: str, seed: int) -> Any:
    noise = np.random.default_rng([seed, len(arm)]).normal(0.0, 6e-5**0.5, len(COMPUTE))
    return sigmoid(COMPUTE, A=CEILINGS[arm]) + noise


def start_sweep(sessions: Sessions, seeds: int = 2, points: int = 51, arms: Any = CEILINGS) -> str:
    """A sweep whose arms have run for so many evaluations, and that is to be compared."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        for seed in range(seeds):
            for arm in arms:
                run = make_run(session, f"{arm} s{seed}", arm=arm, sweep_id=sweep.id, is_control=arm == "control")
                run.seed = seed
                if points:
                    add_evaluations(session, run, COMPUTE[:points], noisy(arm, seed)[:points])
        ask_for_comparison(session, sweep.id, START)
        return sweep.id


def curve_like(arm: str, seed: int) -> Curve:
    """What a run of `start_sweep` is for the library; its variance was found by counts, each at its own rate."""
    reward = noisy(arm, seed)
    size = np.full(len(COMPUTE), 256.0 * 4)
    variance = at_levels(np.full(len(COMPUTE), 6e-5), reward, size)
    return Curve(COMPUTE, reward, name=f"{arm} s{seed}", variance=variance, prompts=256, samples=4)


def row_of(sessions: Sessions, sweep_id: str) -> SweepComparison:
    with sessions() as session:
        return session.get_one(SweepComparison, sweep_id)


def around_find(monkeypatch: pytest.MonkeyPatch, before: Callable[[], None]) -> None:
    """Do something between a comparison's claim and its work."""

    def find_after(compared: Compared) -> Found:
        before()
        return find(compared)

    monkeypatch.setattr(worker.compare, "find", find_after)


def test_the_sentence_and_the_verdicts_of_a_sweep_are_those_of_compare(sessions: Sessions, settings: Settings) -> None:
    sweep_id = start_sweep(sessions)
    compare_sweep(sessions, settings, sweep_id, LATER)
    curves = {arm: [curve_like(arm, seed) for seed in range(2)] for arm in CEILINGS}
    expected = compare(curves, "control")
    assert expected.verdicts == {"lower": "ceiling down"}
    with sessions() as session:
        read = sweep_read(session, get_sweep(session, sweep_id), LATER)
        (event,) = session.scalars(select(Event).where(Event.kind == "comparison")).all()
    ranks = rank(curves, 100.0, seed_sd=expected.seed_spread)
    best = ranking_sentence(ranks, 100.0, "GPU-hours")
    assert best == "Best at 100 GPU-hours: control (over 99 % sure). Dominated: lower."
    assert read.sentence == f"4 runs: 4 running. {best} {expected.sentence}"
    assert read.comparison is not None
    assert read.comparison.ranking is not None
    assert [one.model_dump() for one in read.comparison.ranking.arms] == [one.to_dict() for one in ranks]
    assert read.comparison is not None
    (arm,) = read.comparison.arms
    assert (arm.verdict, arm.direction, arm.seeds, arm.would_decide) == ("ceiling", "down", 2, None)
    assert arm.difference is not None
    assert expected.arms[0].difference is not None
    assert arm.difference.model_dump() == pytest.approx(expected.arms[0].difference.to_dict())
    assert (read.comparison.compared_at, event.sweep_id, event.reason) == (LATER, sweep_id, expected.sentence)


def test_a_refit_asks_for_the_comparison_of_its_sweep_once(sessions: Sessions, settings: Settings) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    compare_sweep(sessions, settings, sweep_id, START)
    with sessions.begin() as session:
        runs = [run.id for run in sweep_read(session, get_sweep(session, sweep_id), LATER).runs]
        session.execute(OutboxMessage.__table__.delete())
    for run_id in runs:
        refit(sessions, settings, run_id, START)
    with sessions() as session:
        (message,) = session.scalars(select(OutboxMessage).where(OutboxMessage.task == COMPARE_TASK)).all()
    row = row_of(sessions, sweep_id)
    assert (message.args, message.not_before, row.seconds is None) == ([sweep_id], row.not_before, False)
    assert row.dirty_at is not None
    assert row.dirty_at > START  # it moved with the second refit


@pytest.mark.parametrize(
    ("arms", "points", "note"),
    [
        (("control", "lower"), 3, "Arms are compared as soon as the control and another one have 4 evaluations."),
        (("control",), 12, "There is no other arm to compare with the control."),
        (("lower",), 12, "No run is the control, so nothing is compared."),
    ],
)
def test_where_nothing_can_be_compared_the_sentence_says_why(
    sessions: Sessions, settings: Settings, arms: tuple[str, ...], points: int, note: str
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=points, arms=arms)
    compare_sweep(sessions, settings, sweep_id, LATER)
    with sessions() as session:
        read = sweep_read(session, get_sweep(session, sweep_id), LATER)
    assert read.comparison is None
    assert read.sentence.endswith(f"running. {note}")


def test_a_sweep_of_too_many_runs_is_not_fitted_at_all(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions)
    monkeypatch.setattr("server.comparisons.find.MOST_RUNS", 3)
    monkeypatch.setattr("server.comparisons.find.fit", None)
    compare_sweep(sessions, settings, sweep_id, LATER)
    with sessions() as session:
        said = sweep_read(session, get_sweep(session, sweep_id), LATER).sentence
    assert "are not compared by themselves; `forecurve compare` takes them from a file." in said


def test_an_arm_that_is_too_short_is_left_out_and_the_others_are_compared(
    sessions: Sessions, settings: Settings
) -> None:
    sweep_id = start_sweep(sessions)
    with sessions.begin() as session:
        late = make_run(session, "late", arm="late", sweep_id=sweep_id)
        add_evaluations(session, late, COMPUTE[:3], noisy("lower", 9)[:3])
    compare_sweep(sessions, settings, sweep_id, LATER)
    result = row_of(sessions, sweep_id).result
    assert result is not None
    assert [arm["arm"] for arm in result["arms"]] == ["lower"]


def test_what_comes_during_a_comparison_asks_for_another(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)

    def forecast_changes() -> None:
        with sessions.begin() as session:
            ask_for_comparison(session, sweep_id, LATER)

    around_find(monkeypatch, forecast_changes)
    compare_sweep(sessions, settings, sweep_id, LATER)
    row = row_of(sessions, sweep_id)
    assert row.dirty_at == LATER
    with sessions() as session:
        assert enqueued(session, COMPARE_TASK) == [[sweep_id], [sweep_id]]
    assert row.not_before is not None
    monkeypatch.undo()
    compare_sweep(sessions, settings, sweep_id, LATER)  # it rests
    assert row_of(sessions, sweep_id).dirty_at == LATER
    compare_sweep(sessions, settings, sweep_id, row.not_before)
    assert row_of(sessions, sweep_id).dirty_at is None


def test_a_comparison_rests_ten_times_as_long_as_it_took(sessions: Sessions, settings: Settings) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    compare_sweep(sessions, settings, sweep_id, LATER)
    row = row_of(sessions, sweep_id)
    assert row.seconds is not None
    assert row.not_before is not None
    assert (row.not_before - LATER).total_seconds() == pytest.approx(10 * row.seconds, abs=1e-5)


def test_one_comparison_at_a_time_and_one_that_died_is_taken_up_when_its_lease_ends(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)

    def die() -> None:
        raise KeyboardInterrupt

    around_find(monkeypatch, die)
    with pytest.raises(KeyboardInterrupt):
        compare_sweep(sessions, settings, sweep_id, LATER)
    monkeypatch.undo()
    compare_sweep(sessions, settings, sweep_id, LATER + timedelta(seconds=59))
    assert row_of(sessions, sweep_id).result is None
    compare_sweep(sessions, settings, sweep_id, LATER + timedelta(seconds=60))
    assert row_of(sessions, sweep_id).result is not None


def test_a_comparison_that_was_overtaken_writes_nothing(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    overtaken: list[bool] = []

    def be_slow() -> None:
        if not overtaken:
            overtaken.append(True)
            compare_sweep(sessions, settings, sweep_id, LATER + timedelta(seconds=61))

    around_find(monkeypatch, be_slow)
    compare_sweep(sessions, settings, sweep_id, LATER)
    assert row_of(sessions, sweep_id).compared_at == LATER + timedelta(seconds=61)


def past_sweep(sessions: Sessions, task: str, *, seeds: int = 3, again: bool = False) -> None:
    """Two arms, run through, whose seeds end where they would with any other seed."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        for at, loss in enumerate(("cispo", "grpo")):
            for seed in range(seeds):
                recipe = maze(session, task, loss=loss, seed=seed)
                run = make_run(session, f"{task} {loss} {seed}", sweep_id=sweep.id, status="succeeded", seed=seed)
                run.recipe_id = recipe
                noise = np.random.default_rng([at, seed, 7 + again]).normal(0.0, 6e-5**0.5, len(COMPUTE))
                add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE, A=0.6 + 0.1 * at) + noise)


def maze(session: Session, task: str, **body: Any) -> str:
    row = RecipeRow(name="r", digest=new_id("sha256"), body={"task": {"name": task}} | body)
    session.add(row)
    session.flush()
    return row.id


def compared_with_past(sessions: Sessions, settings: Settings, task: str = "maze", **sweep: Any) -> dict[str, Any]:
    """The comparison of a sweep whose runs have this task."""
    sweep_id = start_sweep(sessions, **sweep)
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == sweep_id)):
            run.recipe_id = maze(session, task, loss=run.arm, seed=run.seed)
    compare_sweep(sessions, settings, sweep_id, LATER)
    result = row_of(sessions, sweep_id).result
    assert result is not None
    return result


def test_seeds_of_past_sweeps_of_the_task_tell_how_far_seeds_lie_apart(sessions: Sessions, settings: Settings) -> None:
    past_sweep(sessions, "maze")
    past_sweep(sessions, "maze", again=True)  # the same seeds once more, as forks are: no further replicates
    past_sweep(sessions, "other", seeds=5)
    told = compared_with_past(sessions, settings, seeds=1)
    assert told["seed_spread"]["past"] == told["compute_spread"]["past"] == 4
    assert told["seed_spread"]["sd"] < 0.0125
    assert told["seed_note"] == f"seed sd about {told['seed_spread']['sd']:.2g} by replicates (4 in past sweeps)"


def test_the_seeds_of_the_sweep_itself_are_not_past(sessions: Sessions, settings: Settings) -> None:
    past_sweep(sessions, "other")
    sweep_id = start_sweep(sessions)
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == sweep_id)):
            run.recipe_id, run.status = maze(session, "maze", loss=run.arm, seed=run.seed), "succeeded"
    compare_sweep(sessions, settings, sweep_id, LATER)
    result = row_of(sessions, sweep_id).result
    assert result is not None
    assert (result["replicates"], result["seed_spread"]["past"]) == (2, 0)
    assert result["seed_note"].endswith("by replicates (2 here)")


def test_the_same_result_again_is_no_event(sessions: Sessions, settings: Settings) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=12)
    compare_sweep(sessions, settings, sweep_id, LATER)
    with sessions.begin() as session:
        ask_for_comparison(session, sweep_id, LATER)
    again = LATER + timedelta(hours=1)
    compare_sweep(sessions, settings, sweep_id, again)
    assert row_of(sessions, sweep_id).compared_at == again
    with sessions() as session:
        assert len(session.scalars(select(Event).where(Event.kind == "comparison")).all()) == 1


def test_the_api_gives_the_comparison_with_the_sweep(
    sessions: Sessions, settings: Settings, api: TestClient, headers: dict[str, dict[str, str]]
) -> None:
    sweep_id = start_sweep(sessions, seeds=1, points=16)
    assert api.get(f"/v1/sweeps/{sweep_id}", headers=headers["read"]).json()["comparison"] is None
    compare_sweep(sessions, settings, sweep_id, LATER)
    body = api.get(f"/v1/sweeps/{sweep_id}", headers=headers["read"]).json()
    (arm,) = body["comparison"]["arms"]
    assert (arm["arm"], arm["seeds"]) == ("lower", 1)
    assert (arm["would_decide"] is None) == (arm["verdict"] != "undecided")
    assert arm["seed_note"].startswith("single seed")
    assert body["sentence"].endswith(body["comparison"]["sentence"])
