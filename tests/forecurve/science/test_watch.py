"""The watch: quiet while the forecast holds, quick when it does not, and the same after a trip through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from forecurve.science import FrozenError, FrozenForecast, fit, freeze, watch
from forecurve.science.arrays import FloatArray
from forecurve.science.watching import (
    ALERT_THRESHOLD,
    WARN_THRESHOLD,
    e_process,
    evidence,
    robust_innovations,
    robust_z,
    start_weights,
)

from .synthetic import noisy_curve, sigmoid

FIT = fit(noisy_curve(0, last=4000, points=25))
FROZEN = freeze(FIT)
LATER = np.linspace(4160, 16000, 75)


def _peaks(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    return e_process(z, 80).max(axis=1), e_process(robust_z(z), 80).max(axis=1)


@pytest.mark.parametrize(("inflation", "warn", "alert"), [(1.0, 0.05, 0.002), (1.2, 0.25, 0.01)])
def test_false_alarms_are_rare_when_the_forecast_holds(inflation: float, warn: float, alert: float) -> None:
    """5,000 null runs of 80 evaluations; the robust form also withstands a noise 20 % larger than assumed."""
    z = np.random.default_rng(0).normal(0, inflation, (5000, 80))
    sharp, robust = _peaks(z)
    assert (sharp >= np.log(WARN_THRESHOLD)).mean() <= warn
    assert (robust >= np.log(ALERT_THRESHOLD)).mean() <= alert


def test_healthy_runs_raise_no_alert_end_to_end() -> None:
    """Whole chain: noisy run, fit, freeze, and its own future."""
    levels = []
    for seed in range(40):
        curve = noisy_curve(seed, last=16000, points=98)
        past = curve.until(4000)
        frozen = freeze(fit(past))
        levels.append(watch(frozen, curve.compute[past.points :], curve.reward[past.points :]).level)
    assert levels.count("ALERT") == 0
    assert levels.count("WARN") <= 5


def test_a_fall_is_found_soon_and_dated() -> None:
    delays, dates = [], []
    for seed in range(15):
        curve = noisy_curve(seed, last=16000, points=98)
        past = curve.until(8000)
        later, reward = curve.compute[past.points :], curve.reward[past.points :].copy()
        reward[20:] -= 0.04
        frozen = freeze(fit(past))
        found = next(
            (t for t in range(1, len(later) + 1) if watch(frozen, later[:t], reward[:t]).level == "ALERT"), None
        )
        assert found is not None
        delays.append(found - 20)
        dates.append(abs(watch(frozen, later[:found], reward[:found]).since_compute - later[20]))
    assert np.median(delays) <= 6
    assert min(delays) >= 1
    assert np.median(dates) <= 400


def test_a_collapse_is_an_alert_with_its_shortfall() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[30:] = 0.1
    verdict = watch(FROZEN, LATER, reward)
    assert verdict.level == "ALERT"
    assert verdict.since_compute == pytest.approx(LATER[30], rel=0.05)
    assert verdict.actual == pytest.approx(0.1)
    assert verdict.shortfall == pytest.approx(0.5, abs=0.05)
    assert verdict.predicted.lower > 0.5
    assert "fell below its own forecast: 0.10 at 16000 GPU-hours" in verdict.sentence


def test_a_collapse_after_an_early_freeze_is_an_alert_within_six_evaluations() -> None:
    """Ten points leave the forecast wide and its errors correlated: the first fall explains all that follow."""
    curve = noisy_curve(3, last=16000, points=24, sd=0.02)
    past = curve.until(16000 * 9 / 24)
    later, reward = curve.compute[past.points :], curve.reward[past.points :].copy()
    reward[3:] = 0.0
    frozen = freeze(fit(past))
    levels = [watch(frozen, later[:t], reward[:t]).level for t in range(1, len(later) + 1)]
    assert "ALERT" in levels
    assert 3 < levels.index("ALERT") <= 9
    assert levels[-1] == "ALERT"


def test_clipping_before_the_next_is_judged_keeps_false_alarms_rare() -> None:
    """20,000 futures drawn from a frozen forecast, noise up to 30 % larger than assumed: at most 1 % alarms."""
    _, covariance = FROZEN.outlook(LATER)
    factor = np.linalg.cholesky(covariance)
    normals = np.random.default_rng(2).normal(size=(20_000, len(LATER)))
    for inflation, most in ((1.0, 0.002), (1.3, 0.0125)):
        shortfall = inflation * normals @ factor.T
        path = e_process(robust_innovations(shortfall, factor), FROZEN.horizon)
        peaks = np.where(shortfall < 0, path, -np.inf).max(axis=1)
        assert (peaks >= np.log(ALERT_THRESHOLD)).mean() <= most


def test_a_level_once_reached_stays() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[10:25] -= 0.1
    assert watch(FROZEN, LATER, reward).level == "ALERT"


def test_a_run_above_its_forecast_raises_nothing() -> None:
    reward = np.minimum(sigmoid(LATER, 0.61, 1.9, 2500, 0.2) + 0.1, 1)
    assert watch(FROZEN, LATER, reward).level is None


def test_innovations_of_the_models_own_futures_are_standard_normal() -> None:
    """Futures drawn from the frozen forecast itself: mean 0, variance 1, no correlation left."""
    mean, covariance = FROZEN.outlook(LATER)
    rng = np.random.default_rng(1)
    futures = mean + rng.normal(size=(60, len(LATER))) @ np.linalg.cholesky(covariance).T
    z = np.stack([watch(FROZEN, LATER, future).z for future in futures])
    assert np.abs(z.mean()) < 0.05
    assert z.std() == pytest.approx(1, abs=0.03)
    assert np.abs((z[:, 1:] * z[:, :-1]).mean()) < 0.05


def test_the_outlook_agrees_with_the_forecast_it_was_frozen_from() -> None:
    mean, covariance = FROZEN.outlook(LATER)
    band = FIT.predict_evaluation(LATER)
    np.testing.assert_allclose(mean, band.median, atol=0.004)
    spread = (band.upper90 - band.lower90) / 2 / 1.645
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), spread, rtol=0.15)


def test_a_frozen_forecast_survives_json() -> None:
    again = FrozenForecast.from_dict(json.loads(json.dumps(FROZEN.to_dict(), allow_nan=False)))
    reward = sigmoid(LATER, 0.59, 1.9, 2500, 0.2)
    one, two = watch(FROZEN, LATER, reward), watch(again, LATER, reward)
    np.testing.assert_allclose(one.z, two.z, atol=1e-3)
    assert one.level == two.level
    assert again.to_dict() == FROZEN.to_dict()


def test_more_noise_in_the_new_evaluations_weakens_the_evidence() -> None:
    reward = sigmoid(LATER, 0.57, 1.9, 2500, 0.2)
    usual = watch(FROZEN, LATER, reward)
    noisy = watch(FROZEN, LATER, reward, variance=np.full(len(LATER), 1e-3))
    assert noisy.e_value < usual.e_value


def test_the_e_process_is_the_average_of_its_bets() -> None:
    """Written out by its definition: average over drifts and start times of the products from s to t."""
    z, horizon = np.random.default_rng(2).normal(-0.5, 1, 12), 10
    weight = start_weights(12, horizon)
    for t in (0, 4, 11):
        bets = [
            weight[s] * np.exp(-d * z[s : t + 1] - d**2 / 2).prod() / 4 for d in (0.5, 1, 2, 3) for s in range(t + 1)
        ]
        by_hand = sum(bets) + 1 - weight[: t + 1].sum()
        assert np.exp(e_process(z[None, :], horizon)[0, t]) == pytest.approx(by_hand)


def test_the_weights_of_start_times_never_exceed_one() -> None:
    assert start_weights(80, 80).sum() == pytest.approx(0.9)
    assert start_weights(5000, 80).sum() < 1


def test_the_e_value_before_any_evidence_is_one() -> None:
    assert evidence(np.array([0.25]), 80).peak == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("compute", "reward", "match"),
    [
        ([3000.0], [0.5], "must increase from 4000"),
        ([5000.0, 4500.0], [0.5, 0.5], "in order"),
        ([5000.0], [float("nan")], "finite"),
        ([], [], "at least one"),
        ([5000.0], [0.5, 0.6], "one per compute"),
    ],
)
def test_evaluations_that_do_not_follow_the_freeze_are_refused(
    compute: list[float], reward: list[float], match: str
) -> None:
    with pytest.raises(FrozenError, match=match):
        watch(FROZEN, compute, reward)


def test_a_broken_store_is_refused_with_the_way_out() -> None:
    stored = FROZEN.to_dict()
    with pytest.raises(FrozenError, match="freeze the run again"):
        FrozenForecast.from_dict({**stored, "version": 99})
    del stored["draws"]
    with pytest.raises(FrozenError, match="freeze the run again"):
        FrozenForecast.from_dict(stored)
