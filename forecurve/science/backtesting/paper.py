"""The procedure of the ScaleRL paper (arXiv 2510.13786, appendix A.5), to compare with.

A grid over (A, C_mid); in every cell B alone is fitted by least squares, R0 is a fixed input; the cell with the least
sum of squared residuals wins. No weights, no noise model, no interval.

`exact=True` is the paper to the letter: one `scipy.optimize.curve_fit` with default initialisation in each of the 7,100
cells, more than a second a curve. The default finds the same winner in a few hundredths of a second: given C_mid and B
the residuals are quadratic in A, so that every cell is tried on a lattice of B at once, the least sum of squares of
those that may win is found by golden section, and `curve_fit` is called in the few that can win by that. Where cells
are as good as equal (a curve that does not rise yet), the first wins that the loops over the grid meet and in which
`curve_fit` gets there: mostly the lowest A. Where it finds no exponent wherever the curve could be (one that stays at
R0, on a grid without that ceiling, asks for ever steeper steps) the procedure has no answer, and says so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .. import errors
from ..arrays import FloatArray, IntArray
from ..checks import bounds_of, check_compute, check_kind, level_of
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
_FIRST = 150  # cells that are finished first, to know what the others have to reach
_AT_ONCE = 400_000  # of cells x evaluations, for the sake of memory
_TIE = 1e-9  # of all squares: sums that differ by less are as good as equal, and the first cell keeps its place
_ROUNDS = 30  # of golden section: ln B to 1e-7
_PATIENCE = 300  # cells in which `curve_fit` gives up, a thousandth of a second each, before the fast search does


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

    Raises:
        CurveError: bounds that are no range, a start outside of it, or a last compute that no run can have.
    """
    bottom, top = bounds_of(bounds)
    start = level_of("start", start, (bottom, top))
    check_compute("last", last, errors.ComputeOrder, "give the compute of the run at full length")
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

    Raises:
        CurveError: an R0 outside the range of rewards, or `curve_fit` finds an exponent in none of the cells (without
            `exact`: gives up in 300 of those that could win).

    >>> compute = [500.0 * c for c in range(1, 33)]
    >>> exact = [0.2 + 0.4 / (1 + (2518.181818 / c) ** 1.5) for c in compute]
    >>> best = paper_fit(Curve(compute, exact), R0=0.2)
    >>> f"{best.A:.3f} {best.B:.2f} {best.C_mid:.0f}"
    '0.600 1.50 2518'
    """
    began = time.perf_counter()
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    cells = _moved(paper_grid(), curve) if grid is None else grid
    check_kind("grid", cells, PaperGrid, "pass paper_grid() or scaled_grid(...)", errors.CurveError)
    start = float(curve.reward[0]) if R0 is None else level_of("R0", R0, curve.bounds)
    search = _every_curve_fit if exact else _quick
    A, B, C_mid, sse = search(curve.compute, curve.reward, start, cells)
    if not np.isfinite(sse):
        raise _no_answer(cells)
    return PaperFit(A, B, C_mid, start, sse, curve.points, time.perf_counter() - began)


def _no_answer(grid: PaperGrid) -> errors.CurveError:
    way_out = "give a grid around the curve, as scaled_grid(R0, last) makes one"
    return errors.CurveError("grid", repr(grid), "curve_fit finds no exponent in the cells that could win", way_out)


def _moved(grid: PaperGrid, curve: Curve) -> PaperGrid:
    return PaperGrid(curve.bounds[0] + curve.width * grid.ceilings, grid.midpoints)


Winner = tuple[float, float, float, float]  # A, B, C_mid, sse
Letter = Callable[[int], tuple[float, float]]
"""(sum of squares, B) of a cell, by its number in the order of the loops, A outside."""


def _every_curve_fit(compute: FloatArray, reward: FloatArray, start: float, grid: PaperGrid) -> Winner:
    """The paper to the letter."""
    letter, slack = _letter(compute, reward, start, grid), _slack(reward - start)
    best: tuple[int, float, float] = (0, float("inf"), float("nan"))
    for cell in range(grid.cells):
        sse, B = letter(cell)
        if sse < best[1] - slack:
            best = (cell, sse, B)
    return _winner(grid, *best)


def _slack(residual: FloatArray) -> float:
    """By how much a sum of squares must be less to count: below is the rounding of equal curves."""
    return _TIE * float(residual @ residual)


def _winner(grid: PaperGrid, cell: int, sse: float, B: float) -> Winner:
    a_at, mid_at = divmod(cell, len(grid.midpoints))
    return float(grid.ceilings[a_at]), B, float(grid.midpoints[mid_at]), sse


def _letter(compute: FloatArray, reward: FloatArray, start: float, grid: PaperGrid) -> Letter:
    """`curve_fit` of B in one cell. Where it gives up (B is NaN), or ends at B <= 0, the cell is out of the race."""
    from scipy.optimize import curve_fit

    def letter(cell: int) -> tuple[float, float]:
        a_at, mid_at = divmod(cell, len(grid.midpoints))
        model = _cell(float(grid.ceilings[a_at]), float(grid.midpoints[mid_at]), start)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                (exponent,), _ = curve_fit(model, compute, reward)
            except RuntimeError:
                return float("inf"), float("nan")
            sse = float(np.square(reward - model(compute, exponent)).sum())
        return (sse if exponent > 0 else float("inf")), float(exponent)

    return letter


def _impatient(letter: Letter, grid: PaperGrid) -> Letter:
    """The same, cell by cell, until `curve_fit` has given up too often: each time is slow, and thousands may follow."""
    gave_up = 0

    def told(cell: int) -> tuple[float, float]:
        nonlocal gave_up
        sse, B = letter(cell)
        gave_up += bool(np.isnan(B))
        if gave_up > _PATIENCE:
            raise _no_answer(grid)
        return sse, B

    return told


def _cell(ceiling: float, middle: float, start: float) -> Callable[[FloatArray, float], FloatArray]:
    """The curve of one cell, with B alone free."""

    def model(compute: FloatArray, B: float) -> FloatArray:
        return start + (ceiling - start) / (1 + (middle / compute) ** B)

    return model


def _quick(compute: FloatArray, reward: FloatArray, start: float, grid: PaperGrid) -> Winner:
    """The same winner, with `curve_fit` only in the cells that can be it.

    No `curve_fit` gets below the least sum of squares of its cell. So cells are tried in the order of that, and those
    are left out in which it is no less than what was found.
    """
    log_c, residual, height = log_compute(compute), reward - start, grid.ceilings - start
    log_b, log_mid = np.linspace(*_LOG_B, _LATTICE), np.log(grid.midpoints)
    b_of, mid_of = (index.ravel() for index in np.meshgrid(log_b, log_mid, indexing="ij"))
    gr, gg = (sums.reshape(_LATTICE, -1) for sums in _sums(log_c, residual, b_of, mid_of))
    # sse = rr - 2 h gr + h^2 gg for every height h = A - R0: shape (A, B, C_mid)
    table = residual @ residual - 2 * height[:, None, None] * gr + height[:, None, None] ** 2 * gg
    found, floor, at_b = (array.ravel() for array in _lowest(table))
    step = log_b[1] - log_b[0]

    def finished(cells: IntArray) -> FloatArray:
        a_at, mid_at = np.divmod(cells, len(log_mid))
        parts = np.array_split(np.arange(len(cells)), len(cells) * len(compute) // _AT_ONCE + 1)
        columns = [(height[a_at[part]], log_mid[mid_at[part]], log_b[at_b[cells[part]]]) for part in parts]
        return np.concatenate([_finished(log_c, residual, *column, step) for column in columns])

    letter = lru_cache(maxsize=None)(_impatient(_letter(compute, reward, start, grid), grid))
    slack = _slack(residual)
    reach = float(finished(np.argsort(found, kind="stable")[:_FIRST]).min()) + slack
    while True:
        cells = np.flatnonzero(floor <= reach)
        best = _first_of(cells, finished(cells), letter, slack)
        if best[1] <= reach + slack or len(cells) == grid.cells:
            return _winner(grid, *best)
        # `curve_fit` got stuck in the best cells, others may do better; or gave up in all, which others may not
        reach = best[1] if np.isfinite(best[1]) else float(np.sort(floor)[min(4 * len(cells), grid.cells - 1)])


def _sums(
    log_c: FloatArray, residual: FloatArray, log_b: FloatArray, log_mid: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(residual . g, g . g) over all evaluations, at every (B, C_mid): each of shape (K,)."""
    gr, gg = np.zeros(len(log_b)), np.zeros(len(log_b))
    for part in np.array_split(np.arange(len(log_c)), len(log_c) * len(log_b) // _AT_ONCE + 1):
        g = rise(log_c[part], log_b, log_mid)
        gr += residual[part] @ g
        gg += np.einsum("nk,nk->k", g, g)
    return gr, gg


def _first_of(cells: IntArray, least: FloatArray, letter: Letter, slack: float) -> tuple[int, float, float]:
    """(cell, sum of squares, B) of the cell that wins the race, `least` being what each can reach.

    Of cells that are as good as equal the first wins that the loops meet.
    """
    best: tuple[int, float, float] = (0, float("inf"), float("nan"))
    ranked = np.argsort(np.floor(least / slack) if slack > 0 else least, kind="stable")
    for at in ranked:
        if least[at] >= best[1] - slack:
            return best
        sse, B = letter(int(cells[at]))
        if sse < best[1] - slack:
            best = (int(cells[at]), sse, B)
    return best


def _lowest(table: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """(found, floor, where) over B for every (A, C_mid): the least on the lattice, what there may be between its nodes.

    A parabola through the lowest of three evenly spaced values lies at most an eighth of their second difference below
    it; a sum of squares that bends more sharply is given four times that.
    """
    at = np.clip(table.argmin(axis=1), 1, table.shape[1] - 2)
    before, here, after = (np.take_along_axis(table, at[:, None, :] + by, axis=1)[:, 0] for by in (-1, 0, 1))
    lowest = np.minimum(np.minimum(before, after), here)
    return lowest, lowest - np.maximum(after - 2 * here + before, 0.0) / 2, at


def _finished(
    log_c: FloatArray, residual: FloatArray, height: FloatArray, log_mid: FloatArray, centre: FloatArray, step: float
) -> FloatArray:
    """The least sum of squares about each lattice minimum, by golden section of ln B; every array has shape (K,)."""

    def sse(log_b: FloatArray) -> FloatArray:
        return np.asarray(np.square(residual[:, None] - height * rise(log_c, log_b, log_mid)).sum(axis=0))

    return sse(golden(lambda left, right: sse(left) < sse(right), centre, step, _ROUNDS))
