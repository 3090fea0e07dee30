"""The density of the ceiling given the start, where nothing else is known of a run."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science.posterior.usual_rise import log_usual_rise

from ..synthetic import log_rise_of


@pytest.mark.parametrize("start", [0.0, 0.04, 0.3, 0.65, 0.95])
def test_it_is_a_density_and_that_of_scipys_gamma_law(start: float) -> None:
    A = np.linspace(start, 1.0, 400_002)[1:-1]
    R0 = np.full(A.shape, start)
    ours = log_usual_rise(A, R0)
    np.testing.assert_allclose(ours, log_rise_of(A, R0), atol=1e-6)
    assert float(np.exp(ours).mean()) * (1 - start) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("start", "middle"), [(0.04, 0.35), (0.2, 0.59), (0.65, 0.87), (0.95, 0.98)])
def test_the_higher_a_run_starts_the_less_of_its_headroom_is_its_own(start: float, middle: float) -> None:
    A = np.linspace(start, 1.0, 20_001)
    mass = np.cumsum(np.exp(log_usual_rise(A, np.full(A.shape, start))))
    assert A[np.searchsorted(mass, mass[-1] / 2)] == pytest.approx(middle, abs=0.01)


def test_where_nothing_is_left_to_gain_it_is_finite() -> None:
    ends = np.array([[1.0, 1.0], [1.0, 0.9995], [0.0, 0.0], [1.0, 0.0]])
    assert np.isfinite(log_usual_rise(ends[:, 0], ends[:, 1])).all()


def test_half_of_it_leaves_every_ceiling_open() -> None:
    A = np.linspace(0.0401, 1.0, 1001)
    assert np.exp(log_usual_rise(A, np.full(A.shape, 0.04))).min() >= 0.5 / 0.96 - 1e-9
