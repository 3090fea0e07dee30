"""Runs that begin to rise late: seen, dated, and not stopped for the end of a sigmoid that begins with the run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from forecurve.science import Curve, Fit, Outcome, advise, fit, predict_mean
from forecurve.science.arrays import FloatArray
from forecurve.science.departures.late_start import begun_at, late_start
from forecurve.science.posterior.integral import integrate, log_sum

from ..synthetic import noisy_curve, sigmoid

BEGAN = 1000.0


def truth(compute: FloatArray, A: float, R0: float) -> FloatArray:
    """.1 until 1,000, and a sigmoid of the compute since."""
    return np.where(compute > BEGAN, sigmoid(np.maximum(compute - BEGAN, 1e-9), A, 1.7, 600.0, R0), R0)


def _late(seed: int, size: int = 4000, last: float = 3000.0, points: int = 60, R0: float = 0.1) -> Curve:
    rng = np.random.default_rng(seed)
    compute = np.linspace(0, last, points + 1)
    reward = rng.binomial(size, truth(compute, rng.uniform(0.4, 0.8), R0)) / size
    return Curve(compute, reward, prompts=size // 4, samples=4, unit="GPU-hours")


def _share(found: Fit) -> float:
    """The probability of a late start."""
    return 0.0 if found.other_rise is None else found.other_rise.share - found.other_rise.slower


@pytest.mark.parametrize("seed", range(4))
def test_a_late_start_is_found_where_it_is(seed: int) -> None:
    found = fit(_late(seed))
    assert found.late_start is not None
    assert found.late_start.begins[0] < found.late_start.middle < found.late_start.begins[2]
    assert found.late_start.middle == pytest.approx(BEGAN, abs=150.0)
    assert found.misfit == "break"
    assert found.misfit_detail is not None
    assert "begins to rise about" in found.misfit_detail.sentence
    assert "GPU-hours" in found.sentence()
    assert found.misfit_detail.since == pytest.approx(BEGAN, abs=200.0)


def test_its_end_is_foreseen_where_a_sigmoid_that_begins_with_the_run_ends_too_low() -> None:
    by_late, by_sigmoid, held = [], [], []
    for seed in range(12):
        whole = _late(seed, last=6000.0, points=120)
        found, outcome = fit(whole.until(3000.0)), Outcome.of(whole)
        told = predict_mean(found, outcome.compute)
        by_late.append(told.median - outcome.reward)
        by_sigmoid.append(float(found.predict(outcome.compute).median.mean()) - outcome.reward)
        held.append(told.lower <= outcome.reward <= told.upper)
    assert np.mean(by_sigmoid) < -0.03
    assert np.abs(by_late).mean() < 0.5 * np.abs(by_sigmoid).mean()
    assert np.mean(held) >= 0.8


@pytest.mark.parametrize("R0", [0.0, 0.1])
def test_a_run_that_began_late_is_not_stopped_while_it_grows(R0: float) -> None:
    """From a half to the budget some .06 are left, of which a sigmoid that begins with the run knows .01."""
    for seed in range(8):
        whole = _late(seed, size=400, last=6000.0, points=120, R0=R0)
        assert advise(fit(whole.until(3000.0)), budget=6000.0).action != "stop"


def test_a_run_that_may_have_begun_late_is_forecast_by_both() -> None:
    """Where the evaluations do not tell for sure: each as often as it is probable."""
    fits = (fit(_late(seed, size=200)) for seed in range(40))
    found = next(one for one in fits if one.misfit is None and 0.3 < _share(one) < 0.9)
    other = found.other_rise
    assert other is not None
    assert len(other.laws) == 4
    later = [law.predict(6000.0).median[0] for law, _ in other.laws[1:]]
    assert min(later) > found.predict(6000.0).median[0]
    numbers = advise(found, budget=6000.0).numbers
    assert numbers["p_late_start"] == pytest.approx(_share(found))
    assert advise(found, budget=6000.0).action != "stop"


def test_healthy_runs_begin_with_the_run() -> None:
    for seed in range(40):
        found = fit(noisy_curve(seed, B=1.0 + seed % 5 / 2, last=(4000, 8000, 16_000)[seed % 3], points=25 + seed))
        assert found.misfit is None
        assert _share(found) < 0.2


def test_its_evidence_is_the_mean_over_where_it_may_have_begun() -> None:
    """Against the integral at 60 places, evenly over the range that is asked."""
    found = fit(_late(3, size=1000, points=30))
    late = late_start(found.posterior, found.problem)
    assert late is not None
    compute = found.problem.compute
    places = np.linspace(compute[3], compute[len(compute) - 1 - 6], 60)
    each = [log_sum(integrate(begun_at(found.problem, float(at))).masses.nodes) for at in places]
    assert late.log_evidence == pytest.approx(np.logaddexp.reduce(each) - np.log(len(each)), abs=1.0)


def test_neither_the_unit_of_compute_nor_the_range_of_rewards_has_a_say() -> None:
    curve = _late(2, size=1000)
    seconds = Curve(3600 * curve.compute, 100 * curve.reward, bounds=(0, 100), prompts=250, samples=4)
    one, other = fit(curve).late_start, fit(seconds).late_start
    assert one is not None
    assert other is not None
    assert other.middle == pytest.approx(3600 * one.middle, rel=1e-6)
    assert other.log_evidence == pytest.approx(one.log_evidence, abs=1e-6)


def test_of_a_rise_that_has_only_begun_too_little_is_seen() -> None:
    reward = np.zeros(38)
    reward[-1] = 0.007
    assert fit(Curve(np.arange(1.0, 39), reward, prompts=500, samples=4)).late_start is None


@pytest.mark.parametrize("answers", [240, 2000, 16_000])
def test_a_run_that_stood_at_0_is_not_so_sure_of_it_that_its_rise_counts_for_nothing(answers: int) -> None:
    """Asked at every evaluation: it is stopped, if at all, with little left to gain."""
    rng = np.random.default_rng(0)
    compute = np.linspace(0.0, 16_000.0, 41)
    truth = np.where(compute > 9_000, sigmoid(np.maximum(compute - 9_000, 1e-9), 0.6, 1.8, 2_500.0, 0.0), 0.0)
    curve = Curve(compute, rng.binomial(answers, truth) / answers, prompts=answers, samples=1)
    for at in compute[8:]:
        if advise(fit(curve.until(at)), budget=16_000.0).action == "stop":
            assert truth[-1] - truth[compute <= at][-1] < 0.03
            break


def test_where_what_is_seen_is_but_a_little_of_all_compute_it_is_found_without_a_warning() -> None:
    """Counted from where it began, compute spans far more factors of e than from 0."""
    compute = 1.0 + 1e-7 * np.arange(60)
    reward = np.where(compute > compute[18], 0.7, 0.2) + np.random.default_rng(0).normal(0, 0.003, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(Curve(compute, reward, unit="GPU-hours", prompts=1e6, samples=16))
        assert found.late_start is not None
