"""Past runs: which are comparable, which are seeds of one arm, and whose forecasts a new one learns from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from server.forecasts.past_runs import arm_of, has_seeds, past_runs, telling_runs
from server.metrics.curve import inherit
from server.recipes.models import RecipeRow
from server.runs.models import Run
from tests.server.forecasts.seeds import add_evaluations, learned, make_forecast, make_run, make_sweep, sigmoid

Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 21)


def recipe(session: Session, **fields: Any) -> RecipeRow:
    body = {"name": "scalerl", "seed": 0, "budget": {"compute": 100.0}, "task": {"name": "maze"}, "loss": "cispo"}
    row = RecipeRow(name="r", digest=f"sha256:{sorted(fields.items())}", body=body | fields)
    session.add(row)
    session.flush()
    return row


def finished(session: Session, recipe: RecipeRow | None, last: int = 21, **columns: Any) -> Run:
    values = {"status": "succeeded", "recipe_id": recipe.id if recipe else None} | columns
    run = make_run(session, **values)
    add_evaluations(session, run, COMPUTE[:last], sigmoid(COMPUTE[:last]))
    return run


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        ({"seed": 1}, True),
        ({"name": "again", "budget": {"compute": 50.0}}, True),
        ({"loss": "grpo"}, False),
        ({"seed": 1, "loss": "grpo"}, False),
    ],
)
def test_runs_whose_recipes_differ_in_name_seed_and_budget_are_of_one_arm(
    sessions: Sessions, change: dict[str, Any], alike: bool
) -> None:
    with sessions.begin() as session:
        run = make_run(session, recipe_id=recipe(session).id, seed=0)
        finished(session, recipe(session, **change), seed=1)
        (past,) = past_runs(session, run)
        arm = arm_of(session, run)
    assert arm
    assert (past.arm == arm) == alike == has_seeds([past], arm)


def test_without_a_seed_or_a_recipe_a_run_is_of_no_arm(sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep, own = make_sweep(session), recipe(session)
        finished(session, own, sweep_id=sweep.id)  # no seed
        finished(session, None, sweep_id=sweep.id, seed=3)
        assert [one.arm for one in past_runs(session, make_run(session, sweep_id=sweep.id))] == [None, None]
        for run in (make_run(session, recipe_id=own.id), make_run(session, seed=1)):
            assert arm_of(session, run) is None
    assert not has_seeds([], None)


def test_of_a_run_and_its_forks_that_have_its_evaluations_one_tells(sessions: Sessions) -> None:
    """What they have in common is known once: a fork that never started has nothing else."""
    with sessions.begin() as session:
        own = recipe(session)
        parent, other = finished(session, own, seed=0), make_run(session, recipe_id=own.id, seed=1, status="stopped")
        add_evaluations(session, other, COMPUTE, sigmoid(COMPUTE) + 0.01)
        for status, last in (("stopped", 21), ("stopped", 14), ("queued", 21)):
            fork = make_run(session, recipe_id=own.id, seed=0, status=status, budget_compute=100.0)
            inherit(session, fork.id, parent_id=parent.id, attempt=1, step=10 * (last - 1))
            fork.last_compute = float(COMPUTE[last - 1])
        run = make_run(session, recipe_id=own.id, seed=2)
        past = past_runs(session, run)
        assert [one.id for one in past] == [other.id, parent.id]
        assert [one.id for one in telling_runs(session, run, past)] == [other.id, parent.id]
        further = make_run(session, recipe_id=own.id, seed=0, status="succeeded", budget_compute=110.0)
        inherit(session, further.id, parent_id=parent.id, attempt=1, step=200)
        add_evaluations(session, further, [105.0, 110.0], [0.77, 0.77], first_step=210)
        assert [one.id for one in past_runs(session, run)] == [further.id, other.id]


def test_a_run_tells_the_end_of_those_that_go_no_further_than_it_went(sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        finished(session, None, sweep_id=sweep.id)
        finished(session, None, last=12, sweep_id=sweep.id)  # cut short of its budget: not past at all
        (past,) = past_runs(session, make_run(session, sweep_id=sweep.id))
    assert past.tells_the_end(100.0)
    assert past.tells_the_end(110.0)  # nearly there
    assert not past.tells_the_end(120.0)
    assert past.tells_the_end(None)


def test_a_new_arm_learns_from_one_seed_of_each_arm_said_without_its_other_seeds(sessions: Sessions) -> None:
    """Of the second arm all three were forecast when another seed of it was over; of the first one, two were not."""
    with sessions.begin() as session:
        arms = {
            loss: [finished(session, recipe(session, loss=loss, seed=seed), seed=seed) for seed in range(3)]
            for loss in ("cispo", "grpo")
        }
        alone = arms["cispo"][:2]
        for run in (*arms["cispo"], *arms["grpo"]):
            forecast = make_forecast(session, run, at_compute=25.0)
            seeds = {"name": "2 siblings", "seeds": 0 if run in alone else 2}
            forecast.summary = forecast.summary | {"prior": seeds}
        alone_of_its_arm = make_forecast(session, arms["grpo"][0], at_compute=30.0)
        alone_of_its_arm.summary = alone_of_its_arm.summary | {"prior": {"name": "3 siblings", "seeds": 0}}
        make_forecast(session, arms["grpo"][1], at_compute=25.0)  # by its own evaluations alone: another kind
        session.flush()
        live = make_run(session, recipe_id=recipe(session, loss="dapo").id, seed=0, last_compute=25.0)
        of_a_new_arm = learned(session, live, informed=True)
        of_a_known_one = learned(session, live, informed=True, known=True)
        by_itself = learned(session, live)
    newest = max(alone, key=lambda run: run.id)
    assert {one.run: one.fraction for one in of_a_new_arm} == {newest.id: 0.25, arms["grpo"][0].id: 0.3}
    assert {one.run for one in of_a_known_one} == {run.id for runs in arms.values() for run in runs}
    assert {one.fraction for one in of_a_known_one} == {0.25}
    assert {one.run for one in by_itself} == {arms["grpo"][1].id}
    ended = float(sigmoid(COMPUTE)[-2:].mean())
    assert [one.mates for one in of_a_known_one] == [pytest.approx((ended, ended))] * 6


def test_a_forecast_learns_from_those_that_knew_as_much(sessions: Sessions) -> None:
    """Of a run's two forecasts from the same evaluations the frozen one rests on these alone."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = finished(session, None, sweep_id=sweep.id)
        frozen = make_forecast(session, run, at_compute=25.0, id="fct_1")
        ends = frozen.summary["ends_ahead"]
        frozen.summary = frozen.summary | {"ends_ahead": {**ends, "median": [0.0] * len(ends["median"])}}
        shown = make_forecast(session, run, at_compute=25.0, id="fct_2")
        shown.summary = shown.summary | {"prior": {"name": "4 siblings", "seeds": 0}}
        session.flush()
        live = make_run(session, sweep_id=sweep.id, last_compute=25.0)
        (told,), (alone,) = learned(session, live, informed=True), learned(session, live)
    assert told.estimate.median > 0.7
    assert alone.estimate.median == 0.0
