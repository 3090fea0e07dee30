"""One more evaluation: the noise filter and the lattice's sums go on by a step, and the masses follow.

The noise model looks backwards only, so what the earlier evaluations said stays as it was and the likelihood at every
node is exactly that of a refit. The cost of a step does not depend on how long the run is. Hypotheses that carry no
mass stand still for a few evaluations, and then take all of them in one go. A new lattice is laid, by a refit, when the
mass has become too narrow for the present one or has moved to its edge, when an evaluation lies far off all that it
holds, and when the noise model itself gains a hypothesis or finds a spike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray
from ..curves.curve import Curve
from ..curves.noise import REFERENCE_POINTS, TICKS, WINDOW
from ..curves.outliers import ENOUGH, LEAST_SD, SPIKE_SDS, spike_variance, stretch_variance
from ..curves.wandering import hypotheses_for
from .advancing import After, Known, MassShape, New, Wanted, advance
from .integral import Table, hopeful, log_node_priors, tabulate
from .kernels import Filtered, LatticeSums, lattice_sums
from .lattice import Lattice, least_log_mass
from .masses import Beforehand
from .patches import ROUGH
from .prior import C_MID_REACH, Box, box_of
from .problem import Setting

if TYPE_CHECKING:
    from ..fitting.fit import Fit

_MOST_COARSE = 2 * ROUGH
_EDGE_MASS = 2e-3
_FAINT = 7.0  # a hypothesis whose best node is exp(-7) below the best of all is left out, as nodes are,
_LOOK_AGAIN = 8  # and after so many evaluations those that were left out are looked at again,
_GROWN = 0.1  # or when ln compute has grown by so much, for midpoints may lie further on by then,
_SURPRISE = 2.0  # or when an evaluation makes a node exp(2) times likelier against another
_UNHEARD_OF = 12.0  # in log density below that of the usual evaluation: some five standard deviations off every node


@dataclass(frozen=True, eq=False)
class Survey:
    """What was seen when every hypothesis and node was last looked at.

    Attributes:
        lattice: as it was laid.
        box: as it was then.
        every: `LatticeSums` of every hypothesis, (4, H, K), of the evaluations until then.
        alive: hypotheses that carry mass, (L,).
        log_weights: of those.
        priors: log prior mass of the nodes, see `Table.log_node_prior`; -inf where they carry nothing.
    """

    lattice: Lattice
    box: Box
    every: FloatArray
    alive: IntArray
    log_weights: FloatArray
    priors: FloatArray


@dataclass(frozen=True, eq=False)
class Stream:
    """Where the sums stand.

    Attributes:
        survey: the last one.
        waiting: ln compute and `After.filtered` of each evaluation since.
        few: of the hypotheses that are alive, after all evaluations, (4, L, K).
        totals, last: of the noise filter, likewise, under every hypothesis; see `Filtered`.
    """

    survey: Survey
    waiting: tuple[tuple[float, FloatArray], ...]
    few: FloatArray
    totals: FloatArray
    last: FloatArray

    @classmethod
    def of(cls, fit: Fit) -> Stream:
        """Of a whole fit: its lattice, with the hypotheses that it had left out."""
        everyone = np.arange(len(fit.setting.hypotheses))
        table = tabulate(fit.problem, fit.table.lattice, everyone)
        filtered = fit.problem.filtered
        return cls._after_a_survey(fit.setting, table, fit.setting.box, filtered.sums, filtered.last)

    @classmethod
    def _after_a_survey(cls, setting: Setting, table: Table, box: Box, totals: FloatArray, last: FloatArray) -> Stream:
        """Of a table of every hypothesis and node: which of them carry mass, and their sums."""
        alive, every = hopeful(table.masses.pairs, _FAINT), np.stack(table.sums)
        survey = Survey(table.lattice, box, every, alive, setting.log_weights[alive], _live(table))
        return cls(survey, (), every.take(alive, axis=1), totals, last)

    def woken(self, setting: Setting) -> Stream:
        """With every hypothesis and node, after all evaluations."""
        every, lattice = self.survey.every, self.survey.lattice
        if self.waiting:
            every = every.copy()
            inverse, gain, decay, one, reward = np.concatenate([filtered for _, filtered in self.waiting], axis=2)
            since = Filtered(inverse, gain, decay, one, reward, self.totals, self.last)
            lattice_sums(np.array([log_c for log_c, _ in self.waiting]), lattice.factors, since, LatticeSums(*every))
        everyone, priors = np.arange(len(setting.hypotheses)), log_node_priors(setting, lattice)
        survey = Survey(lattice, self.survey.box, every, everyone, setting.log_weights, priors)
        return Stream(survey, (), every, self.totals, self.last)


@dataclass(frozen=True, eq=False)
class Update:
    """What one more evaluation makes of a fit."""

    setting: Setting
    table: Table
    last: FloatArray
    stream: Stream


def updated(fit: Fit, curve: Curve, fitted_whole: int) -> Update | None:
    """The fit's stream with the last evaluation of `curve` added, or None where a refit is needed.

    Args:
        fit: of all evaluations but the last.
        curve: all of them.
        fitted_whole: beyond so many evaluations a refit averages neighbours.
    """
    setting, stream = fit.setting, fit.stream
    if curve.points <= REFERENCE_POINTS or curve.points == fitted_whole + 1 or _is_new_to_the_noise_model(fit, curve):
        return None
    grown = curve.now > 0 and log(curve.now * C_MID_REACH) - setting.box.log_mid[1] > _GROWN
    looking_again = grown or curve.points % _LOOK_AGAIN == 0
    tick, usual = _clock(curve)
    if setting.points < fit.curve.points:  # neighbours were averaged: a tick is the gap between two means
        tick, usual = tick * usual / setting.usual_gap, setting.usual_gap
    setting = setting.with_one_more(usual, box_of(setting.prior, curve.compute) if looking_again else setting.box)
    new = _new(setting, curve, tick)
    if looking_again:
        stream = stream.woken(setting)
    after, shape = _advanced(fit, setting, stream, new)
    if not looking_again and shape.moved > _SURPRISE:
        looking_again, stream = True, stream.woken(setting)
        after, shape = _advanced(fit, setting, stream, new)
    if _is_unheard_of(fit, after) or not _fits(shape, stream.survey, setting.box):
        return None
    seen, sums = stream.survey, LatticeSums(*after.few)
    table = Table(seen.lattice, seen.alive, sums, after.few_totals, seen.priors, after.masses)
    if looking_again:
        stream = Stream._after_a_survey(setting, table, seen.box, after.totals, after.last)
    else:
        waiting = *stream.waiting, (new.log_c, after.filtered)
        stream = Stream(seen, waiting, after.few, after.totals, after.last)
    return Update(setting, table, after.last, stream)


def _new(setting: Setting, curve: Curve, tick: float) -> New:
    low, width = curve.bounds[0], curve.width
    share = float(curve.noise.variance[-1]) / width**2 / setting.unit_variance
    return New(log(curve.now) if curve.now > 0 else -inf, (float(curve.reward[-1]) - low) / width, share, tick)


def _advanced(fit: Fit, setting: Setting, stream: Stream, new: New) -> tuple[After, MassShape]:
    survey = stream.survey
    beforehand = Beforehand.of(setting, survey.log_weights, survey.priors)
    wanted = Wanted(survey.alive, survey.lattice.outer, survey.lattice.edges, beforehand)
    known = Known(stream.few, stream.totals, stream.last, fit.table.masses.nodes)
    return advance(known, new, survey.lattice.factors, setting.wandering, wanted)


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
    """Whether a hypothesis joins, what is assumed of every evaluation's size changes, or one of the latest evaluations,
    far off the next, turns out to be an outlier."""
    setting = fit.setting
    if not curve.continues or curve.noise.source != setting.source:
        return True
    if len(hypotheses_for(setting.points + 1)) != len(setting.hypotheses):
        return True
    low, width = curve.bounds[0], curve.width
    a, b, c = curve.reward[-4:-1].tolist()
    if max(abs(b - a), abs(c - b)) <= width * SPIKE_SDS * LEAST_SD:
        return False
    latest = (curve.reward[-ENOUGH:] - low) / width, curve.noise.variance[-ENOUGH:] / width**2
    single, stretch = spike_variance(*latest), stretch_variance(*latest)
    return bool(single[-3] > 0 or stretch[-4] > 0)


def _is_unheard_of(fit: Fit, after: After) -> bool:
    """Whether the evaluation lies far off whatever the lattice holds, as at a jump: what explains it may lie outside,
    and what lies inside then tells nothing of that."""
    before = float(fit.table.masses.nodes.max())
    return before / fit.setting.points - (float(after.masses.nodes.max()) - before) > _UNHEARD_OF


def _fits(shape: MassShape, survey: Survey, box: Box) -> bool:
    """Whether the mass still lies well inside the lattice, whose nodes lie close enough for it."""
    lattice, laid = survey.lattice, survey.box
    if shape.coarse > _MOST_COARSE:
        return False
    if shape.low_mid > _EDGE_MASS and lattice.log_mid[: lattice.outer, 0].min() > laid.log_mid[0] + lattice.cell[1]:
        return False
    (low, high), across = laid.log_b, lattice.cell[0]
    if shape.low_b > _EDGE_MASS and lattice.log_b[0] > low + across:
        return False
    if shape.high_b > _EDGE_MASS and lattice.log_b[lattice.outer - 1] < high - across:
        return False
    if shape.high_mid <= _EDGE_MASS:
        return True
    # a lattice that reaches to the box's own end cannot be laid wider, but the box grows with the run
    at_end = lattice.log_mid[: lattice.outer, -1].max() > laid.log_mid[1] - lattice.cell[1]
    return bool(at_end and box.log_mid[1] - laid.log_mid[1] < 0.02)
