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

import numpy as np

from ..arrays import FloatArray, IntArray
from ..posterior.drawing import Posterior
from ..posterior.integral import forms_at
from ..posterior.linear import Quadratic, best_on_triangle
from ..posterior.problem import Problem
from ..posterior.sigmoid import rise
from .climbing import climb
from .extending import Alone, Columns, contiguous, likeliest, on_every

_OWN_NODES = 40  # of the posterior's own; the lattice over the whole box stands for curves that it rules out
_LATTICE = (10, 14)  # in ln B and ln C_mid
_PROMISING = 4.0  # twice the log likelihood ratio from which an extension's own best node is looked for
_ROUNDS = 2
_LOCAL = 7  # nodes a side
_LOST = 5.0  # degrees of freedom, on average of both sides: curve and term describe so many evaluations by themselves
_MANY = 50.0  # evaluations, of which the thresholds speak: they were set by runs of 25 to 100
_HOPELESS = 16.0  # an early regime whose best likelihood lies exp(-16) below the best of all is left out


@dataclass(frozen=True, eq=False)
class Extended:
    """The best sigmoid + delta x column.

    Attributes:
        ratio: twice the log of the likelihood over that of the best sigmoid alone, by the size of the sample.
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


def _ratio(found: Extended) -> float:
    return found.ratio


@dataclass(frozen=True, eq=False)
class _Terms:
    """Columns, each of which may be the further term.

    Attributes:
        columns: (N, T).
        signs: of delta for each, (T,); 0 allows both.
        alive: hypotheses that are asked, (H,).
        top: log likelihood of the best sigmoid alone.
        rows: M^-1 columns under each hypothesis, (H, T, N).
        own, total, on_y: the columns' inner products with themselves, 1 and y, (H, T).
    """

    columns: FloatArray
    signs: FloatArray
    alive: IntArray
    top: float
    rows: FloatArray
    own: FloatArray
    total: FloatArray
    on_y: FloatArray

    @classmethod
    def of(cls, problem: Problem, columns: FloatArray, signs: FloatArray, alive: IntArray, top: float) -> _Terms:
        """Laid out under the noise of the problem."""
        what = "terms", columns.tobytes(), alive.tobytes()
        return cls(columns, signs, alive, top, *problem.once(what, lambda: _products(problem, columns, alive)))


def _products(problem: Problem, columns: FloatArray, alive: IntArray) -> tuple[FloatArray, ...]:
    """`rows`, `own`, `total` and `on_y` of `_Terms`."""
    rows = contiguous(np.stack([problem.whiteners[at].solve(columns).T for at in alive]))
    rows /= problem.setting.unit_variance
    return rows, np.einsum("htn,nt->ht", rows, columns), rows.sum(axis=2), rows @ problem.reward


class NullModel:
    """The sigmoid alone: least squares in (R0, A) at every node and noise hypothesis, ready to be extended.

    Attributes:
        top, top_whole: log likelihood of the best sigmoid, and of the best without an early regime.
        by_size: factor that makes twice a log likelihood ratio what it would be of 50 evaluations (Bartlett), at most
            1. Of few, whose noise is not known, a curve with a further term explains most in any case.

    Args:
        problem: the scaled curve.
        nodes: (ln B, ln C_mid), shape (2, K).
        cell: spacing of the nodes that an extension may need, (2,).
    """

    def __init__(self, problem: Problem, nodes: FloatArray, cell: FloatArray):
        self.problem = problem
        self.nodes = nodes
        self.cell = cell
        self.g = rise(problem.log_c, nodes[0], nodes[1])
        self.q = forms_at(problem, nodes)
        self.R0, self.A, self.least = best_on_triangle(self.q)
        self._constant = (problem.setting.log_weights - problem.filtered.sums[:, 3] / 2)[:, None]
        self.likelihood = self._log_likelihood(self.least)  # (H, K)
        self.top = float(self.likelihood.max())
        early = np.array([hypothesis.early > 0 for hypothesis in problem.setting.hypotheses])
        best = self.likelihood.max(axis=1)
        self._whole = np.flatnonzero(~early)
        # all without an early regime, which a further term may make the best, and early ones that are not hopeless
        self._alive = np.flatnonzero(~early | (best > best.max() - _HOPELESS))
        self.by_size = min(1.0, (1 - _LOST / (2 * float(problem.setting.nu))) / (1 - _LOST / _MANY))
        self.top_whole = float(best[self._whole].max())

    @classmethod
    def of(cls, problem: Problem, found: Posterior) -> NullModel:
        """On nodes of the posterior, a coarse lattice over the whole box, and the best of all with and without an early
        regime."""
        box = problem.setting.box
        axes = [np.linspace(*ends, size) for ends, size in zip((box.log_b, box.log_mid), _LATTICE, strict=True)]
        lattice = np.stack(np.meshgrid(*axes, indexing="ij")).reshape(2, -1)
        own = found.nodes[:, :: max(1, found.nodes.shape[1] // _OWN_NODES)]
        top = np.stack([np.log(np.median(found.B)), np.log(np.median(found.C_mid))])[:, None]
        cell = np.array([axis[1] - axis[0] for axis in axes])
        nodes = np.concatenate([own, top, lattice], axis=1)
        near = cls(problem, nodes, cell)
        starts = {near.best[1]: near._alive, near._best_of(near._whole): near._whole}
        best = [climb(problem, nodes[:, start], hypotheses) for start, hypotheses in starts.items()]
        return cls(problem, np.concatenate([nodes, np.stack(best, axis=1)], axis=1), cell)

    def _best_of(self, hypotheses: IntArray) -> int:
        """The node that is likeliest under one of these."""
        return int(self.likelihood[hypotheses].max(axis=0).argmax())

    @property
    def early(self) -> int:
        """Evaluations of the best sigmoid's early regime."""
        return self.problem.setting.hypotheses[self.best[0]].early

    @property
    def cut_ratio(self) -> float:
        """As `Extended.ratio`, of the best sigmoid over the best without an early regime."""
        return self.by_size * 2 * (self.top - self.top_whole)

    @property
    def best(self) -> tuple[int, int]:
        """(hypothesis, node) of the best sigmoid."""
        hypothesis, node = np.unravel_index(int(self.likelihood.argmax()), self.likelihood.shape)
        return int(hypothesis), int(node)

    def extend(
        self, columns: FloatArray, signs: FloatArray, whole: bool = False, near: Extended | None = None
    ) -> Extended:
        """The best extension by one of the columns, its nodes refined where it promises anything.

        Args:
            columns: (N, T).
            signs: of delta for each column, (T,); 0 allows both.
            whole: without an early regime on either side.
            near: of other columns; this one's nodes are looked for about its node too.
        """
        alive, top = (self._whole, self.top_whole) if whole else (self._alive, self.top)
        terms = _Terms.of(self.problem, columns, signs, alive, top)
        best, cell = self._extend(terms), self.cell
        if near is not None:
            best = max(best, self._about(near.node, cell, terms), key=_ratio)
        for _ in range(_ROUNDS if best.ratio > _PROMISING else 0):
            finer = self._about(best.node, cell, terms)
            at_edge = bool((np.abs(finer.node - best.node) > 0.99 * cell).any())
            best = max(best, finer, key=_ratio)
            cell = cell if at_edge else cell * 2 / (_LOCAL - 1)
        return best

    def _about(self, node: FloatArray, cell: FloatArray, terms: _Terms) -> Extended:
        """The best extension on a lattice about a node, a cell to each side."""
        steps = [np.linspace(-size, size, _LOCAL) for size in cell]
        local = node[:, None] + np.stack(np.meshgrid(*steps, indexing="ij")).reshape(2, -1)
        return NullModel(self.problem, local, cell)._extend(terms)

    def _extend(self, terms: _Terms) -> Extended:
        setting, alive = self.problem.setting, terms.alive
        forms = Quadratic(*(contiguous(np.broadcast_to(form, self.least.shape)[alive]) for form in self.q))
        constant = contiguous(self._constant[alive, 0])
        alone = Alone(forms, contiguous(self.least[alive]), constant, float(setting.nu), float(setting.rate))
        columns = Columns(on_every(terms.rows, self.g), terms.total, terms.on_y, terms.own, terms.signs)
        at, found = likeliest(alone, columns)
        h, t, k = (int(index) for index in at)
        likelihood, start, ceiling, step = (float(value) for value in found)
        if step == 0.0:
            start, ceiling = float(self.R0[alive[h], k]), float(self.A[alive[h], k])
        return Extended(
            ratio=self.by_size * 2 * (likelihood - terms.top),
            delta=step,
            values=start + (ceiling - start) * self.g[:, k] + step * terms.columns[:, t],
            height=ceiling - start,
            node=self.nodes[:, k],
            column=t,
        )

    def _log_likelihood(self, least: FloatArray) -> FloatArray:
        setting = self.problem.setting
        return np.asarray(self._constant - setting.nu * np.log(setting.rate + least / 2))
