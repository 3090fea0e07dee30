"""The search of `point` in numpy, where numba is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
from .linear import best_on_triangle, quadratic
from .sigmoid import rise

STARTS = 3
APART = 0.8  # starts are at least this far from one another in ln B or ln C_mid
ITERATIONS = 60
TINY = 1e-12


class Data(NamedTuple):
    """ln C and rewards, (N,); how many of the first lie where the curve has not begun; R0 where it is fixed, or NaN."""

    log_c: FloatArray
    y: FloatArray
    first: int
    start: float


def search_rows(data: Data, rows: Any, columns: Any, found: FloatArray) -> None:
    """Fills `found`, see `point.search`: the lattice at once, then all dampings of an iteration at once."""
    projection = _Projection(data.log_c, data.y, None if np.isnan(data.start) else data.start)
    nodes = np.stack(np.meshgrid(rows, columns, indexing="ij")).reshape(2, -1)
    ends = [_polish(projection, nodes[:, at]) for at in _spread_starts(nodes, projection.sse(nodes))]
    node, sse = min(ends, key=lambda end: end[1])
    R0, A = projection.solve(node[:, None])
    found[:5] = R0[0], A[0], *node, sse
    jacobian = _jacobian(projection, node)[1]
    found[5:] = (jacobian.T @ jacobian)[np.triu_indices(2)]


_STEP = 1e-6  # of the numerical derivative in ln B and ln C_mid
_DAMPING = np.array([0.0, 1e-4, 1e-2, 1.0, 100.0, 1e4])


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
            ceiling = (q.c1 - q.h01 * self.fixed_start) / np.maximum(q.h11, TINY)
            return np.full(ceiling.shape, self.fixed_start), np.clip(ceiling, self.fixed_start, 1.0)
        best = best_on_triangle(q)
        return best.R0, best.A

    def residuals(self, nodes: FloatArray) -> FloatArray:
        g = rise(self.log_c, nodes[0], nodes[1])
        start, ceiling = self._solve(g)
        return self.y[:, None] - (start + (ceiling - start) * g)

    def sse(self, nodes: FloatArray) -> FloatArray:
        residuals = self.residuals(nodes)
        return np.asarray(np.einsum("nk,nk->k", residuals, residuals))


def _spread_starts(nodes: FloatArray, sse: FloatArray) -> list[int]:
    """The best nodes that are not neighbours of one another."""
    chosen: list[int] = []
    for at in np.argsort(sse)[:200]:
        apart = all(np.abs(nodes[:, at] - nodes[:, other]).max() > APART for other in chosen)
        if apart:
            chosen.append(int(at))
        if len(chosen) == STARTS:
            break
    return chosen


def _polish(projection: _Projection, node: FloatArray) -> tuple[FloatArray, float]:
    """Levenberg-Marquardt in (ln B, ln C_mid)."""
    sse = float(projection.sse(node[:, None])[0])
    for _ in range(ITERATIONS):
        residual, jacobian = _jacobian(projection, node)
        gradient, hessian = jacobian.T @ residual, jacobian.T @ jacobian
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


def _jacobian(projection: _Projection, node: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residuals (N,) and their derivatives in ln B and ln C_mid (N, 2)."""
    shifts = _STEP * np.array([[0, 1, -1, 0, 0], [0, 0, 0, 1, -1]])
    near = projection.residuals(node[:, None] + shifts)
    return near[:, 0], np.stack([near[:, 1] - near[:, 2], near[:, 3] - near[:, 4]], axis=1) / (2 * _STEP)
