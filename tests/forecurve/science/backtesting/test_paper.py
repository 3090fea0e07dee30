"""The paper's procedure: the letter of it, and the fast search that stands in for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import (
    Curve,
    CurveError,
    PaperGrid,
    backtest,
    least_squares,
    paper_fit,
    paper_grid,
    power_law,
    scaled_grid,
)
from forecurve.science.fitting.outcome import tail_size

from ..synthetic import noisy_curve, sigmoid


def _coarse() -> PaperGrid:
    """Every tenth ceiling and every ninth midpoint of the paper's grid: 96 cells."""
    full = paper_grid()
    return PaperGrid(full.ceilings[::10], full.midpoints[::9])


def test_the_grid_is_the_one_of_the_appendix() -> None:
    grid = paper_grid()
    assert grid.cells == 7_100
    np.testing.assert_allclose(grid.ceilings, np.arange(450, 801, 5) / 1000)
    assert grid.midpoints[0] == 100
    assert grid.midpoints[-1] == 40_000
    np.testing.assert_allclose(np.diff(grid.midpoints), 39_900 / 99)


def test_the_scaled_grid_keeps_the_ratio_to_the_last_compute_and_starts_at_the_start() -> None:
    grid = scaled_grid(0.21, 200.0)
    np.testing.assert_allclose(grid.midpoints, paper_grid().midpoints * 200 / 100_000)
    assert grid.ceilings[0] == 0.21
    assert grid.ceilings[-1] == 1.0
    assert np.diff(grid.ceilings).max() <= 0.005 + 1e-12


@pytest.mark.parametrize("points", [4, 7, 13, 40])
def test_the_fast_search_finds_the_winner_of_curve_fit(points: int) -> None:
    curve = noisy_curve(points, points=points, sd=0.008)
    letter, fast = paper_fit(curve, grid=_coarse(), exact=True), paper_fit(curve, grid=_coarse())
    assert fast.sse == pytest.approx(letter.sse, rel=1e-8)
    assert (fast.A, fast.C_mid) == (letter.A, letter.C_mid)
    assert abs(fast.B / letter.B - 1) < 1e-3


@pytest.mark.parametrize("seed", range(12))
def test_the_fast_search_is_the_letter_also_where_cells_tie_or_curve_fit_gets_stuck(seed: int) -> None:
    """Few noisy evaluations, as at a tenth of a run: hundreds of cells are as good, or hardly bend between two B."""
    rng = np.random.default_rng(seed)
    compute = np.arange(1.0, 4 + seed % 5 + 1)
    reward = np.clip(0.3 + 0.02 * compute + rng.normal(0, rng.choice([0.001, 0.02, 0.05]), len(compute)), 0, 1)
    full = scaled_grid(float(reward[0]), 10 * float(compute[-1]))
    grid = PaperGrid(full.ceilings[::7], full.midpoints[::5])
    letter, fast = (paper_fit(Curve(compute, reward), grid=grid, exact=exact) for exact in (True, False))
    assert (fast.A, fast.C_mid) == (letter.A, letter.C_mid)
    assert pytest.approx(letter.B) == fast.B


def test_the_winner_is_the_best_cell_by_brute_force() -> None:
    """Every A and C_mid of a small grid with a fine lattice of B, computed without any of the code under test."""
    curve = noisy_curve(3, points=15)
    grid = _coarse()
    found = paper_fit(curve, grid=grid)
    start = float(curve.reward[0])
    exponents = np.geomspace(0.3, 8, 4000)[:, None]
    with np.errstate(divide="ignore"):
        best = min(
            np.square(curve.reward - (start + (A - start) / (1 + (C / curve.compute) ** exponents))).sum(axis=1).min()
            for A in grid.ceilings
            for C in grid.midpoints
        )
    assert found.sse == pytest.approx(best, rel=1e-5)
    assert found.sse <= best


def test_the_winner_predicts_with_its_own_curve() -> None:
    curve = noisy_curve(0, last=16000.0, points=60)
    found = paper_fit(curve)
    residual = curve.reward - sigmoid(curve.compute, found.A, found.B, found.C_mid, found.R0)
    assert found.sse == pytest.approx(float(residual @ residual), rel=1e-9)
    np.testing.assert_allclose(curve.reward - found.reward_at(curve.compute), residual, atol=1e-12)
    assert found.to_dict()["A"] == found.A


def test_a_converged_fit_is_never_worse_than_the_grid() -> None:
    for seed in range(6):
        curve = noisy_curve(seed, points=25)
        start = float(curve.reward[0])
        assert least_squares(curve, R0=start).sse <= paper_fit(curve, R0=start).sse


@settings(max_examples=20, deadline=None)
@given(
    reward=st.lists(st.floats(0, 1), min_size=3, max_size=12),
    scale=st.floats(1e-3, 1e3),
)
def test_any_curve_gets_a_finite_answer_in_any_unit(reward: list[float], scale: float) -> None:
    compute = scale * np.arange(1.0, len(reward) + 1)
    curve = Curve(compute, reward)
    found = paper_fit(curve, grid=scaled_grid(reward[0], float(compute[-1])))
    assert np.isfinite([found.A, found.B, found.C_mid, found.sse]).all()
    assert found.sse <= np.square(curve.reward - reward[0]).sum() + 1e-9  # A = R0 is one of the cells
    law = power_law(curve)
    assert np.isfinite(law.reward_at(compute)).all()
    assert law.sse <= np.square(curve.reward - curve.reward.mean()).sum() + 1e-9  # D = 0 is a power law
    assert law.A <= 1


def test_a_curve_that_does_not_rise_leaves_the_lowest_of_the_equal_cells() -> None:
    """All cells whose step lies beyond the data are equal, and which one wins decides the forecast: as there."""
    compute = np.arange(1.0, 13.0)
    curve = Curve(compute, 0.4 - 0.002 * compute + np.random.default_rng(0).normal(0, 0.004, 12))
    full = scaled_grid(float(curve.reward[0]), 48.0)
    grid = PaperGrid(full.ceilings[::12], full.midpoints[::10])
    letter, fast = paper_fit(curve, grid=grid, exact=True), paper_fit(curve, grid=grid)
    assert (fast.A, fast.B, fast.C_mid) == (letter.A, letter.B, letter.C_mid)
    start = float(curve.reward[0])
    assert start == fast.A


def test_where_curve_fit_gives_up_in_the_best_cells_another_one_wins() -> None:
    """A run that stays at 0 and rises with its last two evaluations: the step that fits best cannot be got to."""
    compute = np.arange(0.0, 11.0)
    curve = Curve(compute, np.r_[np.zeros(9), 0.3, 0.2])
    full = scaled_grid(0.0, 20.0)
    grid = PaperGrid(full.ceilings[::4], full.midpoints[3::8])
    letter, fast = paper_fit(curve, grid=grid, exact=True), paper_fit(curve, grid=grid)
    assert np.isfinite(fast.A)
    assert (fast.A, fast.C_mid) == (letter.A, letter.C_mid)


def test_a_curve_that_stays_at_0_is_the_first_cell() -> None:
    """Its sum of squares is 0 wherever the step lies: the first cell that has it ends the race."""
    curve = Curve(np.arange(1.0, 7.0), np.zeros(6))
    grid = scaled_grid(0.0, 60.0)
    small = PaperGrid(grid.ceilings[::40], grid.midpoints[::20])
    letter, fast = paper_fit(curve, grid=small, exact=True), paper_fit(curve, grid=small)
    assert (fast.A, fast.B, fast.C_mid, fast.sse) == (letter.A, letter.B, letter.C_mid, 0.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda curve: paper_fit(curve, R0=float("nan")), "R0"),
        (lambda curve: paper_fit(curve, R0=float("inf")), "R0"),
        (lambda curve: paper_fit(curve, R0="x"), "R0"),
        (lambda curve: paper_fit(curve, R0=1.5), "R0"),
        (lambda curve: paper_fit("x"), "curve"),
        (lambda curve: paper_fit(curve, grid=3), "grid"),
        (lambda curve: scaled_grid(float("nan"), 100.0), "start"),
        (lambda curve: scaled_grid(0.2, float("nan")), "last"),
        (lambda curve: scaled_grid(0.2, 1e300), "last"),
        (lambda curve: scaled_grid(0.2, 100.0, (1.0, 0.0)), "bounds"),
    ],
)
def test_a_start_a_curve_or_a_grid_that_cannot_be_is_refused(ask: Callable[[Curve], Any], field: str) -> None:
    with pytest.raises(CurveError) as caught:
        ask(noisy_curve(0))
    assert caught.value.field == field


@pytest.mark.parametrize("reward", [[0.0] * 4, [0.1, 0.9, 0.9, 0.9]], ids=["gives up", "falls"])
def test_a_curve_that_no_cell_of_the_grid_can_follow_is_refused_soon(reward: list[float]) -> None:
    """Else 7,100 cells are tried in vain, and the answer is no curve at all."""
    with pytest.raises(CurveError, match=r"grid: curve_fit finds no exponent.*scaled_grid"):
        paper_fit(Curve([1.0, 2.0, 3.0, 4.0], reward))
    coarse = PaperGrid(np.array([0.45, 0.6, 0.8]), np.array([100.0, 1000.0]))
    with pytest.raises(CurveError, match="grid"):
        paper_fit(Curve([1.0, 2.0, 3.0, 4.0], reward), grid=coarse, exact=True)


def test_a_long_curve_takes_no_memory_for_every_evaluation_in_every_cell() -> None:
    """Else 100,000 evaluations take more than most machines have."""
    compute = np.arange(1.0, 4_001.0)
    curve = Curve(compute, 0.2 + 0.4 * compute / (compute + 800.0) + 0.01 * np.sin(compute))
    tracemalloc.start()
    paper_fit(curve, grid=scaled_grid(0.2, 8_000.0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0])
def test_a_run_that_never_moves_has_a_forecast_by_the_paper_in_a_backtest(level: float) -> None:
    curve = Curve(np.arange(1.0, 41.0), np.full(40, level))
    rows = backtest([curve], fractions=[0.25], baselines=["paper-grid"]).rows
    assert [row.predicted for row in rows if row.method == "paper-grid"] == [pytest.approx(level)]


def test_a_power_law_is_recovered_and_its_ceiling_is_capped() -> None:
    compute = np.geomspace(10, 5000, 20)
    exact = power_law(Curve(compute, 0.8 - 1.1 * compute**-0.45))
    np.testing.assert_allclose([exact.A, exact.D, exact.B], [0.8, 1.1, 0.45], rtol=1e-4)
    steep = power_law(Curve(np.arange(1.0, 9.0), 0.1 * np.arange(1.0, 9.0)))
    assert steep.A == 1.0
    assert np.isfinite(steep.sse)


def test_a_power_law_is_at_least_as_good_as_a_brute_search() -> None:
    curve = noisy_curve(2, points=20)
    x, y = curve.compute[1:], curve.reward[1:]
    least = np.inf
    for exponent in np.geomspace(0.01, 5, 300):
        design = np.column_stack([np.ones_like(x), -(x**-exponent)])
        (A, D), *_ = np.linalg.lstsq(design, y, rcond=None)
        if A <= 1 and D >= 0:
            least = min(least, float(np.square(y - design @ (A, D)).sum()))
    assert power_law(curve).sse <= least * (1 + 1e-9)


def test_the_tail_of_a_curve_is_a_tenth_at_least_one_and_at_most_thirty() -> None:
    assert [tail_size(points) for points in (3, 9, 10, 29, 30, 300, 309, 10_000)] == [1, 1, 1, 2, 3, 30, 30, 30]
