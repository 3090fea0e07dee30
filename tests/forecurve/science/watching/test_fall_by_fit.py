"""Falls that the run's own fit finds while a run is watched: a warning before there is evidence enough."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, FrozenError, Watch, fit, freeze, watch
from forecurve.science.arrays import FloatArray
from forecurve.science.watching.watch import WARN_THRESHOLD

from ..synthetic import noisy_curve, sigmoid


def _noisy_run_that_collapses() -> tuple[FloatArray, FloatArray]:
    """Ten noisy evaluations to freeze at, a dip that comes back, then nearly 0 to the end."""
    rng = np.random.default_rng(5)
    compute = np.arange(1, 41) * 5.0
    reward = 0.85 - 0.5 * np.exp(-compute / 12) + 0.08 * rng.normal(size=40)
    reward[18], reward[21:25] = 0.5, (0.31, 0.29, 0.26, 0.55)
    reward[30], reward[31:] = 0.4, 0.01 * rng.integers(0, 3, 9)
    return compute, np.clip(np.round(reward, 4), 0, 1)


def _watched(points: int, first: int = 10, *, by_fit: bool) -> Watch:
    x, y = _noisy_run_that_collapses()
    frozen = freeze(fit(Curve(x[:10], y[:10])), horizon=30)
    found = fit(Curve(x[:points], y[:points])) if by_fit else None
    return watch(frozen, x[first:points], y[first:points], fit=found)


def test_a_fall_that_the_fit_finds_is_a_warning_before_there_is_evidence_enough() -> None:
    alone, told = _watched(36, by_fit=False), _watched(36, by_fit=True)
    assert (alone.level, alone.fall) == (None, None)
    assert "is below its forecast, which may be chance" in alone.sentence
    assert told.level == "WARN"
    assert told.since_compute == 160.0  # the evaluation after the last one that was not low
    assert told.fall is not None
    assert "fell by 0.9" in told.fall
    assert told.sentence.endswith(f"{told.fall} {told.unit}.")
    assert told.to_dict()["fall"] == told.fall
    assert told.e_value == alone.e_value < WARN_THRESHOLD


def test_a_fall_that_is_made_up_for_or_was_settled_before_is_no_warning() -> None:
    assert _watched(25, by_fit=True).level == "WARN"  # in the dip
    assert _watched(30, by_fit=True).level is None  # back from it
    assert _watched(36, first=33, by_fit=True).fall is None  # resolved at 33: what had been seen by then


def test_a_run_that_fell_by_its_own_fit_is_not_said_to_follow_its_forecast() -> None:
    """The frozen forecast may be too wide to be left by it; that it fell is known all the same."""
    compute = np.linspace(100 / 60, 100, 60)
    reward = sigmoid(compute, 0.7, 1.8, 10, 0.2) + 0.011 * np.random.default_rng(907).normal(size=60)
    reward[21:] -= 0.06
    said = []
    for size in range(30, 61, 2):
        found = fit(Curve(compute[:size], reward[:size], prompts=500, samples=4))
        frozen = freeze(fit(Curve(compute[:15], reward[:15], prompts=500, samples=4)))
        told = watch(frozen, compute[15:size], reward[15:size], fit=found)
        if told.level is None and found.misfit_detail is not None and found.misfit_detail.fallen:
            said.append(told.sentence)
            assert told.fall == found.misfit_detail.sentence
            assert told.since_compute is None
    assert said
    assert all(" has not left its forecast, but has fallen by its own fit: " in sentence for sentence in said)


@pytest.mark.slow
def test_healthy_runs_are_not_warned_of_by_their_fits() -> None:
    for seed in range(20):
        curve = noisy_curve(seed, last=16_000, points=60)
        past = curve.until(4000)
        frozen = freeze(fit(past))
        for count in (25, 40, 60):
            found = fit(Curve(curve.compute[:count], curve.reward[:count], prompts=1000, samples=16, unit=curve.unit))
            judged = slice(past.points, count)
            assert watch(frozen, curve.compute[judged], curve.reward[judged], fit=found).fall is None, (seed, count)


def test_a_fit_of_other_evaluations_is_refused() -> None:
    x, y = _noisy_run_that_collapses()
    frozen = freeze(fit(Curve(x[:10], y[:10])))
    with pytest.raises(FrozenError, match="fit: the evaluations end at 180, got it ends at 175"):
        watch(frozen, x[10:36], y[10:36], fit=fit(Curve(x[:35], y[:35])))
