"""The best sigmoid against the best sigmoid + one further term, under the same noise hypotheses.

Given (ln B, ln C_mid) and a noise hypothesis the extended curve R0 (1 - g) + A g + delta c is linear in (R0, A, delta)
for any column c. With delta at its best for every (R0, A), delta = c' M^-1 (y - R0 (1 - g) - A g) / c' M^-1 c, the sum
of squares is again a quadratic form in (R0, A): that of the sigmoid alone, less what c explains of 1 - g, of g and of
y. Both forms are minimised on the triangle 0 <= R0 <= A <= 1. The bounds are part of the comparison: where the
evaluations hardly tell R0 (none at compute 0, g near 1 at the first) or A, free least squares gives numbers of any
size, which describe nothing and whose sum of squares is lost to rounding. The noise scale is integrated as in the
posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from .arrays import FloatArray, IntArray
from .drawing import Posterior
from .linear import Quadratic, best_on_triangle
from .posterior import inner_products
from .problem import Problem
from .sigmoid import rise

_OWN_NODES = 40  # of the posterior's own; the lattice over the whole box stands for curves that it rules out
_LATTICE = (10, 14)  # in ln B and ln C_mid
_PROMISING = 4.0  # twice the log likelihood ratio from which an extension's own best node is looked for
_ROUNDS = 2
_LOCAL = 7  # nodes a side
_FORGOTTEN = 1e4  # ticks over a restart, after which nothing of the wandering part is left
_HOPELESS = 16.0  # an early regime whose best likelihood lies exp(-16) below the best of all is left out


@dataclass(frozen=True, eq=False)
class Extended:
    """The best sigmoid + delta x column.

    Attributes:
        ratio: twice the log of the likelihood over that of the best sigmoid alone.
        delta: the term's size, in the scale where rewards lie in [0, 1].
        values: the extended curve at the evaluations, (N,).
        height, node: of its sigmoid: A - R0 and (ln B, ln C_mid).
        column: which one.
    """

    ratio: float
    delta: float
    values: FloatArray
    height: float
    node: FloatArray
    column: int


class Comparison:
    """Least squares in (R0, A) at every node and noise hypothesis, ready to be extended.

    Args:
        problem: the scaled curve.
        nodes: (ln B, ln C_mid), shape (2, K).
        cell: spacing of the nodes that an extension may need, (2,).
        top: log likelihood of the best sigmoid; that of the best node when left out.
    """

    def __init__(self, problem: Problem, nodes: FloatArray, cell: FloatArray, top: float | None = None):
        self.problem = problem
        self.nodes = nodes
        self.cell = cell
        self.g = rise(problem.log_c, nodes[0], nodes[1])
        self.q = inner_products(problem, self.g)
        self.R0, self.A, self.least = best_on_triangle(self.q)
        logdet = np.array([whitener.logdet for whitener in problem.whiteners])
        self._constant = (problem.setting.log_weights - logdet / 2)[:, None]
        self.likelihood = self._log_likelihood(self.least)  # (H, K)
        self.top = float(self.likelihood.max()) if top is None else top
        self._alive = self._hopeful()

    @classmethod
    def of(cls, problem: Problem, found: Posterior) -> Comparison:
        """On nodes of the posterior and a coarse lattice over the whole box."""
        box = problem.setting.box
        axes = [np.linspace(*ends, size) for ends, size in zip((box.log_b, box.log_mid), _LATTICE, strict=True)]
        lattice = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(2, -1)
        own = found.nodes[:, :: max(1, found.nodes.shape[1] // _OWN_NODES)]
        top = np.stack([np.log(np.median(found.B)), np.log(np.median(found.C_mid))])[:, None]
        cell = np.array([axis[1] - axis[0] for axis in axes])
        return cls(problem, np.concatenate([own, top, lattice], axis=1), cell)

    @property
    def best(self) -> tuple[int, int]:
        """(hypothesis, node) of the best sigmoid."""
        hypothesis, node = np.unravel_index(int(self.likelihood.argmax()), self.likelihood.shape)
        return int(hypothesis), int(node)

    def residual(self) -> FloatArray:
        """Of the best sigmoid, shape (N,)."""
        at = self.best
        R0, A = self.R0[at], self.A[at]
        return np.asarray(self.problem.reward - (R0 + (A - R0) * self.g[:, at[1]]))

    def extend(self, columns: FloatArray, signs: FloatArray) -> Extended:
        """The best extension by one of the columns, its nodes refined where it promises anything.

        Args:
            columns: (N, T).
            signs: of delta for each column, (T,); 0 allows both.
        """
        best, cell = self._extend(columns, signs), self.cell
        for _ in range(_ROUNDS if best.ratio > _PROMISING else 0):
            steps = [np.linspace(-size, size, _LOCAL) for size in cell]
            local = best.node[:, None] + np.stack(np.meshgrid(*steps, indexing="ij")).reshape(2, -1)
            finer = Comparison(self.problem, local, cell, self.top)._extend(columns, signs)
            best, cell = max(best, finer, key=lambda found: found.ratio), cell * 2 / (_LOCAL - 1)
        return best

    def _extend(self, columns: FloatArray, signs: FloatArray) -> Extended:
        y, g, alive = self.problem.reward, self.g, self._alive
        unit = self.problem.setting.unit_variance
        rows = np.stack([self.problem.whiteners[at].solve(columns).T for at in alive]) / unit  # (H, T, N)
        on_g = rows @ g  # (H, T, K)
        on_start = rows.sum(axis=2)[:, :, None] - on_g
        own, on_y = np.einsum("htn,nt->ht", rows, columns)[:, :, None], (rows @ y)[:, :, None]
        R0, A, least = best_on_triangle(_without(self.q.take((alive, None)), on_start, on_g, on_y, own))
        delta = (on_y - on_start * R0 - on_g * A) / own
        allowed = (delta * signs[:, None] > 0) | (signs[:, None] == 0)  # the other way the best delta is 0
        likelihood = self._log_likelihood(np.where(allowed, least, self.least[alive, None]), alive)
        h, t, k = (int(at) for at in np.unravel_index(int(likelihood.argmax()), likelihood.shape))
        step, start, ceiling = float(delta[h, t, k]), float(R0[h, t, k]), float(A[h, t, k])
        if not allowed[h, t, k]:
            step, start, ceiling = 0.0, float(self.R0[alive[h], k]), float(self.A[alive[h], k])
        return Extended(
            ratio=2 * float(likelihood[h, t, k] - self.top),
            delta=step,
            values=start + (ceiling - start) * g[:, k] + step * columns[:, t],
            height=ceiling - start,
            node=self.nodes[:, k],
            column=t,
        )

    def whitened_residual(self) -> FloatArray:
        """Of the best sigmoid under its own noise hypothesis: independent with one variance if it holds, (N,)."""
        hypothesis = self.best[0]
        eta, rho = (float(values[hypothesis]) for values in self.problem.setting.wandering)
        shares, clock = self.problem.shares[hypothesis], self._clock
        covariance = np.diag(shares) + (eta * rho ** np.abs(clock[:, None] - clock) if eta else 0.0)
        return np.asarray(solve_triangular(np.linalg.cholesky(covariance), self.residual(), lower=True))

    def explained_correlation(self) -> float:
        """Correlation of neighbouring evaluations that the best noise hypothesis itself implies."""
        eta, rho = (float(values[self.best[0]]) for values in self.problem.setting.wandering)
        return eta * rho / (1 + eta)

    def excess_noise(self) -> float:
        """Standard deviation of the noise that the fit assumes over that of the best sigmoid's residuals, at least 1.

        Far above 1 only where the noise's prior says more than the residuals: few of them, or next to none.
        """
        seen = float(self.least[self.best]) / 2
        return float(np.sqrt(1 + self.problem.setting.rate / seen)) if seen > 0 else np.inf

    @cached_property
    def _clock(self) -> FloatArray:
        return np.cumsum(np.minimum(self.problem.ticks, _FORGOTTEN))

    def _hopeful(self) -> IntArray:
        """Hypotheses that are worth extending: all without an early regime, which a further term may make the best."""
        best = self.likelihood.max(axis=1)
        early = np.array([hypothesis.early > 0 for hypothesis in self.problem.setting.hypotheses])
        return np.flatnonzero(~early | (best > best.max() - _HOPELESS))

    def _log_likelihood(self, least: FloatArray, alive: IntArray | None = None) -> FloatArray:
        constant = self._constant if alive is None else self._constant[alive, None]
        setting = self.problem.setting
        return np.asarray(constant - setting.nu * np.log(setting.rate + least / 2))


def _without(q: Quadratic, on_start: FloatArray, on_g: FloatArray, on_y: FloatArray, own: FloatArray) -> Quadratic:
    """The quadratic form once a column is at its best for every (R0, A).

    Args:
        q: of the sigmoid alone.
        on_start, on_g, on_y: the column's inner products with 1 - g, g and y.
        own: with itself.
    """
    return Quadratic(
        h00=np.maximum(q.h00 - on_start**2 / own, 0.0),
        h01=q.h01 - on_start * on_g / own,
        h11=np.maximum(q.h11 - on_g**2 / own, 0.0),
        c0=q.c0 - on_start * on_y / own,
        c1=q.c1 - on_g * on_y / own,
        yy=q.yy - on_y**2 / own,
    )


def steps(size: int, starts: IntArray) -> FloatArray:
    """Columns that are 0 before an evaluation and 1 from it on, (N, T)."""
    return np.asarray(np.arange(size)[:, None] >= starts, dtype=np.float64)


def ramps(compute: FloatArray, starts: IntArray) -> FloatArray:
    """Columns that are 0 up to the evaluation before `starts` and rise in compute to 1 at the last, (N, T)."""
    origin = compute[starts - 1]
    return np.asarray(np.maximum(compute[:, None] - origin, 0.0) / (compute[-1] - origin))
