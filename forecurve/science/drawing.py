"""Equally weighted draws from a table: pairs by their mass, (R0, A) from truncated normals, weights exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from .arrays import FloatArray, IntArray
from .lattice import CUT
from .linear import best_on_triangle
from .masses import log_reward_prior
from .posterior import Table, effective_nodes
from .problem import Setting

DRAWS = 2000
_PROPOSALS = 2600
_GOLDEN = 0.6180339887498949
_PLASTIC = 0.7548776662466927


@dataclass(frozen=True, eq=False)
class Posterior:
    """Equally weighted draws, every array of shape (K,), rewards in [0, 1].

    Attributes:
        alpha: noise scale, in units of the problem's variance.
        hypothesis: index into the problem's hypotheses.
        state_mean, state_variance: the wandering part at the last evaluation (variance in units of alpha v).
        node_ess: how many nodes of the lattice carry the mass.
        passes: lattices laid.
        nodes: the last lattice's (ln B, ln C_mid), shape (2, n).
        early: posterior probability that an early regime was set apart, by its number of evaluations.
    """

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray
    alpha: FloatArray
    hypothesis: IntArray
    state_mean: FloatArray
    state_variance: FloatArray
    node_ess: float
    passes: int
    nodes: FloatArray
    early: dict[int, float]


def draw(setting: Setting, table: Table, last: FloatArray) -> Posterior:
    """Draw DRAWS times.

    Args:
        setting: of the curve.
        table: its densities.
        last: `Filtered.last` of the hypotheses that are alive, (H, 3).
    """
    part, hypothesis, node, log_share = _allocate(table.masses.pairs)
    u, w = _sequence(len(node))
    R0, A, log_w = _weigh(setting, table, part, hypothesis, node, u, w)
    log_w -= log_share
    weight = np.exp(log_w - log_w.max())
    chosen = resample(weight, A, DRAWS)
    at_node, at_hypothesis = node[chosen], hypothesis[chosen]
    A, R0 = A[chosen], R0[chosen]
    q = table.form(setting, at_hypothesis, at_node).value(R0, A)
    nodes = table.lattice.nodes
    state = table.sums.state[at_hypothesis, at_node]
    variance, one, reward = last.T[:, at_hypothesis]
    index = table.alive[at_hypothesis]
    return Posterior(
        A=A,
        B=np.exp(nodes[0][at_node]),
        C_mid=np.exp(nodes[1][at_node]),
        R0=R0,
        alpha=_alpha(setting, q),
        hypothesis=index,
        state_mean=reward - R0 * (one - state) - A * state,
        state_variance=variance,
        node_ess=effective_nodes(table.masses.nodes),
        passes=table.passes,
        nodes=nodes,
        early=_early(setting, index),
    )


def _early(setting: Setting, hypothesis: IntArray) -> dict[int, float]:
    shares = np.bincount(hypothesis, minlength=len(setting.hypotheses)) / len(hypothesis)
    found: dict[int, float] = {}
    for share, guess in zip(shares, setting.hypotheses, strict=True):
        if guess.early and share > 0:
            found[guess.early] = found.get(guess.early, 0.0) + float(share)
    return found


def _allocate(log_weight: FloatArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """(part, hypothesis, node) of each proposal, and the log share with which that pair was proposed.

    Half by the estimated mass, half by its square root, so that pairs whose mass was underestimated are there too.
    """
    flat = log_weight.ravel()
    kept = np.flatnonzero(flat > flat.max() - CUT - 1)
    mass = np.exp(flat[kept] - flat.max())
    root = np.sqrt(mass)
    share = 0.5 * mass / mass.sum() + 0.5 * root / root.sum()
    steps = (np.arange(_PROPOSALS) + 0.5) / _PROPOSALS
    picks = np.minimum(np.searchsorted(np.cumsum(share), steps), len(kept) - 1)
    part, hypothesis, node = np.unravel_index(kept[picks], log_weight.shape)
    return part, hypothesis, node, np.log(share[picks])


@cache
def _sequence(size: int) -> tuple[FloatArray, FloatArray]:
    """Two coordinates in (0, 1), evenly spread together: Kronecker sequences of the golden and plastic numbers."""
    index = np.arange(1, size + 1)
    u, w = ((0.5 + step * index) % 1.0 for step in (_GOLDEN, _PLASTIC))
    return np.asarray(u), np.clip(w, 1e-6, 1 - 1e-6)


def over_cells(log_values: FloatArray, cell: float) -> FloatArray:
    """Draws of a node's coordinate spread over the cell that the node stands for, (K,).

    20 rows and 1 in 20 of the mass beyond a quantile: without it an interval's end would jump by a row.
    """
    u, _ = _sequence(len(log_values))
    return log_values + cell * (u - 0.5)


@cache
def _normal_sequence(size: int) -> FloatArray:
    """Standard normal quantiles, evenly spread, in no order that means anything."""
    return np.asarray(ndtri((0.5 + _GOLDEN * np.arange(1, size + 1)) % 1.0 * 0.998 + 0.001))


def _weigh(
    setting: Setting,
    table: Table,
    part: IntArray,
    hypothesis: IntArray,
    node: IntArray,
    u: FloatArray,
    w: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw (R0, A) from truncated normals near the density's top; weigh by target over proposal."""
    q = table.form(setting, hypothesis, node)
    informative = np.array(table.parts)[part]
    _, _, least = best_on_triangle(q)
    spread = 1.3 * (setting.rate + least / 2) / setting.nu
    mean, sd = setting.prior.A or (0.5, 1.0)
    pull = np.where(informative & (setting.prior.A is not None), 1.3 / sd**2, 1.0)
    centre = np.where(informative, mean, 0.5)
    # precision of the proposal; the units on the diagonal keep it proper where the data say nothing
    k00, k01, k11 = q.h00 / spread + 1.0, q.h01 / spread, q.h11 / spread + pull
    b0, b1 = q.c0 / spread + 0.5, q.c1 / spread + pull * centre
    det = k00 * k11 - k01**2
    zero, one = np.zeros(len(u)), np.ones(len(u))
    A, log_a = _truncated_normal((k00 * b1 - k01 * b0) / det, np.sqrt(k00 / det), zero, one, u)
    R0, log_r = _truncated_normal((b0 - k01 * A) / k00, 1 / np.sqrt(k00), zero, A, w)
    target = table.log_base(setting, part, hypothesis, node) - setting.nu * np.log(setting.rate + q.value(R0, A) / 2)
    log_prior = log_reward_prior(setting.prior, False, R0, A)
    if setting.prior.informative:
        log_prior = np.where(informative, log_reward_prior(setting.prior, True, R0, A), log_prior)
    target += log_prior
    return R0, A, target - log_a - log_r


def _truncated_normal(
    mean: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(x, log density) by inversion; uniform where the normal has no mass on [low, high] to speak of."""
    flip = mean < (low + high) / 2  # mirrored so that a lies in the lower tail, where ndtr keeps its digits
    sign = np.where(flip, -1.0, 1.0)
    a = np.where(flip, mean - high, low - mean) / sd
    b = np.where(flip, mean - low, high - mean) / sd
    at_a, at_b = ndtr(a), ndtr(b)
    mass = at_b - at_a
    usable = mass > 1e-12
    z = ndtri(np.clip(at_a + u * mass, 1e-300, 1 - 1e-16))
    x = np.where(usable, mean + sign * sd * z, low + u * (high - low))
    x = np.clip(x, low, high)
    with np.errstate(divide="ignore"):
        normal = -0.5 * z**2 - 0.9189385332046727 - np.log(sd) - np.log(np.where(usable, mass, 1.0))
        uniform = -np.log(np.maximum(high - low, 1e-300))
    return x, np.where(usable, normal, uniform)


def resample(weight: FloatArray, order_by: FloatArray, size: int) -> IntArray:
    """Systematic resampling in the order of one coordinate: that coordinate's quantiles are kept almost exactly."""
    order = np.argsort(order_by)
    cumulative = np.cumsum(weight[order])
    picks = np.searchsorted(cumulative, (np.arange(size) + 0.5) / size * cumulative[-1])
    return np.asarray(order[np.minimum(picks, len(order) - 1)])


def _alpha(setting: Setting, q: FloatArray) -> FloatArray:
    """alpha given everything else: inverse-gamma, its chi-square by Wilson and Hilferty's cube root."""
    dof = 2 * setting.nu
    z = _normal_sequence(len(q))
    spread = 2 / (9 * dof)
    chi2 = dof * np.maximum(1 - spread + z * np.sqrt(spread), 0.05) ** 3
    return np.asarray((setting.rate + q / 2) / (chi2 / 2))
