"""The single best curve: least squares by variable projection, converged.

R0 and A are solved in closed form at every (ln B, ln C_mid), which leaves a well-conditioned 2-D search: a coarse grid,
then Levenberg-Marquardt on the projected residuals from its best few nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray
from .curve import Curve
from .linear import Quadratic, best_on_triangle, quadratic
from .sigmoid import log_compute, rise

_STARTS = 3
_ITERATIONS = 60
_STEP = 1e-6  # of the numerical derivative in ln B and ln C_mid
_DAMPING = np.array([0.0, 1e-4, 1e-2, 1.0, 100.0, 1e4])
_LOG_B = (float(np.log(0.02)), float(np.log(50.0)))
_MID_REACH = 7.0  # ln C_mid up to e^7 beyond the data on both sides


@dataclass(frozen=True)
class PointFit:
    """The curve with the least sum of squared residuals, 0 <= R0 <= A <= 1 in the scale of `bounds`."""

    A: float
    B: float
    C_mid: float
    R0: float
    sse: float
    points: int

    @property
    def rms(self) -> float:
        """Root of the mean squared residual, in the reward's own scale."""
        return float(np.sqrt(self.sse / self.points))


def least_squares(curve: Curve, R0: float | None = None) -> PointFit:
    """Fit A, B, C_mid and R0 by unweighted least squares.

    Args:
        curve: evaluations; a point at compute 0 is one more residual for R0.
        R0: fix the start instead of fitting it.

    >>> compute = [1.0, 2.0, 4.0, 8.0, 16.0]
    >>> exact = [0.2 + 0.4 / (1 + (3.0 / c) ** 1.5) for c in compute]
    >>> best = least_squares(Curve(compute, exact))
    >>> f"{best.A:.4f} {best.B:.4f} {best.C_mid:.4f} {best.R0:.4f}"
    '0.6000 1.5000 3.0000 0.2000'
    """
    low, width = curve.bounds[0], curve.bounds[1] - curve.bounds[0]
    projection = _Projection(
        log_compute(curve.compute), (curve.reward - low) / width, None if R0 is None else (R0 - low) / width
    )
    positive = curve.compute[curve.compute > 0]
    middle = np.linspace(np.log(positive[0]) - _MID_REACH, np.log(positive[-1]) + _MID_REACH, 60)
    nodes = np.stack(np.meshgrid(np.linspace(*_LOG_B, 36), middle, indexing="ij")).reshape(2, -1)
    first = projection.sse(nodes)
    ends = [_polish(projection, nodes[:, at]) for at in _spread_starts(nodes, first)]
    node, sse = min(ends, key=lambda end: end[1])
    start, ceiling = projection.solve(node[:, None])
    return PointFit(
        A=float(low + width * ceiling[0]),
        B=float(np.exp(node[0])),
        C_mid=float(np.exp(node[1])),
        R0=float(low + width * start[0]),
        sse=sse * width**2,
        points=curve.points,
    )


@dataclass(frozen=True, eq=False)
class _Projection:
    """Residuals with (R0, A) solved out. Nodes have shape (2, K)."""

    log_c: FloatArray
    y: FloatArray
    fixed_start: float | None

    def solve(self, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._solve(rise(self.log_c, nodes[0], nodes[1]))

    def _solve(self, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        y = self.y
        q = quadratic(
            gg=np.einsum("nk,nk->k", g, g),
            g1=g.sum(axis=0),
            gy=y @ g,
            one=np.full(g.shape[1], float(len(y))),
            oy=np.full(g.shape[1], y.sum()),
            yy=np.array([y @ y]),
        )
        if self.fixed_start is not None:
            return _with_fixed_start(q, self.fixed_start)
        best = best_on_triangle(q)
        return best.R0, best.A

    def residuals(self, nodes: FloatArray) -> FloatArray:
        g = rise(self.log_c, nodes[0], nodes[1])
        start, ceiling = self._solve(g)
        return self.y[:, None] - (start + (ceiling - start) * g)

    def sse(self, nodes: FloatArray) -> FloatArray:
        residuals = self.residuals(nodes)
        return np.asarray(np.einsum("nk,nk->k", residuals, residuals))


def _with_fixed_start(q: Quadratic, start: float) -> tuple[FloatArray, FloatArray]:
    ceiling = (q.c1 - q.h01 * start) / np.maximum(q.h11, 1e-12)
    return np.full(ceiling.shape, start), np.clip(ceiling, start, 1.0)


def _spread_starts(nodes: FloatArray, sse: FloatArray) -> list[int]:
    """The best nodes that are not neighbours of one another."""
    chosen: list[int] = []
    for at in np.argsort(sse)[:200]:
        apart = all(np.abs(nodes[:, at] - nodes[:, other]).max() > 0.8 for other in chosen)
        if apart:
            chosen.append(int(at))
        if len(chosen) == _STARTS:
            break
    return chosen


def _polish(projection: _Projection, node: FloatArray) -> tuple[FloatArray, float]:
    """Levenberg-Marquardt in (ln B, ln C_mid), all dampings of an iteration tried at once."""
    shifts = _STEP * np.array([[0, 1, -1, 0, 0], [0, 0, 0, 1, -1]])
    sse = float(projection.sse(node[:, None])[0])
    for _ in range(_ITERATIONS):
        near = projection.residuals(node[:, None] + shifts)
        jacobian = np.stack([near[:, 1] - near[:, 2], near[:, 3] - near[:, 4]], axis=1) / (2 * _STEP)
        gradient, hessian = jacobian.T @ near[:, 0], jacobian.T @ jacobian
        ridge = np.diag(np.maximum(np.diag(hessian), 1e-14))
        steps = np.stack([np.linalg.solve(hessian + (damping + 1e-12) * ridge, gradient) for damping in _DAMPING])
        trials = node[:, None] - np.clip(steps, -2.0, 2.0).T
        values = projection.sse(trials)
        best = int(values.argmin())
        if not values[best] < sse:
            break
        moved = np.abs(trials[:, best] - node).max()
        node, sse = trials[:, best], float(values[best])
        if moved < 1e-11:
            break
    return node, sse
