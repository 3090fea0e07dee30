"""One evaluation more in one go: the noise filter, the lattice's sums and the masses, each taken a step on.

A stream's step is so short that calls would cost as much as sums, so its loops are joined into one.
"""

from __future__ import annotations

from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from ..compiled import compiled
from .elementary import exps, logs
from .kernels import HUGE, Factors, Filtered, LatticeSums, _filter_loop, _filter_rows, _sums_rows
from .linear import best_at_node
from .masses import Constants, Masses, _mass_loop, _mass_rows
from .patches import coarse_loop, coarse_rows


class Sums(NamedTuple):
    """What is kept from evaluation to evaluation.

    Attributes:
        nodes: `LatticeSums` of every hypothesis, (4, H, K).
        totals, last: `sums` and `last` of the noise filter, (H, 4) and (H, 3).
    """

    nodes: FloatArray
    totals: FloatArray
    last: FloatArray


class Wanted(NamedTuple):
    """Whose masses are asked for.

    Attributes:
        alive: hypotheses, (L,).
        log_weights: their log prior weight, (L,).
        log_node_prior: of each part of the prior, -inf where a node is left out, (P, K).
        outer: rows of the lattice that finer nodes lie in, see `Lattice`.
        pulled: whether the second part of the prior says anything of A.
        constants: of the masses, with the new evaluation counted.
    """

    alive: IntArray
    log_weights: FloatArray
    log_node_prior: FloatArray
    outer: int
    pulled: bool
    constants: Constants


class New(NamedTuple):
    """The new evaluation: compute, reward in [0, 1], variance in the noise model's unit, clock ticks since the last."""

    compute: float
    reward: float
    share: float
    tick: float


class After(NamedTuple):
    """Where things stand after it.

    Attributes:
        sums: of every hypothesis.
        few, few_totals: of those whose masses were asked for.
        masses: of those.
        spread: of the masses over the lattice, see `Spread`.
    """

    sums: Sums
    few: LatticeSums
    few_totals: FloatArray
    masses: Masses
    spread: Spread


class Spread(NamedTuple):
    """The share of the mass at nodes that lie too far apart for it (see `patches`), and in the first and last row and
    column of the lattice as it was laid."""

    coarse: float
    low_b: float
    high_b: float
    low_mid: float
    high_mid: float


def advance(
    before: Sums, new: New, factors: Factors, wandering: tuple[FloatArray, FloatArray], wanted: Wanted
) -> After:
    """What one more evaluation makes of sums and masses; `before` stays as it is.

    Args:
        factors: of the lattice.
        wandering: eta and rho of each hypothesis, (H,).
    """
    size, alive = before.nodes.shape[2], len(wanted.alive)
    sums = Sums(np.empty_like(before.nodes), before.totals.copy(), before.last.copy())
    few, few_totals = np.empty((4, alive, size)), np.empty((alive, 4))
    masses = Masses(np.empty((len(wanted.log_node_prior), alive, size)), np.empty(size))
    spread = np.empty(5)
    log_c = log(new.compute) if new.compute > 0 else -inf
    run = compiled(
        _advance_loop, _advance_rows, _filter_loop, best_at_node, logs, exps, _mass_loop, coarse_loop, _spread_loop
    )
    run(log_c, *new[1:], *factors, *wandering, before.nodes, *wanted, *sums, few, few_totals, *masses, spread)
    return After(sums, LatticeSums(*few), few_totals, masses, Spread(*spread.tolist()))


def _advance_loop(
    log_c: Any,
    reward: Any,
    share: Any,
    tick: Any,
    B: Any,
    centre: Any,
    middle: Any,
    eta: Any,
    rho: Any,
    before: Any,
    alive: Any,
    log_weights: Any,
    log_node_prior: Any,
    outer: Any,
    pulled: Any,
    constants: Any,
    after: Any,
    totals: Any,
    last: Any,
    few: Any,
    few_totals: Any,
    pairs: Any,
    nodes: Any,
    spread: Any,
) -> None:
    hypotheses, size = after.shape[1:]
    rows, columns = middle.shape
    inverse, gain, decay = np.empty((hypotheses, 1)), np.empty((hypotheses, 1)), np.zeros((hypotheses, 1))
    own = np.empty((hypotheses, 1))
    for h in range(hypotheses):
        own[h, 0] = eta[h]
        if eta[h] > 0:
            decay[h, 0] = rho[h] ** tick
    one, white = np.empty((hypotheses, 1)), np.empty((hypotheses, 1))
    out = (inverse, gain, decay, one, white, totals, last)
    _filter_loop(np.full(1, share), own, np.full(1, reward), out)
    g = np.zeros(size)
    if log_c > -np.inf:
        for i in range(rows):
            rate = min(max(np.exp(-B[i] * (log_c - centre)), 1.0 / HUGE), HUGE)
            for j in range(columns):
                g[i * columns + j] = 1.0 / (1.0 + rate * middle[i, j])
    for h in range(hypotheses):
        f, k, d, q1, qy = inverse[h, 0], gain[h, 0], decay[h, 0], one[h, 0], white[h, 0]
        for n in range(size):
            s = d * before[3, h, n]
            e = g[n] - s
            after[0, h, n] = before[0, h, n] + e * e * f
            after[1, h, n] = before[1, h, n] + e * q1
            after[2, h, n] = before[2, h, n] + e * qy
            after[3, h, n] = s + k * e
    for a in range(len(alive)):
        few[:, a] = after[:, alive[a]]
        few_totals[a] = totals[alive[a]]
    _mass_loop(few[0], few[1], few[2], few_totals, log_weights, log_node_prior, pulled, constants, pairs, nodes)
    _spread_loop(nodes, outer, columns, spread)


def _spread_loop(nodes: Any, rows: Any, columns: Any, spread: Any) -> None:
    coarse = np.zeros(len(nodes), dtype=np.bool_)
    coarse_loop(nodes, rows, columns, coarse)
    mass = nodes - nodes.max()
    exps(mass)
    total, rough = 0.0, 0.0
    for k in range(len(mass)):
        total += mass[k]
        if coarse[k]:
            rough += mass[k]
    low_b, high_b, low_mid, high_mid = 0.0, 0.0, 0.0, 0.0
    for j in range(columns):
        low_b += mass[j]
        high_b += mass[(rows - 1) * columns + j]
    for i in range(rows):
        low_mid += mass[i * columns]
        high_mid += mass[(i + 1) * columns - 1]
    spread[0] = rough / total
    spread[1], spread[2], spread[3], spread[4] = low_b / total, high_b / total, low_mid / total, high_mid / total


def _advance_rows(
    log_c: Any,
    reward: Any,
    share: Any,
    tick: Any,
    B: Any,
    centre: Any,
    middle: Any,
    eta: Any,
    rho: Any,
    before: Any,
    alive: Any,
    log_weights: Any,
    log_node_prior: Any,
    outer: Any,
    pulled: Any,
    constants: Any,
    after: Any,
    totals: Any,
    last: Any,
    few: Any,
    few_totals: Any,
    pairs: Any,
    nodes: Any,
    spread: Any,
) -> None:
    """`_advance_loop`, all nodes and hypotheses at once."""
    size = (len(eta), 1)
    inverse, gain, one, white = (np.empty(size) for _ in range(4))
    decay = np.where(eta > 0, rho**tick, 0.0)[:, None]
    filtered = Filtered(inverse, gain, decay, one, white, totals, last)
    _filter_rows([share], eta[:, None], [reward], filtered)
    with np.errstate(over="ignore"):
        rates = np.clip(np.exp(-B * (log_c - centre)), 1 / HUGE, HUGE)[None]
    after[:] = before
    _sums_rows([log_c > -inf], rates, middle, False, *filtered[:5], *after)
    few[:], few_totals[:] = after[:, alive], totals[alive]
    gg, g1, gy, _ = few
    _mass_rows(gg, g1, gy, few_totals, log_weights, log_node_prior, pulled, constants, pairs, nodes)
    _spread_rows(nodes, outer, middle.shape[1], spread)


def _spread_rows(nodes: Any, rows: Any, columns: Any, spread: Any) -> None:
    """`_spread_loop`, all at once."""
    coarse = np.zeros(len(nodes), dtype=bool)
    coarse_rows(nodes, rows, columns, coarse)
    mass = np.exp(nodes - nodes.max())
    outer = mass[: rows * columns].reshape(rows, columns)
    edges = outer[0].sum(), outer[-1].sum(), outer[:, 0].sum(), outer[:, -1].sum()
    spread[:] = np.array([mass[coarse].sum(), *edges]) / mass.sum()
