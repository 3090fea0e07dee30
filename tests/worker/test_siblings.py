"""Past runs as the prior of a new one: what a refit says with them, and what rests on the run's own data alone."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science.posterior.prior import FLAT
from server.forecasts.curves import run_curve
from server.forecasts.fitted import curve_of
from server.forecasts.models import Forecast
from server.forecasts.past_runs import past_runs
from server.forecasts.schemas import ForecastView
from server.forecasts.siblings import prior_of
from server.metrics.models import Evaluation
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, make_forecast, make_run, make_sweep, sigmoid
from tests.worker.refitting import COLLAPSING, COMPUTE, forecasts, run_of, start_run
from worker.refit import refit

Sessions = sessionmaker[Session]

CEILINGS = (0.76, 0.79, 0.77, 0.80, 0.78, 0.775)  # and .78 of the run that is forecast


def family(sessions: Sessions, ceilings: tuple[float, ...] = CEILINGS, recipe: str | None = None) -> str:
    """A sweep whose runs are over; its id. With a recipe they are its seeds."""
    rng = np.random.default_rng(11)
    with sessions.begin() as session:
        sweep_id = make_sweep(session).id
        for seed, ceiling in enumerate(ceilings):
            run = make_run(session, sweep_id=sweep_id, status="succeeded", seed=seed, recipe_id=recipe)
            noise = rng.normal(0.0, 6e-5**0.5, len(COMPUTE))
            add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE, A=ceiling) + noise)
            run.dirty_at = None
    return sweep_id


def refitted(sessions: Sessions, settings: Settings, run_id: str) -> Forecast:
    """What is shown of the run after a refit."""
    refit(sessions, settings, run_id, START)
    shown = run_of(sessions, run_id).forecast_id
    return next(one for one in forecasts(sessions, run_id) if one.id == shown)


def prior(forecast: Forecast) -> tuple[str, int, int]:
    """What it was told by: its name, how many are seeds of its arm, how many runs it names."""
    said = forecast.summary["prior"]
    return said["name"], said["seeds"], len(set(said["runs"]))


def width(forecast: Forecast) -> float:
    said = forecast.summary["A"]
    return float(said["upper"] - said["lower"])


def test_past_runs_tell_where_a_run_that_hardly_began_will_end(sessions: Sessions, settings: Settings) -> None:
    told = refitted(sessions, settings, start_run(sessions, points=6, sweep_id=family(sessions)))
    alone = refitted(sessions, settings, start_run(sessions, points=6))
    assert width(told) < 0.4 * width(alone)
    assert told.summary["A"]["lower"] < 0.78 < told.summary["A"]["upper"]
    assert prior(told) == ("6 siblings", 0, 6)
    assert (told.summary["ceiling_known"], alone.summary["ceiling_known"]) == (True, False)
    assert told.sentence.startswith("Ceiling 0.78 (90 %: 0.7")
    assert " by 6 siblings, hardly by its own data yet, " in told.sentence
    assert alone.summary["prior"] is None
    assert alone.sentence.startswith("Ceiling not identified yet")
    shown = ForecastView.of(told).prior
    assert shown is not None
    assert (shown.name, len(shown.runs)) == ("6 siblings", 6)


def test_seeds_of_its_own_arm_tell_more_and_are_counted(sessions: Sessions, settings: Settings) -> None:
    with sessions.begin() as session:
        row = RecipeRow(name="scalerl", digest="sha256:s", body={"seed": 0, "task": {"name": "maze"}})
        session.add(row)
        session.flush()
        recipe = row.id
    sweep_id = family(sessions, ceilings=(0.776, 0.784, 0.78), recipe=recipe)
    seed = start_run(sessions, points=6, sweep_id=sweep_id, recipe_id=recipe, seed=7)
    other = start_run(sessions, points=6, sweep_id=sweep_id, seed=7)
    known, new = (refitted(sessions, settings, run_id) for run_id in (seed, other))
    assert prior(known) == ("3 siblings", 3, 3)
    assert prior(new) == ("3 siblings", 0, 3)
    assert width(known) < 0.7 * width(new)


def test_a_seed_of_an_arm_that_fell_late_is_expected_to_end_where_its_other_seeds_did(
    sessions: Sessions, settings: Settings
) -> None:
    """Up to a quarter all arms go the same way, and of all the same was said; each jumps to where its seeds end."""
    ends, half = {"better": 0.86, "broken": 0.3, "worse": 0.5, "same": 0.86}, COMPUTE > 50.0
    live = {}
    with sessions.begin() as session:
        sweep = make_sweep(session)
        for loss, end in ends.items():
            row = RecipeRow(name="r", digest=f"sha256:{loss}", body={"task": {"name": "maze"}, "loss": loss})
            session.add(row)
            session.flush()
            of_arm = {"sweep_id": sweep.id, "recipe_id": row.id}
            for seed in range(2):
                run = make_run(session, **of_arm, status="succeeded", seed=seed)
                add_evaluations(session, run, COMPUTE, np.where(half, end, sigmoid(COMPUTE)) + 0.001 * seed)
                make_forecast(session, run, at_compute=24.0)
                run.dirty_at = None
            live[loss] = of_arm
    expected = {}
    for loss, of_arm in live.items():
        told = refitted(sessions, settings, start_run(sessions, points=13, seed=2, **of_arm))
        expected[loss] = told.summary["at_budget"]["calibrated"]["median"]
        assert "adjusted by 8 past runs, 2 of its arm: " in told.sentence
        assert told.summary["at_budget"]["ending"]["median"] > 0.6
    assert expected == {loss: pytest.approx(end, abs=0.07) for loss, end in ends.items()}


def test_seeds_of_its_arm_that_are_only_ahead_move_where_a_run_is_expected_to_end(
    sessions: Sessions, settings: Settings
) -> None:
    """Up to a quarter all arms go the same way; the arm of the live ones has stood at .45 since."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        for end in (0.78, 0.3, 0.5, 0.7, 0.45):
            row = RecipeRow(name="r", digest=f"sha256:{end}", body={"task": {"name": "maze"}, "loss": str(end)})
            session.add(row)
            session.flush()
            of_arm = {"sweep_id": sweep.id, "recipe_id": row.id}
            live = end == 0.45
            for seed in range(2):
                run = make_run(session, **of_arm, status="running" if live else "succeeded", seed=seed)
                seen = COMPUTE[: 36 if live else 51]  # at 70 of 100
                reward = np.where(seen > 26.0, end, sigmoid(seen)) + 0.001 * seed
                add_evaluations(session, run, seen, reward + 0.004 * np.sin(np.arange(len(seen))))
                said = make_forecast(session, run, at_compute=24.0)
                said.summary = said.summary | {"prior": {"name": "4 siblings", "seeds": 0}}
                run.dirty_at = None
    told = refitted(sessions, settings, start_run(sessions, points=13, seed=2, **of_arm))
    ending, calibrated = told.summary["at_budget"]["ending"], told.summary["at_budget"]["calibrated"]
    conformal = told.summary["at_budget"]["conformal"]
    assert (conformal["ahead"], conformal["seeds"]) == (2, 0)
    assert conformal["lean"] < -0.02
    assert calibrated["median"] < ending["median"] + conformal["shift"] - 0.02
    assert " and 2 of its seeds further along: " in told.sentence


def test_what_a_run_is_judged_against_rests_on_its_own_evaluations(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, points=19, sweep_id=family(sessions))  # the last one at 36 of 100
    lone = start_run(sessions, points=19)
    told, alone = refitted(sessions, settings, run_id), refitted(sessions, settings, lone)
    run = run_of(sessions, run_id)
    assert run.frozen_forecast_id not in (None, told.id)
    frozen = next(one for one in forecasts(sessions, run_id) if one.id == run.frozen_forecast_id)
    assert told.summary["prior"]["name"] == "6 siblings"
    assert frozen.summary["prior"] is None
    assert (frozen.state, frozen.band) == (alone.state, alone.band)
    assert told.state == {}
    with sessions() as session:  # one place on the slider, not two
        assert [mark.id for mark in run_curve(session, run_id).refits] == [told.id]


def test_runs_that_ended_sooner_than_this_one_is_to_go_tell_while_they_are_far_ahead(
    sessions: Sessions, settings: Settings
) -> None:
    """They spent 100. Of 150 that is half and more: for as long as this one has spent half of theirs."""
    sweep_id = family(sessions)

    def told(points: int, budget: float | None) -> Forecast:
        run_id = start_run(sessions, points=points, sweep_id=sweep_id, budget_compute=budget)
        return refitted(sessions, settings, run_id)

    early, late, far, endless = told(6, 150.0), told(27, 150.0), told(6, 210.0), told(6, None)
    assert prior(early) == prior(late) == prior(endless) == ("6 siblings", 0, 6)  # the late one is not yet beyond them
    assert (early.summary["prior"]["ahead"], endless.summary["prior"]["ahead"]) == (6, 0)
    assert far.summary["prior"] is None
    assert "with 6 runs as far along: " in early.sentence


def test_live_runs_tell_of_those_that_are_far_behind_them_and_later_of_those_beside_them(
    sessions: Sessions, settings: Settings
) -> None:
    """Of the end itself nobody knows yet, and the interval says so."""
    live = family(sessions)
    ceiling = {"sweep_id": live, "points": 6}
    finished = refitted(sessions, settings, start_run(sessions, **ceiling))
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == live, Run.status == "succeeded")):
            run.status = "running"
            points = session.scalars(select(Evaluation).where(Evaluation.run_id == run.id, Evaluation.compute > 60.0))
            for point in points:
                session.delete(point)
            run.last_compute = 60.0
    alone = refitted(sessions, settings, start_run(sessions, points=6))
    behind = refitted(sessions, settings, start_run(sessions, **ceiling))
    near = refitted(sessions, settings, start_run(sessions, points=13, sweep_id=live))  # at 24 of 100
    beside = refitted(sessions, settings, start_run(sessions, points=17, sweep_id=live))  # at 32: not half of theirs
    beyond = refitted(sessions, settings, start_run(sessions, points=36, sweep_id=live))  # at 70
    assert prior(behind) == prior(near) == prior(beside) == ("6 siblings", 0, 6)
    assert (behind.summary["prior"]["ahead"], beside.summary["prior"]["ahead"]) == (6, 6)
    assert beyond.summary["prior"] is None
    assert width(behind) < 0.5 * width(alone)
    assert behind.summary["A"]["lower"] < 0.78 < behind.summary["A"]["upper"]
    assert "with 6 runs as far along: " in behind.sentence
    ends = [one.summary["at_budget"]["ending"] for one in (finished, behind)]
    assert ends[1]["upper"] - ends[1]["lower"] > 2 * (ends[0]["upper"] - ends[0]["lower"])
    shown = ForecastView.of(behind).prior
    assert shown is not None
    assert shown.ahead == 6


def test_a_run_that_failed_or_is_put_away_tells_nothing(sessions: Sessions, settings: Settings) -> None:
    sweep_id = family(sessions)
    with sessions.begin() as session:
        for number, run in enumerate(session.scalars(select(Run).where(Run.sweep_id == sweep_id))):
            if number < 3:
                run.status = "failed"
            else:
                run.archived_at = START
    assert refitted(sessions, settings, start_run(sessions, points=6, sweep_id=sweep_id)).summary["prior"] is None


def test_runs_without_a_recipe_tell_of_one_another_by_the_task_that_they_name(
    sessions: Sessions, settings: Settings
) -> None:
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == family(sessions))):
            run.sweep_id, run.task = None, "gsm8k"
    told = refitted(sessions, settings, start_run(sessions, points=6, task="gsm8k"))
    alone = refitted(sessions, settings, start_run(sessions, points=6))
    assert prior(told) == ("6 siblings", 0, 6)
    assert alone.summary["prior"] is None


def test_of_runs_that_were_over_before_they_came_it_is_said_now_what_would_have_been_said(
    sessions: Sessions, settings: Settings
) -> None:
    def told(imported: bool) -> dict[str, float | str | None]:
        with sessions.begin() as session:
            past = session.scalars(select(Run).where(Run.sweep_id == family(sessions)))
            task = f"gsm8k, imported: {imported}"
            for number, run in enumerate(past):
                run.sweep_id, run.arm, run.task = None, None, task
                run.import_digest = f"sha256:{number}" if imported else None
        live = refitted(sessions, settings, start_run(sessions, points=6, task=task))
        assert prior(live) == ("6 siblings", 0, 6)
        return dict(live.summary["at_budget"]["conformal"])

    assert told(imported=True)["calibration"] == "adjusted (6 past runs)"
    assert told(imported=False)["calibration"] == "posterior"  # of these nothing was ever said: no forecast is stored


def test_a_run_that_is_no_sigmoid_is_told_by_nobody(sessions: Sessions, settings: Settings) -> None:
    fallen = refitted(sessions, settings, start_run(sessions, COLLAPSING, 40, sweep_id=family(sessions)))
    assert fallen.summary["misfit"] is not None
    assert fallen.summary["prior"] is None


def test_a_past_run_that_fell_is_not_counted_among_those_that_tell(sessions: Sessions, settings: Settings) -> None:
    sweep_id = family(sessions, CEILINGS[:3])
    with sessions.begin() as session:
        add_evaluations(session, make_run(session, sweep_id=sweep_id, status="succeeded"), COMPUTE, COLLAPSING)
    told = refitted(sessions, settings, start_run(sessions, points=20, sweep_id=sweep_id))
    assert prior(told) == ("3 siblings", 0, 3)


def test_a_past_run_is_fitted_once_and_one_that_is_no_curve_is_left_out(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = family(sessions, ceilings=(0.75, 0.77, 0.81))
    with sessions.begin() as session:
        broken = make_run(session, sweep_id=sweep_id, status="succeeded")
        add_evaluations(session, broken, COMPUTE, 100 * sigmoid(COMPUTE))  # in percent: out of range
        short = make_run(session, sweep_id=sweep_id, status="succeeded")
        add_evaluations(session, short, COMPUTE[[0, 25, 50]], sigmoid(COMPUTE[[0, 25, 50]]))
        run = make_run(session, sweep_id=sweep_id)
        past = past_runs(session, run)
    assert len(past) == 5
    fitted: list[str] = []

    def counted(name: str, *rest: object) -> object:
        fitted.append(name)
        return curve_of(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("server.forecasts.siblings.curve_of", counted)
    first = prior_of(past, None, "GPU-hours", 100.0)
    assert first.name == "3 siblings"
    assert prior_of(past, None, "GPU-hours", 100.0) == first
    assert prior_of(past[:3], None, "GPU-hours", 100.0) != first  # another prior, of the same fits
    assert len(fitted) == len(set(fitted)) == 4
    assert prior_of([], None, "GPU-hours", 100.0) == FLAT
