"""What is drawn without chance hangs together with nothing else that is drawn."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kstest
from scipy.stats import t as student_t

from forecurve.science import fit
from forecurve.science.posterior.drawing import DRAWS, _alpha
from forecurve.science.posterior.evenly import Axis, normals, uniforms

from ..synthetic import noisy_curve


@pytest.mark.parametrize("axis", Axis)
def test_each_is_spread_evenly_in_whatever_part_of_the_draws(axis: Axis) -> None:
    found = uniforms(axis, DRAWS)
    assert found.min() > 0
    assert found.max() < 1
    for part in (found, found[: DRAWS // 4], found[-DRAWS // 4 :]):
        assert kstest(part, "uniform").statistic < 0.01
    assert kstest(normals(axis, DRAWS), "norm").statistic < 0.005


@pytest.mark.parametrize(("one", "other"), list(combinations(Axis, 2)))
def test_no_two_hang_together(one: Axis, other: Axis) -> None:
    """In every rectangle at a corner lies its share of the pairs, and one says nothing of how far off the other is."""
    shares, _, _ = np.histogram2d(uniforms(one, DRAWS), uniforms(other, DRAWS), bins=15, range=[[0, 1], [0, 1]])
    corner = np.arange(1, 16) / 15
    assert np.abs(shares.cumsum(axis=0).cumsum(axis=1) / DRAWS - corner[:, None] * corner).max() < 0.01
    a, b = normals(one, DRAWS), normals(other, DRAWS)
    for pair in ((a, b), (np.abs(a), b), (a, np.abs(b)), (np.abs(a), np.abs(b))):
        assert abs(np.corrcoef(*pair)[0, 1]) < 0.02


def test_noise_of_an_unknown_size_has_the_tails_of_a_student_t() -> None:
    """The scale's draws and the noise's own are independent: their ratio is a t of 2 nu degrees of freedom."""
    setting, shares = fit(noisy_curve(1, last=1200, points=5)).setting, (0.05, 0.2, 0.8, 0.95)
    squares, dof = 3.0, 2 * setting.nu
    scale = _alpha(setting, np.full(DRAWS, squares)) * dof / (2 * setting.rate + squares)  # dof over a chi-square
    ratio = normals(Axis.NOISE, DRAWS) * np.sqrt(scale)
    np.testing.assert_allclose(np.quantile(ratio, shares), student_t.ppf(shares, dof), rtol=0.02)
