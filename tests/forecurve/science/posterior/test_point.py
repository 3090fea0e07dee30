"""The least-squares curve: exact on exact data, never worse than the paper's grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from forecurve.science import Curve, CurveError, least_squares
from forecurve.science.arrays import FloatArray

from ..synthetic import exact_curve, noisy_curve, sigmoid


@settings(max_examples=25, deadline=None)
@given(
    A=st.floats(0.4, 0.99),
    B=st.floats(0.5, 4.0),
    C_mid=st.floats(10.0, 150.0),
    R0=st.floats(0.0, 0.3),
)
def test_noise_free_parameters_come_back(A: float, B: float, C_mid: float, R0: float) -> None:
    best = least_squares(exact_curve(A, B, C_mid, R0))
    assert (best.A, best.B, best.C_mid, best.R0) == pytest.approx((A, B, C_mid, R0), rel=1e-5, abs=1e-6)
    assert best.sse < 1e-12


def _paper_grid_sse(compute: FloatArray, reward: FloatArray, R0: float) -> float:
    """The paper's A.5 at a smaller size: A and C_mid on a grid, B by a 1-D search in each cell."""

    def sse(log_b: float, A: float, C_mid: float) -> float:
        return float(((reward - sigmoid(compute, A, float(np.exp(log_b)), C_mid, R0)) ** 2).sum())

    cells = [(A, C_mid) for A in np.arange(0.45, 0.801, 0.025) for C_mid in np.linspace(100, 40000, 60)[:15]]
    ends = [minimize_scalar(sse, bounds=(-2, 2.5), args=cell, method="bounded").fun for cell in cells]
    return float(min(ends))


@pytest.mark.parametrize("seed", range(6))
def test_the_sum_of_squares_is_never_above_the_papers_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = (rng.uniform(0.45, 0.8), rng.uniform(1.0, 2.5), rng.uniform(1000, 9000), 0.2)
    compute = np.linspace(1000, rng.uniform(6000, 20000), int(rng.integers(8, 60)))
    reward = sigmoid(compute, *truth) + rng.normal(0, rng.choice([0.002, 0.01]), len(compute))
    curve = Curve(compute, reward)
    assert least_squares(curve, R0=0.2).sse <= _paper_grid_sse(compute, reward, 0.2) * (1 + 1e-9)


def test_it_is_at_a_stationary_point() -> None:
    curve = noisy_curve(1)
    best = least_squares(curve)
    here = np.array([best.A, np.log(best.B), np.log(best.C_mid), best.R0])

    def sse(theta: FloatArray) -> float:
        model = sigmoid(curve.compute, theta[0], float(np.exp(theta[1])), float(np.exp(theta[2])), theta[3])
        return float(((curve.reward - model) ** 2).sum())

    rng = np.random.default_rng(0)
    nearby = [sse(here + rng.normal(0, size, 4)) for size in (1e-2, 1e-3, 1e-4) for _ in range(30)]
    assert min(nearby) >= best.sse * (1 - 1e-9)


def test_a_fixed_start_is_kept() -> None:
    best = least_squares(noisy_curve(2), R0=0.1)
    assert best.R0 == 0.1


def test_a_stated_range_is_only_a_change_of_scale() -> None:
    plain = noisy_curve(3)
    moved = Curve(plain.compute, plain.reward * 4 - 2, bounds=(-2.0, 2.0))
    one, other = least_squares(plain), least_squares(moved)
    assert (other.A, other.B, other.C_mid) == pytest.approx((one.A * 4 - 2, one.B, one.C_mid), rel=1e-6)


@pytest.mark.parametrize("start", [2.0, -0.1, float("nan"), float("inf"), "a"])
def test_a_start_that_cannot_be_is_refused(start: object) -> None:
    """Beyond the range, or no number: not one is a curve, and NaN must not mean that it is to be fitted."""
    with pytest.raises(CurveError, match="R0"):
        least_squares(noisy_curve(1), R0=start)  # type: ignore[arg-type]


def test_what_is_no_curve_is_refused() -> None:
    with pytest.raises(CurveError, match="curve: a Curve is needed, got str"):
        least_squares("x")  # type: ignore[arg-type]
