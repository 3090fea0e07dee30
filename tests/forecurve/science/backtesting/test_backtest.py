"""The backtest: what it sees, what it is judged by, and no peeking."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, CurveError, Outcome, PriorError, backtest, fit, predict_ending, predict_mean
from forecurve.science.arrays import FloatArray
from forecurve.science.backtesting import among_siblings
from forecurve.science.backtesting.backtest import BASELINES
from forecurve.science.backtesting.one_run import early_part, past_forecast
from forecurve.science.backtesting.siblings import Siblings
from forecurve.science.past import hindsight
from forecurve.science.past.analogues import Course
from forecurve.science.past.conformal import Conformal

from ..synthetic import noisy_curve, sigmoid


def _family(runs: int, points: int = 24, sd: float = 0.005) -> list[Curve]:
    rng = np.random.default_rng(7)
    return [
        noisy_curve(run, A=0.6 + 0.02 * rng.normal(), B=1.8, C_mid=2500.0, last=16_000.0, points=points, sd=sd)
        for run in range(runs)
    ]


@pytest.fixture(scope="module")
def family() -> list[Curve]:
    return _family(11)


def test_every_series_fraction_and_method_has_its_row(family: list[Curve]) -> None:
    found = backtest(family[:2], fractions=(0.25, 0.5), baselines=BASELINES)
    assert [(row.series, row.fraction, row.method) for row in found.rows] == [
        (curve.name, fraction, method)
        for curve in family[:2]
        for fraction in (0.25, 0.5)
        for method in ("forecurve", *BASELINES)
    ]
    assert len(found.summary) == 8


def test_the_outcome_is_the_mean_of_the_last_tenth(family: list[Curve]) -> None:
    (row,) = backtest(family[:1], fractions=(0.5,)).rows
    assert row.actual == pytest.approx(family[0].reward[-2:].mean())
    assert row.error == pytest.approx(row.predicted - row.actual)
    assert row.covered == (row.lower <= row.actual <= row.upper)


def test_nothing_after_the_fraction_is_seen(family: list[Curve]) -> None:
    """A run that turns into something else after half of its compute gets the very same forecast."""
    curve = family[0]
    late = curve.compute > 0.5 * curve.now
    other = Curve(
        curve.compute, np.where(late, 0.01, curve.reward), name="other", prompts=1000, samples=16, unit="GPU-hours"
    )
    one, two = (backtest([each], fractions=(0.5,), baselines=BASELINES, prior="paper").rows for each in (curve, other))
    assert [(row.predicted, row.lower, row.upper) for row in one] == [
        (row.predicted, row.lower, row.upper) for row in two
    ]
    assert one[0].actual != two[0].actual


@pytest.mark.parametrize("runs", [3, 5, pytest.param(11, marks=pytest.mark.slow)])
def test_nothing_after_the_fraction_is_seen_by_way_of_its_siblings(family: list[Curve], runs: int) -> None:
    """Nor through what their forecasts got wrong, which were made with priors of runs."""
    curve, *others = family[:runs]
    late = curve.compute > 0.25 * curve.now
    lower = np.where(late, np.maximum(curve.reward - 0.15, 0.0), curve.reward)
    fallen = Curve(curve.compute, lower, name=curve.name, prompts=1000, samples=16, unit="GPU-hours")
    one, two = (backtest([each, *others], fractions=(0.25,), prior="siblings").rows[0] for each in (curve, fallen))
    assert (one.predicted, one.lower, one.upper) == (two.predicted, two.lower, two.upper)
    assert one.actual != two.actual


def test_the_point_exactly_at_the_fraction_is_seen() -> None:
    curve = Curve(np.arange(0, 1.01, 0.1), np.linspace(0.2, 0.5, 11))
    early = early_part(curve, 0.3)  # 0.30000000000000004 among the points
    assert early is not None
    assert early.points == 4


def test_fewer_than_three_points_is_a_withheld_row_without_a_number() -> None:
    curve = Curve([1, 2, 3, 4, 5, 6, 7, 8], np.linspace(0.2, 0.5, 8))
    for row in backtest([curve], fractions=(0.25,), baselines=BASELINES).rows:
        assert row.withheld
        assert (row.predicted, row.lower, row.upper, row.error, row.covered) == (None,) * 5
    summary = backtest([curve], fractions=(0.25,)).summary[0]
    assert (summary.n, summary.mae, summary.coverage, summary.withheld) == (0, None, None, 1)


def test_a_collapse_is_withheld() -> None:
    compute = np.linspace(0, 1000, 61)
    reward = np.where(compute < 350, sigmoid(compute, 0.6, 1.7, 60.0, 0.2), 0.1)
    reward = reward + np.random.default_rng(0).normal(0, 0.004, 61)
    (row,) = backtest([Curve(compute, reward, prompts=1000, samples=16, unit="GPU-hours")], fractions=(0.5,)).rows
    assert row.withheld


def test_baselines_have_no_interval_and_are_what_they_say() -> None:
    compute = np.arange(1.0, 41.0)
    curve = Curve(compute, 0.8 - 0.5 * compute**-0.6)
    rows = {row.method: row for row in backtest([curve], fractions=(0.5,), baselines=BASELINES).rows}
    assert rows["power-law"].error == pytest.approx(0, abs=1e-6)
    assert rows["last-value"].predicted == pytest.approx(curve.reward[18:20].mean())  # the last tenth of what is seen
    for name in BASELINES:
        assert rows[name].lower is None
        assert rows[name].covered is None
        assert rows[name].calibration is None


def test_siblings_help_early_and_scale_the_interval(family: list[Curve]) -> None:
    alone = backtest(family, fractions=(0.15,)).summary[0]
    helped = backtest(family, fractions=(0.15,), prior="siblings")
    assert helped.summary[0].mae < alone.mae
    assert {row.calibration for row in helped.rows} == {"conformal (10 past runs)"}
    assert 0.8 <= helped.summary[0].coverage <= 1


@pytest.mark.parametrize(
    ("series", "label"), [(3, "posterior"), (4, "adjusted (3 past runs)"), (10, "conformal (9 past runs)")]
)
def test_ten_series_are_nine_past_runs_four_are_three_and_three_too_few(
    family: list[Curve], series: int, label: str
) -> None:
    assert {r.calibration for r in backtest(family[:series], fractions=(0.5,), prior="siblings").rows} == {label}


def test_a_run_never_helps_to_forecast_itself(family: list[Curve]) -> None:
    """How it ended changes what is said of the others, not what its siblings say of it: prior and scaling leave it out.

    Only the scores of the others may move, because it is a past run of theirs.
    """
    curve = family[0]
    late = curve.compute > 0.5 * curve.now
    ended = Curve(
        curve.compute, np.where(late, 0.9, curve.reward), name="ended", prompts=1000, samples=16, unit="GPU-hours"
    )
    one, two = (backtest([each, *family[1:]], fractions=(0.5,), prior="siblings").rows[0] for each in (curve, ended))
    assert one.raw == two.raw


def test_of_many_runs_a_row_is_what_its_siblings_say_one_by_one(
    family: list[Curve], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than are asked, and so many that each has a part in the priors of the others."""
    monkeypatch.setattr(among_siblings, "_LEFT_OUT", 2)
    monkeypatch.setattr(hindsight, "MOST_RUNS", 4)
    curves = family[:7]
    row, siblings = backtest(curves, fractions=(0.5,), prior="siblings").rows[0], Siblings(curves)
    own, *past = (past_forecast(curve, 0.5, siblings.prior(at)) for at, curve in enumerate(curves))
    assert own is not None
    course = Course.of(curves[0].until(8_000.0))
    told = hindsight.Hindsight.of([one for one in past if one is not None], own.estimate, course=course)
    expected = Conformal.of(told).apply(own.estimate)
    assert (row.predicted, row.lower, row.upper) == astuple(expected)
    assert (row.calibration, len(past)) == ("adjusted (4 past runs)", 6)


def test_a_copy_of_a_run_is_no_sibling_of_it(family: list[Curve]) -> None:
    doubled = [*family[:6], *family[:6]]
    rows = backtest(doubled, fractions=(0.5,), prior="siblings").rows
    assert {row.calibration for row in rows} == {"adjusted (5 past runs)"}  # five other runs, not eleven
    single = backtest(family[:6], fractions=(0.5,), prior="siblings").rows
    assert [row.raw for row in rows[:6]] == [row.raw for row in single]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"fractions": (0.5, 1.0)}, "fractions"), ({"baselines": ("magic",)}, "magic"), ({"fractions": (0.0,)}, "0.0")],
)
def test_what_does_not_exist_is_refused_by_name(family: list[Curve], arguments: dict, words: str) -> None:
    with pytest.raises(CurveError, match=words):
        backtest(family[:1], **arguments)


def test_the_answer_is_json_and_progress_is_told(family: list[Curve]) -> None:
    told: list[tuple[int, int]] = []
    found = backtest(family[:2], fractions=(0.25, 0.5), prior="siblings", progress=lambda *at: told.append(at))
    body = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(body) == {"series", "summary"}
    assert told[-1] == (6, 6)
    assert "forecurve: n 2" in repr(found)


# --- the interval for a mean of evaluations ---


def _futures(runs: int, noise_rho: float, points: int) -> tuple[list[bool], list[bool]]:
    """(covered by the interval of the mean, by that of one evaluation) over runs with known truth."""
    rng = np.random.default_rng(3)
    compute = np.linspace(0, 16_000, points + 1)
    by_mean, by_one = [], []
    for _ in range(runs):
        noise = _noise(rng, points + 1, noise_rho)
        curve = Curve(compute, np.clip(sigmoid(compute, 0.61, 1.9, 1500.0, 0.2) + noise, 0, 1))
        outcome = Outcome.of(curve)
        found = fit(curve.until(8_000.0), prior="paper")
        mean, one = predict_mean(found, outcome.compute), found.predict_evaluation(16_000.0).at(0)
        by_mean.append(mean.lower <= outcome.reward <= mean.upper)
        by_one.append(one.lower <= outcome.reward <= one.upper)
        assert found.misfit is not None or mean.width < one.width
    return by_mean, by_one


def _noise(rng: np.random.Generator, size: int, rho: float) -> FloatArray:
    white = 0.02 * rng.normal(size=size)
    if rho == 0:
        return white
    state = rng.normal()
    walk = []
    for _ in range(size):
        walk.append(state)
        state = rho * state + np.sqrt(1 - rho**2) * rng.normal()
    return white + 0.02 * np.array(walk)


def test_an_end_is_as_unsure_as_the_mean_of_the_evaluations_that_will_tell_it() -> None:
    """Evaluations in bursts: the gap within one says nothing of how many will come."""
    compute = np.sort(np.concatenate([np.linspace(500, 8_000, 16) + late for late in (-30, -20, -10, 0)]))
    noise = 0.06 * np.random.default_rng(5).normal(size=len(compute))
    curve = Curve(compute, np.clip(sigmoid(compute, 0.61, 1.9, 1500.0, 0.2) + noise, 0, 1), prompts=64, samples=1)
    found = fit(curve.until(6_000.0))
    told = predict_mean(found, Outcome.of(curve).compute)
    assert predict_ending(found, 8_000.0).width == pytest.approx(told.width, rel=0.1)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_the_interval_of_a_mean_covers_it_and_is_narrower_than_that_of_one_evaluation(rho: float) -> None:
    by_mean, by_one = _futures(40, rho, 120)
    assert np.mean(by_mean) >= 0.75
    if rho == 0:
        assert np.mean(by_one) > 0.97  # a single evaluation's interval is far too wide for a mean of twelve


def test_the_mean_of_one_evaluation_is_that_evaluation(family: list[Curve]) -> None:
    found = fit(family[0].until(8_000.0), prior="paper")
    mean, one = predict_mean(found, [16_000.0]), found.predict_evaluation(16_000.0).at(0)
    assert mean.median == pytest.approx(one.median, abs=0.05 * one.width)
    assert mean.width == pytest.approx(one.width, rel=0.05)


@pytest.mark.parametrize(("field", "other"), [("unit", {"unit": "steps"}), ("bounds", {"bounds": (0.0, 100.0)})])
def test_siblings_share_one_unit_and_one_range(family: list[Curve], field: str, other: dict[str, Any]) -> None:
    odd = Curve(family[0].compute, family[0].reward, **({"unit": "GPU-hours"} | other))
    with pytest.raises(PriorError, match=f"^{field}: siblings must share one"):
        backtest([*family[1:3], odd], prior="siblings")
    assert len(backtest([*family[1:3], odd], fractions=(0.5,)).rows) == 3
