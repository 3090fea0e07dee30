"""The sigmoid that a further term is compared with is the best one, wherever its midpoint lies."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, fit
from forecurve.science.departures.extension import NullModel

from ..synthetic import sigmoid


def _steep(seed: int, exponent: float, middle: float) -> Curve:
    compute = np.arange(1, 41) * 100.0
    noise = np.random.default_rng(seed).normal(0, 0.004, 40)
    return Curve(compute, sigmoid(compute, 0.8, exponent, middle, 0.1) + noise, prompts=1000, samples=16)


@pytest.mark.parametrize(("exponent", "middle"), [(9.0, 1530.0), (6.0, 380.0), (1.5, 1200.0)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_sigmoid_is_much_likelier_than_the_best_of_a_comparison(seed: int, exponent: float, middle: float) -> None:
    found = fit(_steep(seed, exponent, middle))
    null = NullModel.of(found.problem, found.posterior)
    log_b = np.log(exponent) + np.linspace(-0.25, 0.1, 36)
    log_mid = np.log(middle) + np.linspace(-0.05, 0.05, 81)
    dense = np.stack(np.meshgrid(log_b, log_mid, indexing="ij")).reshape(2, -1)
    best = NullModel(found.problem, dense, null.cell)
    assert null.top > best.top - 0.06


def test_what_an_early_regime_is_compared_with_is_the_best_sigmoid_too() -> None:
    """Without one, of all evaluations, it lies elsewhere than behind one."""
    compute = np.arange(1, 61) * 100.0
    reward = sigmoid(compute, 0.8, 2.0, 2000.0, 0.2) + np.random.default_rng(1).normal(0, 0.004, 60)
    reward[:8] -= 0.15
    found = fit(Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16))
    null = NullModel.of(found.problem, found.posterior)
    assert null.early > 0
    whole = np.array([not hypothesis.early for hypothesis in found.setting.hypotheses])
    axes = np.linspace(*found.setting.box.log_b, 60), np.linspace(*found.setting.box.log_mid, 160)
    dense = NullModel(found.problem, np.stack(np.meshgrid(*axes, indexing="ij")).reshape(2, -1), null.cell)
    assert null.top_whole > dense.likelihood[whole].max() - 0.06
