"""One more evaluation: the noise filter and the lattice's sums go on by a step, and the masses follow.

The noise model looks backwards only, so what the earlier evaluations said stays as it was and the likelihood at every
node is exactly that of a refit. The cost of a step does not depend on how long the run is. A new lattice is laid, by a
refit, when the mass has become too narrow for the present one or has moved to its edge, and when the noise model itself
gains a hypothesis or finds a spike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .arrays import FloatArray, IntArray
from .curve import Curve
from .kernels import Filtered, LatticeSums, lattice_sums, noise_filter
from .lattice import Lattice
from .noise import REFERENCE_POINTS, SPIKE_SCALE, TICKS, WINDOW, hypotheses_for, least_spike, spike_variance
from .posterior import Table, effective_size, hopeful, table_of, tabulate
from .prior import Box, box_of
from .problem import Setting

if TYPE_CHECKING:
    from .fitting import Fit

_LEAST_NODES = 20.0
_EDGE_MASS = 2e-3
_DEAD = 9.0  # a node exp(-9) below the best one is left out until all are looked at again,
_FAINT = 7.0  # and a hypothesis whose best node is exp(-7) below
_LOOK_AGAIN = 8  # evaluations after which hypotheses that were left out are looked at again
_NEIGHBOURS = 4  # of a spike


@dataclass(frozen=True, eq=False)
class Stream:
    """Where the sums stand.

    Attributes:
        lattice: as it was laid.
        box: as it was then.
        priors: log prior mass of its nodes, see `Table.log_node_prior`; -inf where they carry nothing any more.
        sums: of every hypothesis, (H, K).
        filtered: `sums` and `last` of the noise filter count, the rest is of the latest evaluation.
        alive: hypotheses that carry mass.
    """

    lattice: Lattice
    box: Box
    priors: FloatArray
    sums: LatticeSums
    filtered: Filtered
    alive: IntArray

    @classmethod
    def of(cls, fit: Fit) -> Stream:
        """Of a whole fit: its lattice, with the hypotheses that it had left out."""
        everyone = np.arange(len(fit.setting.hypotheses))
        table = tabulate(fit.problem, fit.table.lattice, everyone)
        alive = everyone[hopeful(table.masses.pairs, _FAINT)]
        return cls(fit.table.lattice, fit.setting.box, _live(table), table.sums, fit.problem.filtered, alive)


@dataclass(frozen=True, eq=False)
class Step:
    """What one more evaluation makes of a fit."""

    setting: Setting
    table: Table
    last: FloatArray
    stream: Stream


def step(fit: Fit, curve: Curve, fitted_whole: int) -> Step | None:
    """The fit's stream with the last evaluation of `curve` added, or None where a refit is needed.

    Args:
        fit: of all evaluations but the last.
        curve: all of them.
        fitted_whole: beyond so many evaluations a refit averages neighbours.
    """
    setting, stream = fit.setting, fit.stream
    if curve.points <= REFERENCE_POINTS or curve.points == fitted_whole + 1 or _is_new_to_the_noise_model(fit, curve):
        return None
    low, width = curve.bounds[0], curve.bounds[1] - curve.bounds[0]
    tick, usual = _clock(curve)
    shares = np.full((len(setting.hypotheses), 1), curve.noise.variance[-1] / width**2 / setting.unit_variance)
    ticks, reward = np.array([tick]), (curve.reward[-1:] - low) / width
    filtered = noise_filter(shares, ticks, *setting.wandering, reward, before=stream.filtered)
    sums = LatticeSums(*(part.copy() for part in stream.sums))
    lattice = stream.lattice
    lattice_sums(np.log(curve.compute[-1:]), lattice.factors, filtered, sums)
    setting = replace(setting, points=setting.points + 1, usual_gap=usual)
    if curve.points % _LOOK_AGAIN == 0:
        return _looked_again(setting, curve, stream, sums, filtered)
    alive = stream.alive
    few = LatticeSums(*(part[alive] for part in sums))
    table = table_of(setting, lattice, alive, few, filtered.sums[alive], priors=stream.priors)
    if not _fits(table, stream.box, setting.box):
        return None
    return Step(setting, table, filtered.last, replace(stream, sums=sums, filtered=filtered))


def _looked_again(setting: Setting, curve: Curve, stream: Stream, sums: LatticeSums, filtered: Filtered) -> Step | None:
    """The same with the hypotheses that were left out, and with the box as it is by now."""
    setting = replace(setting, box=box_of(setting.prior, curve.compute))
    everyone = np.arange(len(setting.hypotheses))
    table = table_of(setting, stream.lattice, everyone, sums, filtered.sums)
    if not _fits(table, stream.box, setting.box):
        return None
    alive, priors = everyone[hopeful(table.masses.pairs, _FAINT)], _live(table)
    stream = replace(stream, priors=priors, sums=sums, filtered=filtered, alive=alive)
    return Step(setting, table, filtered.last, stream)


def _live(table: Table) -> FloatArray:
    """The nodes' prior mass without the nodes that carry next to nothing."""
    logs = table.masses.nodes
    return np.where(logs > logs.max() - _DEAD, table.log_node_prior, -np.inf)


def _clock(curve: Curve) -> tuple[float, float]:
    """Clock ticks since the evaluation before, and the usual gap, as `evaluation_clock` has them."""
    latest = curve.compute[-WINDOW - 1 :]
    gaps = (latest[1:] - latest[:-1]).tolist()
    ordered = sorted(gaps)
    usual = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    if curve.restarts and any(latest[-2] <= restart < latest[-1] for restart in curve.restarts):
        return np.inf, usual
    return min(max(gaps[-1] / usual, TICKS[0]), TICKS[1]), usual


def _is_new_to_the_noise_model(fit: Fit, curve: Curve) -> bool:
    """Whether a hypothesis joins, or the evaluation before the last two turns out to be a spike."""
    if len(hypotheses_for(fit.setting.points + 1)) != len(fit.setting.hypotheses):
        return True
    low, width = curve.bounds[0], curve.bounds[1] - curve.bounds[0]
    a, b, middle, d, e = ((curve.reward[-5:] - low) / width).tolist()
    aside = sorted((a, b, d, e))
    variance = curve.noise.variance[-3] / width**2
    if abs(middle - (aside[1] + aside[2]) / 2) <= SPIKE_SCALE * float(least_spike(variance)):
        return False
    tail = WINDOW + _NEIGHBOURS
    reward, variances = (curve.reward[-tail:] - low) / width, curve.noise.variance[-tail:] / width**2
    return bool(spike_variance(reward, variances)[-3] > 0)


def _fits(table: Table, laid: Box, box: Box) -> bool:
    """Whether the mass still lies well inside the lattice and is spread over enough of its nodes."""
    logs = table.masses.nodes
    mass = np.exp(logs - logs.max())
    if effective_size(mass) < _LEAST_NODES:
        return False
    allowed = _EDGE_MASS * mass.sum()
    mass = mass.reshape(table.lattice.log_mid.shape)
    (low, high), across = laid.log_b, table.lattice.cell[0]
    if mass[0].sum() > allowed and table.lattice.log_b[0] > low + across:
        return False
    if mass[-1].sum() > allowed and table.lattice.log_b[-1] < high - across:
        return False
    if mass[:, 0].sum() > allowed:
        return False
    if mass[:, -1].sum() <= allowed:
        return True
    # a lattice that reaches to the box's own end cannot be laid wider, but the box grows with the run
    at_end = table.lattice.log_mid[:, -1].max() > laid.log_mid[1] - table.lattice.cell[1]
    return bool(at_end and box.log_mid[1] - laid.log_mid[1] < 0.02)
