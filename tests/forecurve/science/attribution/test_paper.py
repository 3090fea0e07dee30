"""The paper's own procedure: refit at the common ceiling, compare B."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import curve_fit

from forecurve.science import Curve
from forecurve.science.attribution import refit_at_ceiling
from forecurve.science.attribution.common_ceiling import paper_columns

from ..sweeps import noisy_run
from ..synthetic import exact_curve, sigmoid


def test_an_exact_curve_is_recovered_at_its_own_ceiling() -> None:
    again = refit_at_ceiling(exact_curve(A=0.6, B=1.7, C_mid=30.0, R0=0.2), 0.6)
    assert (again.B, again.C_mid, again.R0) == pytest.approx((1.7, 30.0, 0.2), rel=1e-5)
    assert again.sse < 1e-12


@pytest.mark.parametrize("A", [0.59, 0.61, 0.65])
def test_a_refit_is_never_worse_than_curve_fits(A: float) -> None:
    curve = noisy_run(4)

    def model(compute: np.ndarray, R0: float, B: float, C_mid: float) -> np.ndarray:
        return sigmoid(compute, A, B, C_mid, R0)

    found, _ = curve_fit(model, curve.compute, curve.reward, p0=(0.2, 1.9, 2500.0))
    oracle = float(((model(curve.compute, *found) - curve.reward) ** 2).sum())
    again = refit_at_ceiling(curve, A)
    assert again.sse <= oracle * (1 + 1e-6)
    assert np.allclose((again.R0, again.B, again.C_mid), found, rtol=1e-2)


def test_a_long_curve_takes_no_memory_for_every_evaluation_at_every_node() -> None:
    """50,000 evaluations had taken 3 GB; the optimum is that of all of them."""
    compute = np.linspace(1.0, 16_000.0, 5_000)
    noise = np.random.default_rng(0).normal(0, 0.01, 5_000)
    curve = Curve(compute, sigmoid(compute, 0.6, 1.9, 2500.0, 0.2) + noise)
    tracemalloc.start()
    again = refit_at_ceiling(curve, 0.6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    at_truth = float((noise**2).sum())
    assert at_truth * 0.99 < again.sse <= at_truth


def test_arms_within_the_margin_are_compared_by_B_at_the_mean_ceiling() -> None:
    arms = {
        "base": [exact_curve(A=0.60, B=1.6)],
        "same": [exact_curve(A=0.60, B=2.0)],
        "below": [exact_curve(A=0.55, B=2.0)],
        "above": [exact_curve(A=0.65, B=1.6)],
    }
    columns = paper_columns(arms, "base")
    assert {name: one.verdict for name, one in columns.items()} == {
        "base": "control",
        "same": "faster",
        "below": "ceiling down",
        "above": "ceiling up",
    }
    same = columns["same"]
    assert (same.common_A, same.B) == pytest.approx((0.60, 2.0), rel=1e-2)
    assert columns["below"].common_A is None
