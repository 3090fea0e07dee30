"""When a run reaches a target: the forecast of its end, read the other way round."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from forecurve.science import (
    Conformal,
    Curve,
    CurveError,
    Fit,
    Prior,
    Siblings,
    advise,
    fit,
    milestones,
    predict_ending,
)
from forecurve.science.departures.drift import DRIFT_SD
from forecurve.science.posterior.sigmoid import compute_at

from ..departures.test_other_rise import burr
from ..synthetic import noisy_curve, sigmoid

SHARP = Prior("known", A=(0.61, 0.004), log_B=(0.64, 0.03), log_C_mid=(float(np.log(2500.0)), 0.03))
RISING = fit(noisy_curve(0, last=4000, points=40))
TOLD = fit(noisy_curve(0, last=4000, points=40), prior=SHARP)


def _truth(target: float) -> float:
    return float(2500 * ((target - 0.2) / (0.61 - target)) ** (1 / 1.9))


@pytest.mark.parametrize("target", [0.3, 0.5, 0.58, 0.605])
def test_where_nothing_but_the_curve_moves_a_run_it_is_the_curve_turned_round(target: float) -> None:
    """Before now, soon, and further than its path is followed by places."""
    draws = TOLD.all_draws
    by_hand = compute_at(target, draws.A, draws.B, draws.C_mid, draws.R0)
    when = TOLD.compute_to_reach(target)
    assert (when.lower, when.median, when.upper) == pytest.approx(
        tuple(np.quantile(by_hand, (0.05, 0.5, 0.95), method="inverted_cdf")), rel=0.003
    )
    assert when.p_never == pytest.approx(np.isinf(by_hand).mean(), abs=0.002)


def test_the_interval_holds_the_truth_of_sigmoids() -> None:
    held = []
    for seed in range(40):
        when = fit(noisy_curve(seed, last=3000, points=20)).compute_to_reach(0.55)
        held.append(when.lower <= _truth(0.55) <= when.upper)
    assert np.mean(held) >= 0.9  # the drift allows for more than these runs do


def test_a_run_that_levels_off_more_slowly_gets_further_than_its_sigmoid_would() -> None:
    compute = np.linspace(0, 4000, 41)
    noise = 0.0035 * np.random.default_rng(2).normal(size=41)
    found = fit(Curve(compute, burr(compute, 0.9, 2.0, 800.0, 0.2) + noise, prompts=1000, samples=16, unit="h"))
    assert found.other_rise is not None
    assert found.other_rise.slower > 0.9
    target = float(burr(np.array([12_000.0]), 0.9, 2.0, 800.0, 0.2)[0])
    draws = found.all_draws
    assert np.isinf(compute_at(target, draws.A, draws.B, draws.C_mid, draws.R0)).mean() > 0.85
    when = found.compute_to_reach(target)
    assert when.lower < 12_000 < when.upper
    assert when.p_never < 0.3


def test_a_target_above_the_ceiling_may_be_reached_by_leaving_the_curve_and_hardly_far_above() -> None:
    """By as much as the drift of 20 times the compute is that large, at most; and none of it is left beyond."""
    finished = fit(noisy_curve(0, last=16_000, points=90))
    near, far = (finished.compute_to_reach(target) for target in (0.65, 0.9))
    above = (0.65 - finished.A.median) / (DRIFT_SD * np.log(20.0))
    by_drift = 0.5 - above / (2 * np.sqrt(2 + above**2))  # of Student's t with 2 degrees of freedom
    assert 1 - near.p_never == pytest.approx(by_drift, abs=0.05)
    assert 0.97 < far.p_never < 1
    assert far.to_dict()["median"] is None


def _smooth_but_no_sigmoid() -> Fit:
    compute = np.linspace(0, 8000, 81)
    noise = np.random.default_rng(1).normal(0, 0.0035, 81)
    found = fit(Curve(compute, 0.62 - 0.42 * np.exp(-compute / 2000) + noise, prompts=1000, samples=16, unit="h"))
    assert found.misfit == "shape"
    return found


@pytest.mark.parametrize(("found", "budget"), [(RISING, 9000.0), (_smooth_but_no_sigmoid(), 16_000.0)])
def test_it_is_the_expected_end_turned_round(found: Fit, budget: float) -> None:
    """What lies at the ends of its interval is reached by the budget with .95 and .05, but for the noise of the end and
    for the way to it: the end is the mean of the last tenth."""
    end = predict_ending(found, budget)
    said = [found.compute_to_reach(level, budget).p_by_budget for level in (end.lower, end.median, end.upper)]
    assert said == pytest.approx([0.95, 0.5, 0.05], abs=0.06)


def test_past_runs_that_went_on_to_rise_have_a_say_in_it() -> None:
    """Runs that grow again at the end: the interval of the end says so, and so does when a level is reached."""

    def late(seed: int, points: int) -> Curve:
        compute = np.linspace(0, 10_000, 61)[:points]
        again = 0.06 / (1 + (6000 / np.maximum(compute, 1e-9)) ** 12)
        noise = 0.004 * np.random.default_rng(seed).normal(size=points)
        return Curve(compute, sigmoid(compute, 0.5, 2.0, 900.0, 0.2) + again + noise, prompts=500, samples=8, unit="h")

    young = late(12, 28)
    siblings = Siblings([late(seed, 61) for seed in range(12)])
    found = fit(young, prior=siblings.prior())
    hindsight = siblings.hindsight(found, 10_000.0)
    assert hindsight is not None
    end = Conformal.of(hindsight).apply(hindsight.estimate, young.bounds)
    asked = [found.compute_to_reach(level, 10_000.0, hindsight) for level in (end.lower, end.median, end.upper)]
    assert [one.p_by_budget for one in asked] == pytest.approx([0.95, 0.5, 0.05], abs=0.06)
    alone = found.compute_to_reach(end.median, 10_000.0)
    assert alone.p_by_budget is not None
    assert asked[1].p_by_budget > alone.p_by_budget + 0.2
    advice = advise(found, budget=10_000.0, target=end.median, hindsight=hindsight)
    assert advice.numbers["target_reach"] == asked[1].to_dict()


def test_what_is_reached_already_was_reached_before() -> None:
    when = RISING.compute_to_reach(0.3, 9000.0)
    assert when.lower < _truth(0.3) < when.upper < RISING.curve.now
    assert (when.p_never, when.p_by_budget) == (0, 1)
    assert RISING.compute_to_reach(0.1).median == 0


def test_higher_targets_take_more_compute_and_a_larger_budget_reaches_more() -> None:
    targets = np.linspace(0.45, 0.75, 13)
    for found in (RISING, TOLD):
        when = [found.compute_to_reach(float(target), 9000.0) for target in targets]
        for lower, higher in pairwise(when):
            assert lower.lower <= higher.lower
            assert lower.median <= higher.median
            assert lower.p_never <= higher.p_never
            assert (lower.p_by_budget or 0) >= (higher.p_by_budget or 0)
        by = [found.compute_to_reach(0.6, budget).p_by_budget or 0 for budget in (2000.0, 5000.0, 1e4, 1e5, 1e7)]
        assert by == sorted(by)


@pytest.mark.parametrize("budget", [None, 4200.0, 9000.0, 1e6])
@pytest.mark.parametrize("found", [RISING, TOLD, fit(noisy_curve(3, last=1000, points=5))])
def test_milestones_are_the_next_round_levels_that_may_be_reached(found: Fit, budget: float | None) -> None:
    asked = milestones(found, budget)
    assert len(asked) <= 5
    here = float(found.predict(found.curve.now).median[0])
    for one in asked:
        assert one == found.compute_to_reach(one.target, budget)
        assert one.target == round(one.target, 2) > here
        assert budget is None or (one.p_by_budget or 0) >= 0.049
    assert len(set(np.diff([one.target for one in asked]).round(9))) <= 1


def test_milestones_are_in_the_range_of_rewards() -> None:
    curve = RISING.curve
    percent = fit(Curve(curve.compute, 100 * curve.reward, bounds=(0, 100), prompts=1000, samples=16))
    assert [one.target for one in milestones(percent, 9000.0)] == pytest.approx(
        [100 * one.target for one in milestones(RISING, 9000.0)]
    )


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_budget_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(CurveError, match="budget"):
        RISING.compute_to_reach(0.6, bad)
    with pytest.raises(CurveError, match="budget"):
        milestones(RISING, bad)


@pytest.mark.parametrize("target", [-0.5, 1.2])
def test_a_target_that_no_reward_can_be_is_refused(target: float) -> None:
    with pytest.raises(CurveError, match=r"target: rewards of this run are from 0 to 1, got"):
        RISING.compute_to_reach(target)


def test_a_withheld_forecast_names_no_compute() -> None:
    curve = noisy_curve(1, last=8000, points=40)
    fallen = fit(Curve(curve.compute, np.where(curve.compute > 6000, 0.1, curve.reward), prompts=1000, samples=16))
    assert fallen.misfit == "collapse"
    assert fallen.to_dict(budget=16_000.0, target=0.6)["target"] is None
    assert advise(fallen, budget=16_000.0, target=0.6).numbers["target_reach"] is None
