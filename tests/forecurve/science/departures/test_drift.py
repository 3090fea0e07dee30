"""Runs leave their sigmoids: how that shows in what is said of evaluations, and where it must not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student_t

from forecurve.science import Curve, Outcome, fit, predict_mean, sibling_prior
from forecurve.science.departures.drift import DRIFT_SD, drift

from ..synthetic import noisy_curve, sigmoid

CURVE = noisy_curve(0, last=4000, points=25)
FLAT, PAPER = fit(CURVE), fit(CURVE, prior="paper")


def test_the_drift_is_a_student_t_that_grows_as_the_logarithm_of_compute() -> None:
    now = FLAT.curve.now
    draws = drift(FLAT, np.array([now / 2, now, np.e * now, np.e**4 * now]))
    assert not draws[:2].any()
    shares = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    told = DRIFT_SD * student_t.ppf(shares, 2)
    np.testing.assert_allclose(np.quantile(draws[2], shares), told, atol=1e-3)
    np.testing.assert_allclose(draws[3], 4 * draws[2])


def test_a_run_that_is_like_those_of_its_prior_has_none() -> None:
    draws = drift(PAPER, np.array([16_000.0]))[0]
    assert not draws[PAPER.posterior.informed].any()
    assert 0.9 < PAPER.posterior.informed.mean() < 1
    np.testing.assert_allclose(np.quantile(draws, (0.05, 0.95)), 0.0, atol=1e-9)


def test_a_run_that_is_unlike_those_of_its_prior_may_leave_its_curve_as_any() -> None:
    """A ceiling of .2, eight standard deviations off what the paper's table says."""
    low = fit(noisy_curve(0, A=0.2, R0=0.05, last=8000, points=50), prior="paper")
    assert low.posterior.informed.mean() < 0.02
    later = np.array([16_000.0])
    np.testing.assert_allclose(
        np.quantile(drift(low, later), (0.05, 0.95)),
        np.quantile(drift(FLAT, np.array([2 * CURVE.now])), (0.05, 0.95)),
        rtol=0.1,
    )


def test_two_siblings_do_not_tell_how_runs_leave_their_curves_and_three_do() -> None:
    past = [fit(noisy_curve(seed)) for seed in range(1, 4)]
    two, three = (fit(CURVE, prior=sibling_prior(past[:runs])) for runs in (2, 3))
    assert (two.prior.name, three.prior.name) == ("2 siblings", "3 siblings")
    later = np.array([16_000.0])
    np.testing.assert_allclose(np.sort(drift(two, later)), np.sort(drift(FLAT, later)))
    assert not drift(three, later)[0, three.posterior.informed].any()


def test_the_drift_is_a_share_of_the_range() -> None:
    percent = fit(Curve(CURVE.compute, 100 * CURVE.reward, bounds=(0, 100)))
    later = np.array([16_000.0])
    np.testing.assert_allclose(drift(percent, later), 100 * drift(FLAT, later))


def test_what_is_seen_at_present_is_not_doubted_and_the_curve_never_is() -> None:
    """An evaluation's band has the drift, the curve's has not; both go on from the present without a step."""
    now, later = CURVE.now, 16_000.0
    soon = FLAT.predict_evaluation(1.001 * now).at(0)
    assert soon.width == pytest.approx(PAPER.predict_evaluation(1.001 * now).at(0).width, rel=0.1)
    told = student_t.ppf(0.95, 2) * 2 * DRIFT_SD * np.log(later / now)
    assert FLAT.predict_evaluation(later).at(0).width > told
    long_run = fit(noisy_curve(0, last=16_000, points=100))
    assert long_run.predict(32_000).at(0).width < 0.03 < 0.07 < predict_mean(long_run, [32_000.0]).width


def test_ends_of_runs_that_leave_their_sigmoid_are_covered() -> None:
    """40 sigmoids that go their own way, .03 an e-fold, from where they were forecast: the curve's band misses many."""
    rng = np.random.default_rng(8)
    compute = np.linspace(160, 16_000, 100)
    by_end, by_curve = [], []
    for _ in range(40):
        reward = sigmoid(compute, 0.6, 1.9, 1500.0, 0.2) + 0.0035 * rng.normal(size=100)
        reward += 0.03 * rng.normal() * np.log(np.maximum(compute / 8000.0, 1.0))
        curve = Curve(compute, reward)
        found, outcome = fit(curve.until(8000.0)), Outcome.of(curve)
        end, band = predict_mean(found, outcome.compute), found.predict(outcome.compute[-1]).at(0)
        by_end.append(end.lower <= outcome.reward <= end.upper)
        by_curve.append(band.lower <= outcome.reward <= band.upper)
    assert np.mean(by_end) >= 0.85
    assert np.mean(by_curve) < np.mean(by_end) - 0.1
