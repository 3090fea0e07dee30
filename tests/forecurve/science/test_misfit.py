"""Curves that are not one sigmoid are named; curves that are, are not."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, advise, fit

from .synthetic import noisy_curve, sigmoid

X = np.linspace(0, 300, 31)


def _curve(mean: np.ndarray, seed: int = 0, sd: float = 0.01) -> Curve:
    noise = np.random.default_rng(seed).normal(0, sd, len(X))
    return Curve(X, np.clip(mean + noise, 0, 1), prompts=512, samples=2, unit="steps")


def test_healthy_runs_are_hardly_ever_called_a_misfit() -> None:
    verdicts = [fit(noisy_curve(seed, last=last, points=30)).misfit for seed in range(25) for last in (2000, 8000)]
    assert sum(verdict is not None for verdict in verdicts) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_a_decline_is_named_dated_and_sized(seed: int) -> None:
    healthy = sigmoid(X, 0.7, 1.6, 30, 0.2)
    result = fit(_curve(healthy - np.maximum(X - 180, 0) * 0.0015, seed))
    assert result.misfit == "decline"
    detail = result.misfit_detail
    assert detail is not None
    assert detail.since == pytest.approx(180, abs=50)
    assert detail.size == pytest.approx(0.16, abs=0.06)
    advice = advise(result, budget=600)
    assert advice.action == "stop"
    assert "fell" in advice.reason
    assert "no ceiling can be read" in result.sentence()


@pytest.mark.parametrize("seed", range(4))
def test_a_sudden_collapse_is_a_decline(seed: int) -> None:
    healthy = sigmoid(X, 0.7, 1.6, 30, 0.2)
    result = fit(_curve(np.where(X > 200, 0.1, healthy), seed))
    assert result.misfit == "decline"
    assert result.misfit_detail is not None
    assert result.misfit_detail.size > 0.4


@pytest.mark.parametrize("seed", range(4))
def test_two_phase_growth_is_named(seed: int) -> None:
    shoulder = sigmoid(X, 0.45, 2.5, 15, 0.1) + 0.3 / (1 + np.exp(-(X - 170) / 12))
    result = fit(_curve(shoulder, seed))
    assert result.misfit == "two-phase"
    assert advise(result, budget=600).action == "undecided"


def test_curves_without_a_shape_are_named_and_still_fitted() -> None:
    zero = fit(Curve([1, 2, 3, 4], [0, 0, 0, 0], prompts=100, samples=4))
    assert zero.misfit == "pinned"
    assert zero.A.upper > 0.5
    assert advise(zero, budget=100).action == "undecided"
    one = fit(Curve([1, 2, 3, 4], [1, 1, 1, 1], prompts=100, samples=4))
    assert one.misfit == "pinned"
    assert advise(one, budget=100).action == "stop"
    flat = fit(Curve([1, 2, 3, 4], [0.4] * 4))
    assert flat.misfit == "constant"
    assert np.isfinite([flat.A.lower, flat.A.upper, flat.B.median, flat.C_mid.median]).all()


def test_residuals_that_hang_together_are_named() -> None:
    wave = 0.03 * np.sin(X / 25)
    result = fit(_curve(sigmoid(X, 0.7, 1.6, 30, 0.2) + wave, sd=0.003))
    assert result.misfit in {"residuals", "two-phase", "decline"}
    assert result.misfit_detail is not None


def test_a_fall_that_is_only_noise_is_no_decline() -> None:
    verdicts = [fit(_curve(sigmoid(X, 0.7, 1.6, 30, 0.2), seed, sd=0.02)).misfit for seed in range(20)]
    assert verdicts.count("decline") <= 1
