"""One evaluation more in one go: the noise filter, the lattice's sums and the masses, each taken a step on.

A stream's step is so short that calls would cost as much as sums, so its loops are joined into one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..compiled import compiled
from .elementary import exps
from .kernels import FAR, Factors, Filtered, LatticeSums, Odds, filter_loop, filter_rows, sums_rows
from .masses import MASS_PARTS, Beforehand, Masses, mass_loop, mass_rows
from .patches import coarse_loop, coarse_rows

CARRIED = 5.0  # a node within exp(-5) of the best carried mass


class Known(NamedTuple):
    """What is kept from evaluation to evaluation.

    Attributes:
        few: `LatticeSums` of the hypotheses that are alive, (4, L, K).
        totals, last: `sums` and `last` of the noise filter under every hypothesis, (H, 4) and (H, 3).
        nodes: log mass of every node, (K,).
    """

    few: FloatArray
    totals: FloatArray
    last: FloatArray
    nodes: FloatArray


class Wanted(NamedTuple):
    """Whose masses are asked for.

    Attributes:
        alive: hypotheses, (L,).
        outer, edges: rows of the lattice that finer nodes lie in, and what its edges are; see `Lattice`.
        beforehand: of those hypotheses, with the new evaluation counted; -inf where a node is left out.
    """

    alive: IntArray
    outer: int
    edges: BoolArray
    beforehand: Beforehand


class New(NamedTuple):
    """The new evaluation: ln compute, reward in [0, 1], variance in the noise model's unit, ticks since the last."""

    log_c: float
    reward: float
    share: float
    tick: float


class After(NamedTuple):
    """Where things stand after it.

    Attributes:
        few, totals, last: as in `Known`.
        filtered: the new evaluation under every hypothesis, the first five of `Filtered`, (5, H, 1).
        few_totals: of the hypotheses that are alive, (L, 4).
        masses: of those.
    """

    few: FloatArray
    totals: FloatArray
    last: FloatArray
    filtered: FloatArray
    few_totals: FloatArray
    masses: Masses


class MassShape(NamedTuple):
    """How the mass lies: its share at nodes that lie too far apart for it (see `patches`), and at the edges of the
    lattice (`Lattice.edges`); and by how much the new evaluation speaks for one node against another, among those that
    carried the mass."""

    coarse: float
    low_b: float
    high_b: float
    low_mid: float
    high_mid: float
    moved: float


def advance(
    before: Known, new: New, factors: Factors, wandering: tuple[FloatArray, FloatArray], wanted: Wanted
) -> tuple[After, MassShape]:
    """What one more evaluation makes of sums and masses, and how these lie; `before` stays as it is.

    Args:
        factors: of the lattice.
        wandering: eta and rho of each hypothesis, (H,).
    """
    size, alive = before.few.shape[2], len(wanted.alive)
    masses = Masses(np.empty((len(wanted.beforehand.log_node), alive, size)), np.empty(size))
    after = After(
        few=np.empty_like(before.few),
        totals=before.totals.copy(),
        last=before.last.copy(),
        filtered=np.empty((5, len(before.last), 1)),
        few_totals=np.empty((alive, 4)),
        masses=masses,
    )
    spread = np.empty(6)
    run = compiled(_advance_loop, _advance_rows, filter_loop, *MASS_PARTS, mass_loop, coarse_loop, _spread_loop)
    run(before, new, factors, wandering, wanted, after, spread)
    return after, MassShape(*spread.tolist())


def _advance_loop(
    before: Known, new: New, factors: Factors, wandering: Any, wanted: Wanted, after: After, spread: Any
) -> None:
    log_c, reward, share, tick = new
    B, centre, middle, log_mid, reach = factors
    eta, rho = wandering
    filtered, totals, few_before, few = after.filtered, after.totals, before.few, after.few
    rows, columns = middle.shape
    own = np.empty((len(eta), 1))
    for h in range(len(eta)):
        own[h, 0] = eta[h]
        filtered[2, h, 0] = rho[h] ** tick if eta[h] > 0 else 0.0
    out = Filtered(filtered[0], filtered[1], filtered[2], filtered[3], filtered[4], totals, after.last)
    filter_loop(np.full(1, share), own, np.full(1, reward), out)
    g = np.zeros(rows * columns)
    if log_c > -np.inf:
        for i in range(rows):
            exponent = -B[i] * (log_c - centre)
            rate = np.exp(min(max(exponent, -FAR), FAR))
            for j in range(columns):
                g[i * columns + j] = 1.0 / (1.0 + rate * middle[i, j])
            if max(abs(exponent), reach[i]) > FAR:
                for j in range(columns):
                    g[i * columns + j] = 1.0 / (1.0 + np.exp(min(max(B[i] * (log_mid[i, j] - log_c), -FAR), FAR)))
    for a in range(len(wanted.alive)):
        h = wanted.alive[a]
        after.few_totals[a] = totals[h]
        f, k, d = filtered[0, h, 0], filtered[1, h, 0], filtered[2, h, 0]
        q1, qy = filtered[3, h, 0], filtered[4, h, 0]
        for n in range(len(g)):
            s = d * few_before[3, a, n]
            e = g[n] - s
            few[0, a, n] = few_before[0, a, n] + e * e * f
            few[1, a, n] = few_before[1, a, n] + e * q1
            few[2, a, n] = few_before[2, a, n] + e * qy
            few[3, a, n] = s + k * e
    mass_loop(LatticeSums(few[0], few[1], few[2], few[3]), after.few_totals, wanted.beforehand, after.masses)
    _spread_loop(before.nodes, after.masses.nodes, wanted.outer, columns, wanted.edges, spread)


def _spread_loop(before: Any, nodes: Any, rows: Any, columns: Any, edges: Any, spread: Any) -> None:
    coarse = np.zeros(len(nodes), dtype=np.bool_)
    coarse_loop(nodes, rows, columns, coarse)
    mass = nodes - nodes.max()
    exps(mass)
    total, rough = 0.0, 0.0
    least, most, carried = np.inf, -np.inf, before.max() - CARRIED
    for k in range(len(mass)):
        total += mass[k]
        if coarse[k]:
            rough += mass[k]
        if before[k] > carried:
            least, most = min(least, nodes[k] - before[k]), max(most, nodes[k] - before[k])
    spread[0] = rough / total
    for e in range(4):
        spread[1 + e] = 0.0
        for k in range(len(mass)):
            if edges[e, k]:
                spread[1 + e] += mass[k] / total
    spread[5] = most - least


def _advance_rows(
    before: Known, new: New, factors: Factors, wandering: Any, wanted: Wanted, after: After, spread: Any
) -> None:
    """`_advance_loop`, all nodes and hypotheses at once."""
    log_c, reward, share, tick = new
    eta, rho = wandering
    inverse, gain, decay, one, white = after.filtered
    decay[:] = np.where(eta > 0, rho**tick, 0.0)[:, None]
    whole = Filtered(inverse, gain, decay, one, white, after.totals, after.last)
    filter_rows([share], eta[:, None], [reward], whole)
    after.few[:] = before.few
    sums, alive = LatticeSums(*after.few), Filtered(*(part[wanted.alive] for part in whole))
    after.few_totals[:] = alive.sums
    sums_rows(Odds.of(np.array([log_c]), factors), False, alive, sums)
    mass_rows(sums, alive.sums, wanted.beforehand, after.masses)
    _spread_rows(before.nodes, after.masses.nodes, wanted.outer, factors.middle.shape[1], wanted.edges, spread)


def _spread_rows(before: Any, nodes: Any, rows: Any, columns: Any, edges: Any, spread: Any) -> None:
    """`_spread_loop`, all at once."""
    coarse = np.zeros(len(nodes), dtype=bool)
    coarse_rows(nodes, rows, columns, coarse)
    mass = np.exp(nodes - nodes.max())
    spread[:5] = np.array([mass[coarse].sum(), *(edges @ mass)]) / mass.sum()
    carried = before > before.max() - CARRIED
    spread[5] = np.ptp(nodes[carried] - before[carried])
