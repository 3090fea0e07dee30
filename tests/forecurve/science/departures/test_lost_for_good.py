"""A run that lost nearly all reward has as likely as not lost it for good; one that fell to something may come back."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, Fit, advise, fit, predict_mean

from ..synthetic import sigmoid

X = np.linspace(0, 300, 31)
HEALTHY = sigmoid(X, 0.7, 1.6, 30, 0.2)
FELL_AT = 90.0
BUDGET = 300.0


def _fallen(to: float, until: float) -> Fit:
    noise = np.random.default_rng(3).normal(0, 0.01, len(X))
    reward = np.clip(np.where(X > FELL_AT, to, HEALTHY) + noise, 0, 1)
    return fit(Curve(X, reward, prompts=512, samples=2, unit="steps").until(until))


@pytest.mark.parametrize("until", [100.0, 110.0, 150.0])
def test_a_run_that_has_just_lost_all_is_expected_to_stay_and_may_come_back(until: float) -> None:
    lost = _fallen(0.0, until)
    end = predict_mean(lost, [BUDGET])
    assert lost.misfit == "collapse"
    assert end.median < 0.07
    assert end.upper > 0.35


@pytest.mark.parametrize("until", [100.0, 110.0])
def test_a_run_that_has_just_fallen_to_something_is_expected_between_there_and_where_it_was(until: float) -> None:
    assert 0.3 < predict_mean(_fallen(0.25, until), [BUDGET]).median < 0.6


@pytest.mark.parametrize(("to", "for_good"), [(0.0, 0.5), (0.03, 0.5), (0.25, 0.0)])
def test_advice_waits_for_as_long_as_a_loss_leaves_it_in_doubt(to: float, for_good: float) -> None:
    advice = advise(_fallen(to, 200.0), budget=BUDGET)
    numbers = advice.numbers
    since = numbers["since"]
    lasted = (200 - since) / (BUDGET - since)
    assert since == pytest.approx(FELL_AT, abs=10)
    assert numbers["p_stays"] == pytest.approx(for_good + (1 - for_good) * lasted)
    assert f"it may recover ({100 * numbers['p_stays']:.0f} % that it stays so to 300 steps)" in advice.reason
    at_decision = (numbers["decide_at"] - since) / (BUDGET - since)
    assert for_good + (1 - for_good) * at_decision == pytest.approx(0.9)


def test_what_is_lost_counts_from_the_bottom_of_the_range() -> None:
    def of(low: float) -> float:
        reward = np.where(X > FELL_AT, 0.05, HEALTHY) + np.random.default_rng(0).normal(0, 0.01, len(X))
        run = fit(Curve(X, low + (1 - low) * reward, bounds=(low, 1.0), unit="steps"))
        assert run.change is not None
        return run.change.for_good

    assert of(0.0) == of(-1.0) == 0.5


def test_a_jump_up_is_no_loss() -> None:
    reward = np.where(X > FELL_AT, 0.6, 0.02) + np.random.default_rng(1).normal(0, 0.005, len(X))
    jumped = fit(Curve(X, np.clip(reward, 0, 1), prompts=512, samples=2, unit="steps"))
    assert jumped.change is not None
    assert jumped.change.for_good == 0
