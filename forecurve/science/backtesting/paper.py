"""The procedure of the ScaleRL paper (arXiv 2510.13786, appendix A.5), to compare with.

A grid over (A, C_mid); in every cell B alone is fitted by least squares, R0 is a fixed input; the cell with the least
sum of squared residuals wins. No weights, no noise model, no interval.

`exact=True` is the paper to the letter: one `scipy.optimize.curve_fit` with default initialisation in each of the 7,100
cells, more than a second a curve. The default finds the same winner in a few hundredths of a second: given C_mid and B
the residuals are quadratic in A, so that every cell is tried on a fine lattice of B at once and the best cells are
finished by golden section. Where cells are as good as equal (a curve that does not rise yet), the lowest A is taken:
the first that the loops over the grid meet.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray, IntArray
from ..curves.curve import Curve
from ..posterior.sigmoid import log_compute, reward_at, rise
from ..values import jsonable
from .golden import golden

CEILINGS = (0.450, 0.800, 0.005)
"""Of the paper's grid: first, last, step."""
MIDPOINTS = (100.0, 40_000.0, 100)
"""Of the paper's grid, in GPU-hours: first, last, how many linear values."""
LAST_COMPUTE = 100_000.0
"""The last compute in the paper: the 8B run of 100k GPU-hours."""

_LOG_B = (float(np.log(1e-3)), float(np.log(1e3)))
_LATTICE = 108
_FINALISTS = 150
_TIE = 1e-9  # sums of squares that are as good as equal: the first cell keeps its place
_ROUNDS = 30  # of golden section: ln B to 1e-7


@dataclass(frozen=True, eq=False)
class PaperGrid:
    """The values of A and of C_mid that are tried, each of shape (n,)."""

    ceilings: FloatArray
    midpoints: FloatArray

    @property
    def cells(self) -> int:
        """How many pairs there are."""
        return len(self.ceilings) * len(self.midpoints)

    def __repr__(self) -> str:
        a, c = self.ceilings, self.midpoints
        return f"PaperGrid({len(a)} A in {a[0]:g} to {a[-1]:g}, {len(c)} C_mid in {c[0]:g} to {c[-1]:g})"


def paper_grid() -> PaperGrid:
    """A.5's own: A in {.450, .455, ..., .800}, 100 linear values of C_mid in [100, 40000] GPU-hours.

    >>> paper_grid().cells
    7100
    """
    first, last, step = CEILINGS
    return PaperGrid(np.linspace(first, last, round((last - first) / step) + 1), np.linspace(*MIDPOINTS))


def scaled_grid(start: float, last: float, bounds: tuple[float, float] = (0.0, 1.0)) -> PaperGrid:
    """The same grid for a run of another size: C_mid in the paper's ratio to the last compute, A from R0 to the top.

    The paper's grid does not move with the window that is fitted (8k, 16k, 50k), so the ratio is to the full length of
    the run: [100, 40000] over 100,000 GPU-hours is [0.001, 0.4] of it.

    Args:
        start: R0, where A begins.
        last: compute of the run at full length.
        bounds: the range of rewards; steps of A are .005 of it.
    """
    bottom, top = bounds
    first, final, count = MIDPOINTS
    ceilings = np.append(np.arange(start, top, CEILINGS[2] * (top - bottom)), top)
    return PaperGrid(ceilings, np.linspace(first, final, count) * (last / LAST_COMPUTE))


@dataclass(frozen=True)
class PaperFit:
    """The winning cell.

    Attributes:
        A, B, C_mid: of the curve; R0 as it was given.
        sse: sum of squared residuals over all points.
        points: how many there were.
        seconds: what it cost.
    """

    A: float
    B: float
    C_mid: float
    R0: float
    sse: float
    points: int
    seconds: float

    def reward_at(self, compute: npt.ArrayLike) -> FloatArray:
        """The curve at each compute, shape (N,)."""
        x = np.atleast_1d(np.asarray(compute, dtype=np.float64))
        values = (np.array([value]) for value in (self.A, self.B, self.C_mid, self.R0))
        return reward_at(x, *values)[:, 0]

    def to_dict(self) -> dict[str, float | None]:
        """JSON-safe."""
        return dict(jsonable(dict(vars(self))))


def paper_fit(curve: Curve, *, grid: PaperGrid | None = None, R0: float | None = None, exact: bool = False) -> PaperFit:
    """Fit a curve as the paper does.

    Args:
        curve: at least 3 evaluations; all of them are used, cut it first where the paper would.
        grid: the cells; the paper's own when left out, its A as shares of the range of rewards.
        R0: the start; else the measured one (compute 0), else the first evaluation.
        exact: call `curve_fit` in every cell instead of the equivalent fast search.

    >>> compute = [500.0 * c for c in range(1, 33)]
    >>> exact = [0.2 + 0.4 / (1 + (2518.181818 / c) ** 1.5) for c in compute]
    >>> best = paper_fit(Curve(compute, exact), R0=0.2)
    >>> f"{best.A:.3f} {best.B:.2f} {best.C_mid:.0f}"
    '0.600 1.50 2518'
    """
    began = time.perf_counter()
    cells = grid or _moved(paper_grid(), curve)
    start = float(curve.reward[0]) if R0 is None else float(R0)
    search = _every_curve_fit if exact else _quick
    A, B, C_mid, sse = search(curve.compute, curve.reward, start, cells)
    return PaperFit(A, B, C_mid, start, sse, curve.points, time.perf_counter() - began)


def _moved(grid: PaperGrid, curve: Curve) -> PaperGrid:
    return PaperGrid(curve.bounds[0] + curve.width * grid.ceilings, grid.midpoints)


Winner = tuple[float, float, float, float]  # A, B, C_mid, sse


def _every_curve_fit(compute: FloatArray, reward: FloatArray, start: float, grid: PaperGrid) -> Winner:
    """The paper to the letter. A cell in which `curve_fit` gives up, or ends at B <= 0, is out of the race."""
    from scipy.optimize import curve_fit

    best: Winner = (float("nan"), float("nan"), float("nan"), float("inf"))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for ceiling, middle in itertools.product(grid.ceilings, grid.midpoints):
            model = _cell(float(ceiling), float(middle), start)
            try:
                (exponent,), _ = curve_fit(model, compute, reward)
            except RuntimeError:
                continue
            sse = float(np.square(reward - model(compute, exponent)).sum())
            if exponent > 0 and sse < best[3]:
                best = (float(ceiling), float(exponent), float(middle), sse)
    return best


def _cell(ceiling: float, middle: float, start: float) -> Callable[[FloatArray, float], FloatArray]:
    """The curve of one cell, with B alone free."""

    def model(compute: FloatArray, B: float) -> FloatArray:
        return start + (ceiling - start) / (1 + (middle / compute) ** B)

    return model


def _quick(compute: FloatArray, reward: FloatArray, start: float, grid: PaperGrid) -> Winner:
    log_c, residual, height = log_compute(compute), reward - start, grid.ceilings - start
    log_b, log_mid = np.linspace(*_LOG_B, _LATTICE), np.log(grid.midpoints)
    b_of, mid_of = (index.ravel() for index in np.meshgrid(log_b, log_mid, indexing="ij"))
    g = rise(log_c, b_of, mid_of)
    # sse = rr - 2 h gr + h^2 gg for every height h = A - R0: shape (A, B, C_mid)
    gr, gg = (residual @ g).reshape(_LATTICE, -1), np.einsum("nk,nk->k", g, g).reshape(_LATTICE, -1)
    table = residual @ residual - 2 * height[:, None, None] * gr + height[:, None, None] ** 2 * gg
    least, at_b = _lowest(table)
    # rounded, so that equal cells stay in the order in which the paper's loops meet them: the lowest A first
    finalists = np.argsort(np.round(least / max(least.max(), 1e-300), 12), axis=None, kind="stable")[:_FINALISTS]
    a_at, mid_at = np.unravel_index(finalists, least.shape)
    step = log_b[1] - log_b[0]
    exponent, sse = _finished(log_c, residual, height[a_at], log_mid[mid_at], log_b[at_b[a_at, mid_at]], step)
    order = np.argsort(finalists)
    won = int(order[np.flatnonzero(sse[order] <= sse.min() * (1 + _TIE))[0]])
    ceiling, middle = grid.ceilings[a_at[won]], grid.midpoints[mid_at[won]]
    B = 1.0 if ceiling == start else float(np.exp(exponent[won]))  # a flat curve leaves B where `curve_fit` begins
    return float(ceiling), B, float(middle), float(sse[won])


def _lowest(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """(least, where) over B for every (A, C_mid); the least is that of a parabola through three lattice values."""
    at = np.clip(table.argmin(axis=1), 1, table.shape[1] - 2)
    before, here, after = (np.take_along_axis(table, at[:, None, :] + by, axis=1)[:, 0] for by in (-1, 0, 1))
    slope, bend = (after - before) / 2, np.maximum(after - 2 * here + before, 1e-300)
    return np.where(np.abs(slope) <= bend, here - slope**2 / (2 * bend), np.minimum(before, after)), at


def _finished(
    log_c: FloatArray, residual: FloatArray, height: FloatArray, log_mid: FloatArray, centre: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Golden-section search of ln B around each lattice minimum; every array has shape (K,)."""

    def sse(log_b: FloatArray) -> FloatArray:
        return np.asarray(np.square(residual[:, None] - height * rise(log_c, log_b, log_mid)).sum(axis=0))

    log_b = golden(lambda left, right: sse(left) < sse(right), centre, step, _ROUNDS)
    return log_b, sse(log_b)
