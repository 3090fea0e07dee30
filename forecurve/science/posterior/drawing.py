"""Equally weighted draws from a table: pairs by their mass, (R0, A) from truncated normals, weights exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .evenly import EVENLY, Axis, multiples, normals, picks, uniforms
from .integral import Table
from .lattice import least_log_mass
from .problem import Setting
from .weighing import LEAST_ROOT, Pairs, weigh

DRAWS = 2000
_PROPOSALS = 2600  # and twice as many where no plain lattice fits the mass


@dataclass(frozen=True, eq=False)
class Posterior:
    """Equally weighted draws, every array of shape (K,), rewards in [0, 1].

    Attributes:
        alpha: noise scale, in units of the problem's variance.
        hypothesis: index into the problem's hypotheses.
        informed: whether under the informative part of the prior, and not its flat one.
        state_mean, state_variance: the wandering part at the last evaluation (variance in units of alpha v).
        nodes: the last lattice's (ln B, ln C_mid), shape (2, n).
        cells: the range of ln B and ln C_mid that the node of each draw stands for, (2, K).
        early: posterior probability that an early regime was set apart, by its number of evaluations.
    """

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray
    alpha: FloatArray
    hypothesis: IntArray
    informed: BoolArray
    state_mean: FloatArray
    state_variance: FloatArray
    nodes: FloatArray
    cells: FloatArray
    early: dict[int, float]

    @property
    def cut(self) -> int:
        """How many evaluations an early regime most likely has, 0 where there is hardly one."""
        return max(self.early, key=lambda size: self.early[size]) if sum(self.early.values()) >= 0.5 else 0


def draw(setting: Setting, table: Table, last: FloatArray, times: int = 1) -> Posterior:
    """Draw DRAWS times.

    Args:
        setting: of the curve.
        table: its densities.
        last: `Filtered.last` of the hypotheses that are alive, (H, 3).
        times: so many times as often, of as many times the proposals.
    """
    proposals = times * _PROPOSALS * (1 if table.lattice.plainly_laid else 2)
    pairs, log_share = _allocate(table.masses.pairs, proposals)
    found = weigh(setting, table, pairs, *_sequence(len(pairs.node)))
    log_weight = found.log_weight - log_share
    chosen = resample(np.exp(log_weight - log_weight.max()), found.A, times * DRAWS)
    at_node, at_hypothesis = pairs.node[chosen], pairs.hypothesis[chosen]
    A, R0 = found.A[chosen], found.R0[chosen]
    nodes = table.lattice.nodes
    state = table.sums.state[at_hypothesis, at_node]
    variance, one, reward = last.T[:, at_hypothesis]
    index = table.alive[at_hypothesis]
    return Posterior(
        A=A,
        B=np.exp(nodes[0][at_node]),
        C_mid=np.exp(nodes[1][at_node]),
        R0=R0,
        alpha=_alpha(setting, found.squares[chosen]),
        hypothesis=index,
        informed=np.array(setting.prior_parts)[pairs.part[chosen]],
        state_mean=reward - R0 * (one - state) - A * state,
        state_variance=variance,
        nodes=nodes,
        cells=table.lattice.cells[:, at_node // table.lattice.log_mid.shape[1]],
        early=_early(setting, index),
    )


def _early(setting: Setting, hypothesis: IntArray) -> dict[int, float]:
    shares = np.bincount(hypothesis, minlength=len(setting.hypotheses)) / len(hypothesis)
    found: dict[int, float] = {}
    for share, guess in zip(shares, setting.hypotheses, strict=True):
        if guess.early and share > 0:
            found[guess.early] = found.get(guess.early, 0.0) + float(share)
    return found


def _allocate(log_weight: FloatArray, proposals: int) -> tuple[Pairs, FloatArray]:
    """The pair of each proposal, and the log share with which it was proposed.

    Half by the estimated mass, half by its square root, so that pairs whose mass was underestimated are there too.
    Many small ones may carry what few large ones do, so what is left out goes by their number.
    """
    flat = log_weight.ravel()
    kept = np.flatnonzero(flat > least_log_mass(log_weight))
    mass = np.exp(flat[kept] - flat.max())
    root = np.sqrt(mass)
    share = 0.5 * mass / mass.sum() + 0.5 * root / root.sum()
    proposed = picks(np.cumsum(share), proposals)
    return Pairs(*np.unravel_index(kept[proposed], log_weight.shape)), np.log(share)[proposed]


@cache
def _sequence(size: int) -> tuple[FloatArray, FloatArray]:
    """Two coordinates in (0, 1), evenly spread together and with `weighing.scales`: Kronecker sequences."""
    index = np.arange(1, size + 1)
    u, w = (multiples(step, index, start=0.5) for step in (EVENLY[2], EVENLY[0]))
    return u, np.clip(w, 1e-6, 1 - 1e-6)


def over_cells(log_values: FloatArray, cell: FloatArray) -> FloatArray:
    """Draws of a node's coordinate spread over the cell that the node stands for, (K,).

    20 rows and 1 in 20 of the mass beyond a quantile: without it an interval's end would jump by a row.
    """
    return log_values + cell * (uniforms(Axis.CELL, len(log_values)) - 0.5)


def resample(weight: FloatArray, order_by: FloatArray, size: int) -> IntArray:
    """Systematic resampling in the order of one coordinate: that coordinate's quantiles are kept almost exactly."""
    order = np.argsort(order_by)
    return np.asarray(order[picks(np.cumsum(weight[order]), size)])


def _alpha(setting: Setting, q: FloatArray) -> FloatArray:
    """alpha given everything else: inverse-gamma, its chi-square by Wilson and Hilferty's cube root."""
    dof = 2 * setting.nu
    z = normals(Axis.SCALE, len(q))
    spread = 2 / (9 * dof)
    chi2 = dof * np.maximum(1 - spread + z * np.sqrt(spread), LEAST_ROOT) ** 3
    return np.asarray((setting.rate + q / 2) / (chi2 / 2))
