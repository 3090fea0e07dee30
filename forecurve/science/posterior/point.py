"""The single best curve: least squares by variable projection, converged.

R0 and A are solved in closed form at every (ln B, ln C_mid), which leaves a well-conditioned 2-D search: a coarse
lattice, then Levenberg-Marquardt on the projected residuals (Kaufman's Jacobian) from its best few nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..arrays import FloatArray
from ..checks import check_kind, level_of
from ..compiled import compiled
from ..curves.curve import Curve
from .kernels import HUGE
from .linear import AT_NODE, best_at_node, value_at_node
from .point_rows import APART, ITERATIONS, STARTS, TINY, Data, search_rows
from .sigmoid import log_compute

_ROWS, _COLUMNS = 24, 32
_LOG_B = (float(np.log(0.02)), float(np.log(50.0)))
_MID_REACH = 7.0  # ln C_mid up to e^7 beyond the data on both sides
_NEAR_TOP = 0.9
_PATIENCE = 6  # trials in a row that bring next to nothing


@dataclass(frozen=True)
class PointFit:
    """The curve with the least sum of squared residuals, 0 <= R0 <= A <= 1 in the scale of `bounds`."""

    A: float
    B: float
    C_mid: float
    R0: float
    sse: float


def least_squares(curve: Curve, R0: float | None = None) -> PointFit:
    """Fit A, B, C_mid and R0 by unweighted least squares.

    Args:
        curve: evaluations; a point at compute 0 is one more residual for R0.
        R0: fix the start instead of fitting it.

    Raises:
        CurveError: an R0 outside the range of rewards.

    >>> compute = [1.0, 2.0, 4.0, 8.0, 16.0]
    >>> exact = [0.2 + 0.4 / (1 + (3.0 / c) ** 1.5) for c in compute]
    >>> best = least_squares(Curve(compute, exact))
    >>> f"{best.A:.4f} {best.B:.4f} {best.C_mid:.4f} {best.R0:.4f}"
    '0.6000 1.5000 3.0000 0.2000'
    """
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    low, width = curve.bounds[0], curve.width
    start = np.nan if R0 is None else (level_of("R0", R0, curve.bounds) - low) / width
    found = search(log_compute(curve.compute), (curve.reward - low) / width, start)
    return PointFit(
        A=float(low + width * found[1]),
        B=float(np.exp(found[2])),
        C_mid=float(np.exp(found[3])),
        R0=float(low + width * found[0]),
        sse=float(found[4]) * width**2,
    )


def search(log_c: FloatArray, y: FloatArray, start: float = np.nan) -> FloatArray:
    """The least squares' (R0, A, ln B, ln C_mid, sum of squares), and J'J of (ln B, ln C_mid) there: shape (8,).

    Args:
        log_c: ln C, increasing, -inf where the curve has not begun; shape (N,).
        y: rewards in [0, 1].
        start: R0 where it is fixed, else NaN.
    """
    seen = log_c[np.isfinite(log_c)]
    rows = np.linspace(*_LOG_B, _ROWS)
    columns = np.linspace(seen[0] - _MID_REACH, seen[-1] + _MID_REACH, _COLUMNS)
    found = np.zeros(8)
    data = Data(log_c, y, len(log_c) - len(seen), start)
    compiled(_search_loop, search_rows, *_PARTS)(data, rows, columns, found)
    return found


class _Linear(NamedTuple):
    """R0 and A at one node, and whether each is free to move there."""

    R0: float
    A: float
    free_start: bool
    free_top: bool


def _search_loop(data: Data, rows: Any, columns: Any, found: Any) -> None:
    """Fills found, see `search`."""
    sse = _lattice_squares(data, rows, columns)
    found[4] = np.inf
    chosen = np.full((STARTS, 2), np.inf)
    for s in range(STARTS):
        least = np.inf
        for i in range(len(rows)):
            for j in range(len(columns)):
                apart = True
                for other in range(s):
                    near = abs(rows[i] - chosen[other, 0]) < APART and abs(columns[j] - chosen[other, 1]) < APART
                    apart = apart and not near
                if apart and sse[i, j] < least:
                    least = sse[i, j]
                    chosen[s, 0], chosen[s, 1] = rows[i], columns[j]
        if least < np.inf:
            _descend(data, False, chosen[s, 0], chosen[s, 1], found)
    if found[1] > _NEAR_TOP:  # where A meets 1 the projected residuals have a kink that stops the descent
        _descend(data, True, found[2], found[3], found)


def _lattice_squares(data: Data, rows: Any, columns: Any) -> Any:
    """The sum of squares at every node; the exponentials of a row are shared."""
    log_c, y, first, start = data
    size = len(y)
    oy, yy = y.sum(), (y * y).sum()
    centre = (log_c[first] + log_c[size - 1]) / 2.0
    sse = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        b = np.exp(rows[i])
        factors = np.empty(len(columns))
        for j in range(len(columns)):
            factors[j] = min(max(np.exp(b * (columns[j] - centre)), 1.0 / HUGE), HUGE)
        gg, g1, gy = np.zeros(len(columns)), np.zeros(len(columns)), np.zeros(len(columns))
        for t in range(first, size):
            rate = min(max(np.exp(-b * (log_c[t] - centre)), 1.0 / HUGE), HUGE)
            for j in range(len(columns)):  # innermost, as the processor takes several columns at once
                g = 1.0 / (1.0 + rate * factors[j])
                gg[j] += g * g
                g1[j] += g
                gy[j] += g * y[t]
        for j in range(len(columns)):
            h00, h01, c0 = max(size - 2.0 * g1[j] + gg[j], 0.0), g1[j] - gg[j], oy - gy[j]
            best = _linear_part(h00, h01, gg[j], c0, gy[j], start, False)
            sse[i, j] = value_at_node(h00, h01, gg[j], c0, gy[j], yy, best.R0, best.A)
    return sse


def _linear_part(h00: Any, h01: Any, h11: Any, c0: Any, c1: Any, start: Any, at_top: bool) -> _Linear:
    """The best R0 and A at one node, A at 1 where it is held `at_top`."""
    if at_top:
        free = (c0 - h01) / max(h00, TINY)
        R0 = min(max(free, 0.0), 1.0) if np.isnan(start) else start
        return _Linear(R0, 1.0, np.isnan(start) and 0.0 < free < 1.0, False)
    if np.isnan(start):
        R0, A, free_start, free_top = best_at_node(h00, h01, h11, c0, c1)
        return _Linear(R0, A, free_start, free_top)
    free = (c1 - h01 * start) / max(h11, TINY)
    return _Linear(start, min(max(free, start), 1.0), False, start < free < 1.0)


def _descend(data: Data, at_top: bool, u: Any, m: Any, found: Any) -> None:
    """Levenberg-Marquardt from (ln B, ln C_mid) = (u, m); `found` is replaced where this ends lower."""
    log_c, y, first, start = data
    size, oy = len(y), y.sum()
    g = np.zeros(size)
    damping, best, quiet = 1e-3, np.inf, 0
    trial_u, trial_m = u, m
    normal = np.zeros(5)
    for _ in range(ITERATIONS):
        b = np.exp(trial_u)
        gg, g1, gy = 0.0, 0.0, 0.0
        for t in range(first, size):
            g[t] = 1.0 / (1.0 + np.exp(min(max(b * (trial_m - log_c[t]), -700.0), 700.0)))
            gg += g[t] * g[t]
            g1 += g[t]
            gy += g[t] * y[t]
        h00 = max(size - 2.0 * g1 + gg, 0.0)
        linear = _linear_part(h00, g1 - gg, gg, oy - gy, gy, start, at_top)
        value = 0.0
        for t in range(size):
            value += (y[t] - linear.R0 - (linear.A - linear.R0) * g[t]) ** 2
        if value < best:
            quiet = quiet + 1 if best - value <= 1e-13 * best else 0
            best, u, m = value, trial_u, trial_m
            damping = max(damping / 8.0, 1e-12)
            _normal_equations(data, g, b, m, linear, normal)
            if best < found[4]:
                found[0], found[1], found[2], found[3], found[4] = linear.R0, linear.A, u, m, best
                found[5], found[6], found[7] = normal[0], normal[1], normal[2]
        else:
            damping *= 8.0
            quiet += 1
        j00, j01, j11, r0, r1 = normal
        a00, a11 = j00 + damping * max(j00, 1e-14), j11 + damping * max(j11, 1e-14)
        down = max(a00 * a11 - j01 * j01, 1e-300)
        step_u, step_m = (a11 * r0 - j01 * r1) / down, (a00 * r1 - j01 * r0) / down
        if quiet >= _PATIENCE or abs(step_u) + abs(step_m) < 1e-11:
            break
        trial_u, trial_m = u + min(max(step_u, -2.0), 2.0), m + min(max(step_m, -2.0), 2.0)


def _normal_equations(data: Data, g: Any, b: Any, m: Any, linear: _Linear, normal: Any) -> None:
    """J'J (three numbers) and J'r (two) of (ln B, ln C_mid), the free ones of R0 and A projected out of J."""
    log_c, y, first, _ = data
    R0, A, free_start, free_top = linear
    size = len(y)
    on_start, on_top = (1.0 if free_start else 0.0), (1.0 if free_top else 0.0)
    p00, p01, p11, q00, q01, q10, q11 = TINY, 0.0, TINY, 0.0, 0.0, 0.0, 0.0
    for t in range(first, size):
        slope = (A - R0) * g[t] * (1.0 - g[t]) * b
        db, dm = slope * (log_c[t] - m), -slope
        e0, e1 = on_start * (1.0 - g[t]), on_top * g[t]
        p00 += e0 * e0
        p01 += e0 * e1
        p11 += e1 * e1
        q00 += e0 * db
        q01 += e0 * dm
        q10 += e1 * db
        q11 += e1 * dm
    p00 += first * on_start  # what has not begun has g = 0 and moves with R0 alone
    inner = max(p00 * p11 - p01 * p01, TINY * p00 * p11)
    b0, b1 = (p11 * q00 - p01 * q10) / inner, (p00 * q10 - p01 * q00) / inner
    m0, m1 = (p11 * q01 - p01 * q11) / inner, (p00 * q11 - p01 * q01) / inner
    normal[:] = 0.0
    for t in range(size):
        e0, e1 = on_start * (1.0 - g[t]), on_top * g[t]
        slope = (A - R0) * g[t] * (1.0 - g[t]) * b
        jb = (slope * (log_c[t] - m) if t >= first else 0.0) - e0 * b0 - e1 * b1
        jm = -slope - e0 * m0 - e1 * m1
        residual = y[t] - R0 - (A - R0) * g[t]
        normal[0] += jb * jb
        normal[1] += jb * jm
        normal[2] += jm * jm
        normal[3] += jb * residual
        normal[4] += jm * residual


# what the loop calls, in the order in which it is to be compiled
_PARTS = (*AT_NODE, _linear_part, _normal_equations, _lattice_squares, _descend)
