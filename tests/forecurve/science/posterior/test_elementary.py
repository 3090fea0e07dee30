"""What compiled loops compute by themselves, against numpy and scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from forecurve.science.compiled import compiled
from forecurve.science.curves import noise
from forecurve.science.posterior import elementary, normal
from forecurve.science.posterior.normal import below, quantile
from forecurve.science.values import quantiles


def _each_quantile(p: Any, x: Any, back: Any) -> None:
    for i in range(len(p)):
        x[i] = quantile(p[i])
        back[i] = below(x[i])


@pytest.fixture(params=["compiled", "interpreted"])
def run(request: pytest.FixtureRequest) -> Callable[..., Callable[..., None]]:
    """How a loop of the module is made to run; `parts` are what it calls."""
    if request.param == "interpreted":
        return lambda loop, *parts: loop
    pytest.importorskip("numba")
    return lambda loop, *parts: compiled(loop, loop, *parts)


def test_logarithms(run: Callable[..., Callable[..., None]]) -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 601), 1 + np.linspace(-0.5, 1.5, 801), [1.0, 2.0, np.sqrt(0.5)]])
    found = x.copy()
    run(elementary.logs)(found)
    np.testing.assert_allclose(found, np.log(x), rtol=1e-15, atol=1e-16)


def test_exponentials(run: Callable[..., Callable[..., None]]) -> None:
    x = np.concatenate([-np.geomspace(1e-20, 700.0, 601), np.linspace(-3.0, 0.0, 301), [-0.0, -1e4, -np.inf]])
    found = x.copy()
    run(elementary.exps)(found)
    np.testing.assert_allclose(found[:-2], np.exp(x[:-2]), rtol=1e-15)
    assert np.all((found[-2:] >= 0) & (found[-2:] < 1e-303))


def test_normal_quantiles_and_back(run: Callable[..., Callable[..., None]]) -> None:
    p = np.concatenate([np.geomspace(1e-300, 0.5, 300), 1 - np.geomspace(1e-15, 0.5, 200), [0.075, 0.925]])
    x, back = np.empty_like(p), np.empty_like(p)
    run(_each_quantile, normal.below, normal.quantile)(p, x, back)
    np.testing.assert_allclose(x, ndtri(p), rtol=2e-15, atol=1e-16)
    np.testing.assert_allclose(back, ndtr(x), rtol=1e-12)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
)
def test_quantiles_are_numpys(draws: list[float], levels: list[float]) -> None:
    both = np.array([draws, [2 * draw for draw in draws]])
    found = quantiles(both, levels)
    np.testing.assert_allclose(found, np.quantile(both, levels, axis=1), rtol=1e-12, atol=1e-9)


@given(st.lists(st.floats(0.0, 100.0) | st.sampled_from([1.0, 2.0]), min_size=1, max_size=3 * noise.WINDOW))
def test_the_running_median_is_that_of_the_latest_values(values: list[float]) -> None:
    array, loop, rows = np.array(values), np.empty(len(values)), np.empty(len(values))
    noise._median_loop(array, loop)
    noise._median_rows(array, rows)
    expected = [np.median(array[max(at + 1 - noise.WINDOW, 0) : at + 1]) for at in range(len(array))]
    np.testing.assert_allclose(loop, expected)
    np.testing.assert_allclose(rows, expected)
