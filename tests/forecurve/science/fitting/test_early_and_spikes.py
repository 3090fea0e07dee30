"""Early regimes and single bad evaluations are part of the noise model: weighed, named, never cut out silently."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, fit
from forecurve.science.curves.noise import spike_variance

from ..synthetic import sigmoid

COMPUTE = np.linspace(0, 8_000, 51)[1:]


def _curve(early: float = 0.0, seed: int = 0) -> Curve:
    """A run whose first evaluations lie `early` above the sigmoid, fading out over the first 800 GPU-hours."""
    rng = np.random.default_rng(seed)
    truth = sigmoid(COMPUTE, 0.61, 1.9, 2500, 0.2) + early * np.maximum(1 - COMPUTE / 900, 0)
    return Curve(COMPUTE, truth + rng.normal(0, 0.0035, 50), prompts=1000, samples=16)


def test_an_early_regime_is_set_apart_and_said() -> None:
    found = fit(_curve(early=0.12)).cutoff
    assert found is not None
    assert found.probability > 0.9
    assert 700 < found.compute < 2_100


def test_a_healthy_run_has_no_early_regime() -> None:
    assert [fit(_curve(seed=seed)).cutoff for seed in range(10)] == [None] * 10


def test_an_early_regime_moves_the_ceiling_less_than_its_interval() -> None:
    errors = [fit(_curve(early=0.12, seed=seed)).A.median - 0.61 for seed in range(8)]
    assert abs(np.mean(errors)) < 0.01


def test_a_single_bad_evaluation_hardly_moves_the_forecast() -> None:
    clean = _curve(seed=3)
    reward = clean.reward.copy()
    reward[30] = 0.05
    spoiled = Curve(COMPUTE, reward, prompts=1000, samples=16)
    a, b = fit(clean), fit(spoiled)
    assert b.outliers == pytest.approx([COMPUTE[30]])
    assert abs(a.A.median - b.A.median) < 0.2 * a.A.width
    assert b.A.width < 1.3 * a.A.width


def test_a_single_bad_evaluation_is_named_by_its_own_compute_to_the_last_digit() -> None:
    compute = 12.4 * np.arange(1, 31)
    reward = sigmoid(compute, 0.6, 1.5, 100, 0.2)
    reward[12] = 0.05
    assert fit(Curve(compute, reward, prompts=1000, samples=16)).outliers.tolist() == [compute[12]]


def test_a_fall_that_stays_is_no_spike() -> None:
    reward = _curve().reward.copy()
    reward[30:] -= 0.3
    assert not spike_variance(reward, np.full(50, 1.2e-5)).any()


def test_healthy_noise_is_seldom_called_a_spike() -> None:
    rng = np.random.default_rng(0)
    flagged = [
        (spike_variance(0.4 + rng.normal(0, 0.0035, 100), np.full(100, 0.0035**2)) > 0).sum() for _ in range(200)
    ]
    assert sum(flagged) <= 2
