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

from ..arrays import FloatArray, IntArray
from ..curves.curve import Curve
from ..curves.noise import REFERENCE_POINTS, TICKS, WINDOW
from ..curves.outliers import ENOUGH, LEAST_SD, SCALE, spike_variance, stretch_variance
from ..curves.wandering import hypotheses_for
from .advancing import After, New, Spread, Sums, Wanted, advance
from .integral import Table, hopeful, log_node_priors, tabulate
from .lattice import Lattice, least_log_mass
from .masses import constants_of, pulls
from .patches import ROUGH
from .prior import Box, box_of
from .problem import Setting

if TYPE_CHECKING:
    from ..fitting.fit import Fit

_MOST_COARSE = 2 * ROUGH
_EDGE_MASS = 2e-3
_FAINT = 7.0  # a hypothesis whose best node is exp(-7) below the best of all is left out, as nodes are,
_LOOK_AGAIN = 8  # and after so many evaluations those that were left out are looked at again,
_SURPRISE = 2.0  # or when an evaluation makes a node exp(2) times likelier against another
_CARRIED = 5.0  # of those within exp(-5) of the best


@dataclass(frozen=True, eq=False)
class Stream:
    """Where the sums stand.

    Attributes:
        lattice: as it was laid.
        box: as it was then.
        priors: log prior mass of its nodes, see `Table.log_node_prior`; -inf where they carry nothing any more.
        sums: of every hypothesis.
        alive: hypotheses that carry mass.
        log_weights: of those.
    """

    lattice: Lattice
    box: Box
    priors: FloatArray
    sums: Sums
    alive: IntArray
    log_weights: FloatArray

    @classmethod
    def of(cls, fit: Fit) -> Stream:
        """Of a whole fit: its lattice, with the hypotheses that it had left out."""
        everyone = np.arange(len(fit.setting.hypotheses))
        table = tabulate(fit.problem, fit.table.lattice, everyone)
        alive = everyone[hopeful(table.masses.pairs, _FAINT)]
        filtered = fit.problem.filtered
        sums = Sums(np.stack(table.sums), filtered.sums, filtered.last)
        return cls(table.lattice, fit.setting.box, _live(table), sums, alive, fit.setting.log_weights[alive])


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
    looking_again = curve.points % _LOOK_AGAIN == 0
    tick, usual = _clock(curve)
    setting = setting.with_one_more(usual, box_of(setting.prior, curve.compute) if looking_again else setting.box)
    if looking_again:
        stream = _woken(setting, stream)
    after = _advanced(setting, stream, curve, tick)
    if not looking_again and _moved(fit.table.masses.nodes, after.masses.nodes) > _SURPRISE:
        looking_again, stream = True, _woken(setting, stream)
        after = _advanced(setting, stream, curve, tick)
    if not _fits(after.spread, stream, setting.box):
        return None
    table = Table(
        stream.lattice, stream.alive, after.few, after.few_totals, stream.priors, after.masses, setting.prior_parts
    )
    alive, priors, log_weights = stream.alive, stream.priors, stream.log_weights
    if looking_again:
        alive, priors = alive[hopeful(table.masses.pairs, _FAINT)], _live(table)
        log_weights = setting.log_weights[alive]
    stream = Stream(stream.lattice, stream.box, priors, after.sums, alive, log_weights)
    return Step(setting, table, after.sums.last, stream)


def _woken(setting: Setting, stream: Stream) -> Stream:
    """The stream with every hypothesis and node."""
    everyone, priors = np.arange(len(setting.hypotheses)), log_node_priors(setting, stream.lattice)
    return replace(stream, alive=everyone, log_weights=setting.log_weights, priors=priors)


def _moved(before: FloatArray, after: FloatArray) -> float:
    """By how much the new evaluation speaks for one node against another, among those that carried the mass."""
    carried = before > before.max() - _CARRIED
    said = after[carried] - before[carried]
    return float(said.max() - said.min())


def _advanced(setting: Setting, stream: Stream, curve: Curve, tick: float) -> After:
    low, width = curve.bounds[0], curve.bounds[1] - curve.bounds[0]
    share = float(curve.noise.variance[-1]) / width**2 / setting.unit_variance
    new = New(curve.now, (float(curve.reward[-1]) - low) / width, share, tick)
    constants = constants_of(setting.prior, setting.unit_variance, setting.rate, setting.nu)
    outer = stream.lattice.outer
    wanted = Wanted(stream.alive, stream.log_weights, stream.priors, outer, pulls(setting.prior), constants)
    return advance(stream.sums, new, stream.lattice.factors, setting.wandering, wanted)


def _live(table: Table) -> FloatArray:
    """The nodes' prior mass without the nodes that carry next to nothing."""
    logs = table.masses.nodes
    return np.where(logs > least_log_mass(logs), table.log_node_prior, -np.inf)


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
    """Whether a hypothesis joins, or one of the latest evaluations, far off the next, turns out to be an outlier."""
    if len(hypotheses_for(fit.setting.points + 1)) != len(fit.setting.hypotheses):
        return True
    low, width = curve.bounds[0], curve.bounds[1] - curve.bounds[0]
    a, b, c = curve.reward[-4:-1].tolist()
    if max(abs(b - a), abs(c - b)) <= width * SCALE * LEAST_SD:
        return False
    latest = (curve.reward[-ENOUGH:] - low) / width, curve.noise.variance[-ENOUGH:] / width**2
    single, stretch = spike_variance(*latest), stretch_variance(*latest)
    return bool(single[-3] > 0 or stretch[-4] > 0)


def _fits(spread: Spread, stream: Stream, box: Box) -> bool:
    """Whether the mass still lies well inside the lattice, whose nodes lie close enough for it."""
    lattice, laid = stream.lattice, stream.box
    if spread.coarse > _MOST_COARSE or spread.low_mid > _EDGE_MASS:
        return False
    (low, high), across = laid.log_b, lattice.cell[0]
    if spread.low_b > _EDGE_MASS and lattice.log_b[0] > low + across:
        return False
    if spread.high_b > _EDGE_MASS and lattice.log_b[lattice.outer - 1] < high - across:
        return False
    if spread.high_mid <= _EDGE_MASS:
        return True
    # a lattice that reaches to the box's own end cannot be laid wider, but the box grows with the run
    at_end = lattice.log_mid[: lattice.outer, -1].max() > laid.log_mid[1] - lattice.cell[1]
    return bool(at_end and box.log_mid[1] - laid.log_mid[1] < 0.02)
