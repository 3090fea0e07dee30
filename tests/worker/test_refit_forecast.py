"""What a refit says of a run: its forecast, how it will end, its advice."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sqlalchemy import select

from forecurve.science import Curve, fit
from server.forecasts import curves
from server.forecasts.ends_ahead import end_at
from server.forecasts.models import Recommendation
from server.forecasts.saying import json_safe
from server.forecasts.schemas import CurveView, ForecastView
from server.metrics.past import import_run
from server.metrics.schemas import RunImport
from server.runs.models import Run
from server.runs.views import run_view
from server.settings import Settings
from tests.server.forecasts.seeds import START, add_evaluations, events, make_forecast, make_run, make_sweep, sigmoid
from tests.worker.refitting import (
    COLLAPSING,
    COMPUTE,
    HEALTHY,
    Sessions,
    forecasts,
    grow,
    run_of,
    start_run,
)
from worker.refit import refit


def test_a_refit_stores_a_forecast_that_the_chart_can_show_and_leaves_the_run_clean(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, points=16)
    refit(sessions, settings, run_id, START)
    run = run_of(sessions, run_id)
    (forecast,) = forecasts(sessions, run_id)
    assert (run.forecast_id, run.dirty_at, run.fitted_at, run.fit_lease) == (forecast.id, None, START, None)
    assert (forecast.at_compute, forecast.at_step, forecast.points, forecast.unit) == (30.0, 150, 16, "GPU-hours")
    A = forecast.summary["A"]
    assert A["lower"] < 0.78 < A["upper"]
    told = forecast.summary["ceiling_quantiles"]
    below = dict(zip(told["probabilities"], told["values"], strict=True))
    assert (below[0.05], below[0.5], below[0.95]) == pytest.approx((A["lower"], A["median"], A["upper"]), abs=1e-5)
    assert told["values"] == sorted(told["values"])
    assert forecast.summary["at_budget"]["compute"] == 100.0
    assert (
        forecast.summary["at_budget"]["curve"]["lower"]
        < sigmoid(100.0)
        < forecast.summary["at_budget"]["curve"]["upper"]
    )
    band = forecast.band
    assert {len(values) for values in band.values()} == {80}
    assert (band["compute"][0], band["compute"][-1]) == (2.0, 125.0)
    for low, high in ("lower90", "lower50"), ("lower50", "median"), ("median", "upper50"), ("upper50", "upper90"):
        assert np.all(np.array(band[low]) <= np.array(band[high]))
    assert forecast.sentence.startswith("Ceiling")
    assert re.search(
        r"\. Expected to end at 0\.\d+ \(90 %, wider without past runs: 0\.\d+ to 0\.\d+\)"
        r" when 100 GPU-hours are spent\.$",
        forecast.sentence,
    ), forecast.sentence
    assert forecast.summary["advice"]["action"] in ("continue", "scale", "stop", "undecided")
    by_budget = [one["p_by_budget"] for one in forecast.summary["milestones"]]
    assert len(by_budget) > 1
    assert by_budget == sorted(by_budget, reverse=True)
    assert forecast.state == {}  # only the frozen one carries its state
    with sessions() as session:
        (event,) = events(session, run, "forecast")
        assert (event.actor, event.evidence["forecast"]) == ("refit", forecast.id)
        advice = session.scalars(select(Recommendation).where(Recommendation.run_id == run_id)).one()
        assert (advice.forecast_id, advice.action) == (forecast.id, forecast.summary["advice"]["action"])
        view = curves.run_curve(session, run_id)
    CurveView.model_validate_json(view.model_dump_json())
    assert view.forecast == ForecastView.of(forecast)
    json.dumps(forecast.summary, allow_nan=False)


def test_a_forecast_says_how_the_run_will_end_and_that_it_is_the_posterior(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, points=16)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    said = forecast.summary["at_budget"]
    assert said["conformal"] == {
        "calibration": "posterior",
        "shift": 0.0,
        "factor": 1.0,
        "runs": 0,
        "even": 0.0,
        "seeds": 0,
        "lean": 0.0,
        "ahead": 0,
    }
    assert said["calibrated"] == said["ending"]
    # a mean of the last five evaluations is steadier than one of them
    ending, evaluation = (said[name]["upper"] - said[name]["lower"] for name in ("ending", "evaluation"))
    assert ending < evaluation
    assert said["ending"]["lower"] < float(sigmoid(COMPUTE[-5:]).mean()) < said["ending"]["upper"]
    assert ForecastView.of(forecast).at_budget is not None


def test_from_nine_finished_runs_on_a_forecast_learns_how_theirs_turned_out(
    sessions: Sessions, settings: Settings
) -> None:
    """Nine runs of the sweep ended .08 above what was forecast of them at 30 %: the tenth forecast is moved."""
    rng = np.random.default_rng(3)
    with sessions.begin() as session:
        sweep_id = make_sweep(session).id
        for _ in range(9):
            run = make_run(session, sweep_id=sweep_id, status="succeeded")
            noise = rng.normal(0.0, 6e-5**0.5, len(COMPUTE))
            add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE) + 0.08 + noise)
            forecast = make_forecast(session, run, at_compute=30.0)
            forecast.summary = forecast.summary | {"prior": {"name": "8 siblings", "seeds": 0}}
    run_id = start_run(sessions, points=16, sweep_id=sweep_id)
    refit(sessions, settings, run_id, START)
    (forecast,) = forecasts(sessions, run_id)
    said = forecast.summary["at_budget"]
    assert said["conformal"]["calibration"] == "conformal (9 past runs)"
    # about that: they went .08 above this run from the start, so part of it may be theirs alone
    assert 0.05 < said["conformal"]["shift"] < 0.1
    assert said["calibrated"]["median"] == pytest.approx(
        min(said["ending"]["median"] + said["conformal"]["shift"], 1.0), abs=1e-6
    )
    view = ForecastView.of(forecast).at_budget
    assert view is not None
    assert view.conformal is not None
    assert view.conformal.runs == 9
    with sessions() as session:
        run = run_view(session, session.get_one(Run, run_id))
    assert run.ending is not None
    assert run.ending.calibration == "calibrated on 9 past runs"
    assert run.ending.model_dump(include={"median", "lower", "upper"}) == said["calibrated"]
    assert "(90 %, calibrated on 9 past runs: " in run.sentence


def test_of_a_run_that_collapsed_the_forecast_is_withheld_and_says_so(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, COLLAPSING, points=45)
    refit(sessions, settings, run_id, START)
    with sessions() as session:
        run = run_view(session, session.get_one(Run, run_id))
    assert run.withheld
    assert (run.misfit in ("collapse", "decline"), run.ending, run.at_budget) == (True, None, None)
    assert run.sentence.endswith("no ceiling can be read from this curve. The forecast is withheld.")


def test_when_the_budget_is_spent_nothing_is_said_of_an_end_to_come(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, points=51)
    refit(sessions, settings, run_id, START)
    (forecast,) = [f for f in forecasts(sessions, run_id) if f.at_compute == 100.0]
    assert "Expected to end" not in forecast.sentence


@pytest.mark.parametrize("points", [0, 1, 3])
def test_too_few_points_make_no_forecast_and_leave_the_run_clean(
    sessions: Sessions, settings: Settings, points: int
) -> None:
    run_id = start_run(sessions, points=points)
    refit(sessions, settings, run_id, START)
    assert run_of(sessions, run_id).dirty_at is None
    assert forecasts(sessions, run_id) == []


def test_four_points_with_the_start_are_enough(sessions: Sessions, settings: Settings) -> None:
    run_id = start_run(sessions, points=4)
    refit(sessions, settings, run_id, START)
    assert [f.points for f in forecasts(sessions, run_id)] == [4]


def test_evaluations_that_are_no_curve_make_no_forecast_and_no_endless_loop(
    sessions: Sessions, settings: Settings
) -> None:
    run_id = start_run(sessions, reward=HEALTHY + 1.0)
    refit(sessions, settings, run_id, START)
    assert forecasts(sessions, run_id) == []
    assert run_of(sessions, run_id).dirty_at is None


@pytest.mark.parametrize(("policy", "wanted"), [("auto", "stop"), ("advise", "run")])
def test_policy_auto_stops_a_run_that_has_nothing_left_to_gain(
    sessions: Sessions, settings: Settings, policy: str, wanted: str
) -> None:
    flat = sigmoid(COMPUTE, C_mid=3.0, B=2.5) + np.random.default_rng(3).normal(0.0, 6e-5**0.5, 51)
    with sessions.begin() as session:
        sweep = make_sweep(session, policy).id
    run_id = grow(sessions, settings, flat, [30], sweep_id=sweep)
    run = run_of(sessions, run_id)
    with sessions() as session:
        advice = session.scalars(select(Recommendation)).one()
    assert advice.action == "stop"
    assert run.desired_state == wanted
    assert advice.status == ("accepted" if policy == "auto" else "open")


def test_a_run_is_not_stopped_where_past_runs_gained_more_than_was_forecast(
    sessions: Sessions, settings: Settings
) -> None:
    """Five runs of the sweep bent as early and ended .04 above what was forecast of them at 60 %."""
    flat = sigmoid(COMPUTE, C_mid=3.0, B=2.5) + np.random.default_rng(3).normal(0.0, 6e-5**0.5, 51)
    later = 0.04 * np.clip((COMPUTE - 60) / 20, 0.0, 1.0)
    grid = np.geomspace(1.0, 125.0, 80)
    sides = {"median": 0.0, "lower50": -0.005, "upper50": 0.005, "lower90": -0.01, "upper90": 0.01}
    middle = sigmoid(grid, C_mid=3.0, B=2.5)
    said = {"compute": grid.tolist(), **{name: (middle + side).tolist() for name, side in sides.items()}}
    with sessions.begin() as session:
        sweep_id = make_sweep(session, "auto").id
        for at in range(5):
            run = make_run(session, sweep_id=sweep_id, status="succeeded")
            add_evaluations(session, run, COMPUTE, (flat + later + 0.002 * np.sin(COMPUTE + at + 1)).tolist())
            make_forecast(session, run, at_compute=60.0, band=said)
    run_id = grow(sessions, settings, flat, [30], sweep_id=sweep_id)
    forecast = max(forecasts(sessions, run_id), key=lambda one: one.at_compute)
    assert forecast.summary["advice"]["action"] == "continue"
    assert "by what 5 past runs gained" in forecast.summary["advice"]["reason"]
    assert "on top to the end by 5 past runs: continue." in forecast.sentence
    assert run_of(sessions, run_id).desired_state == "run"


@pytest.mark.parametrize("counted", [False, True])
def test_a_forecast_is_that_of_the_library_by_the_same_evaluations(
    sessions: Sessions, settings: Settings, counted: bool
) -> None:
    """Prompts and samples alone bound the noise; counts tell it, also where most prompts have all or none."""
    solved = np.round(64 * HEALTHY[:20]).astype(int)
    counts = [[4] * all_four + [2] * (at % 3) + [0] * (64 - all_four - at % 3) for at, all_four in enumerate(solved)]
    reward = [sum(row) / 256 for row in counts]
    told = [{"samples": 4, "counts": row} if counted else {"samples": 4, "prompts": 64} for row in counts]
    evaluations = [{"step": at, "compute": COMPUTE[at], "reward": reward[at], **sizes} for at, sizes in enumerate(told)]
    body = {"name": "elsewhere", "compute_unit": "GPU-hours", "evaluations": evaluations}
    with sessions.begin() as session:
        run_id = import_run(session, RunImport.model_validate(body), actor="test", now=START).run.id
    refit(sessions, settings, run_id, START)
    forecast = max(forecasts(sessions, run_id), key=lambda one: one.at_compute)
    columns = {"counts": counts} if counted else {"prompts": 64}
    expected = fit(Curve(COMPUTE[:20], reward, samples=4, **columns)).to_dict()
    for name in ("A", "B", "C_mid", "R0"):
        assert forecast.summary[name] == pytest.approx(expected[name], rel=1e-9)


@pytest.mark.parametrize("budget", [100.0, None])
def test_a_forecast_says_the_end_wherever_that_will_be(
    sessions: Sessions, settings: Settings, budget: float | None
) -> None:
    run_id = grow(sessions, settings, HEALTHY, [15], budget_compute=budget)
    (forecast,) = {one.at_compute: one for one in forecasts(sessions, run_id)}.values()
    said = forecast.summary["ends_ahead"]
    assert (said["compute"][0], said["compute"][-1]) == (COMPUTE[14], 20 * (budget or COMPUTE[14]))
    assert np.all(np.diff(said["compute"]) > 0)
    if budget is not None:
        found, ending = end_at(said, budget), forecast.summary["at_budget"]["ending"]
        assert found is not None
        assert found.to_dict() == pytest.approx(ending)
    early, late = end_at(said, 1.1 * COMPUTE[14]), end_at(said, 15 * COMPUTE[14])
    assert early is not None
    assert late is not None
    assert early.width < late.width
    assert end_at(said, 21 * (budget or COMPUTE[14])) is None


def test_numbers_that_json_does_not_know_become_null() -> None:
    value = {
        "a": np.float64("inf"),
        "b": [float("nan"), np.int64(3)],
        "c": np.array([1.0, -np.inf]),
        "d": (True, "x", None),
    }
    assert json_safe(value) == {"a": None, "b": [None, 3], "c": [1.0, None], "d": [True, "x", None]}
