"""When one sigmoid is the wrong curve: named, dated and sized, and what becomes of the forecast.

The tests compare the best sigmoid with the best sigmoid + one further term (extension.py): a ramp or step down for a
decline or a collapse, a second logistic step up for two-phase growth, a ramp or step either way for a break. Because
both sides share the noise hypotheses, which include a wandering part, wandering is not mistaken for any of these; it
shows as wider intervals instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray, IntArray
from ..curves.curve import Curve
from ..posterior.drawing import Posterior
from ..posterior.problem import Problem
from ..posterior.sigmoid import rise
from ..wording import compute_text
from .extension import Comparison, Extended, ramps, steps
from .residuals import hanging
from .shape import Rise, Rival, logistic, rivals, widening

HOLDS = (None, "residuals", "shape")  # misfits with which the forecast is still given
FALLEN = ("collapse", "decline")
CHANGED = (*FALLEN, "break")  # after which a run is a run of its own
SHAPELESS = ("pinned", "constant")

_RATIO = 18.0  # twice the log likelihood ratio; about 1e-4 by chi-square, more after the search over change points
_BREAK_RATIO = 24.0  # a break may go either way and look like anything: more is asked of it
_OVER_CUT = 6.0  # of a change within what would else be an early regime, over the sigmoid with that regime
_FAR = 4.0  # standard errors of a difference
_LEAST_FALL = 0.02  # of the reward's range: smaller falls are no reason to act
_LEAST_SECOND = 0.05
_LEAST_BREAK = 0.02
_COLLAPSE = 0.5  # a sudden loss of this share of all that was gained, or of _LARGE of the range
_LARGE = 0.15
_TOLD = 0.2  # of a fall: less of it regained is not spoken of
_AT_ONCE = 0.6  # of the loss
_SUDDEN = 2  # evaluations within which a collapse loses most of what it loses
_SHOULDER = 0.6  # the slope between two phases is below this share of the smaller one's peak
_STEEPNESS = 6.0  # of the second phase, in log compute
_STEEP = 4.0  # at least so where the first phase still grows
_LATER = float(np.log(2.0))  # and so much later in log compute
_MIN_POINTS = 6
_PHASE_POINTS = 10  # below, a second rise or a break can hardly be told from noise
_BREAK_BEFORE = 3  # evaluations before a break: fewer say nothing of what it broke with
_SHARPER = 6.0  # by how much a sharp change must beat every gentle one: odds of 20 to 1
_SHAPE_POINTS = 20  # below, gentle rivals have as many freedoms as the noise has turns
_WORTH = 12.0  # a sharp change or a second rise from which gentle rivals are asked
_CHANGES = 16
_CENTRES = 16
_SHARPEST = 5  # jumps between neighbours that are tried as sudden
_MOST_WIDENING = 5.0


@dataclass(frozen=True)
class Misfit:
    """A reason not to trust the sigmoid.

    Attributes:
        name: pinned | constant | collapse | decline | two-phase | break | shape | residuals.
        since: compute from which it shows, None for the whole curve.
        size: the fall at its deepest, second rise, level change, twice the log likelihood ratio or autocorrelation.
        sentence: what a colleague would say.
        widening: factor, at least 1, by which intervals at later compute should be widened about their median; None
            when the forecast is to be withheld.
    """

    name: str
    since: float | None
    size: float
    sentence: str
    widening: float | None = None
    back: bool = False
    """Whether a run that fell is again where it fell from."""

    @property
    def withheld(self) -> bool:
        """Whether no forecast should be given: the curve is not the one that the forecast assumes."""
        return self.widening is None

    @property
    def fallen(self) -> bool:
        """Whether the run has lost what it had, and not come back."""
        return self.name in FALLEN and not self.back


def degenerate(curve: Curve) -> Misfit | None:
    """Curves without a shape: all at one end of the range, all the same, or all far below the start."""
    reward, (low, high) = curve.reward, curve.bounds
    if (reward == low).all() or (reward == high).all():
        end = low if reward[0] == low else high
        return Misfit("pinned", None, float(end), f"Every evaluation is {end:g}: there is no curve to fit yet")
    if (reward == reward[0]).all():
        return Misfit("constant", None, 0.0, f"Every evaluation is {reward[0]:.3g}: there is no curve to fit yet")
    return _below_start(curve)


def _below_start(curve: Curve) -> Misfit | None:
    """A measured start far above all that followed. A start that was measured otherwise is better left out."""
    fall = float(curve.reward[0] - curve.reward[1:].max())
    least = max(_FAR * float(np.sqrt(2 * curve.noise.variance[0])), _LEAST_FALL * (curve.bounds[1] - curve.bounds[0]))
    if curve.compute[0] > 0 or fall < least:
        return None
    return Misfit("decline", 0.0, fall, f"The pass rate fell by {fall:.2f} and never came back, beginning about 0")


def lost_all(curve: Curve) -> Misfit | None:
    """A run whose last evaluations, two or more, lie far below its start: clear without any fit."""
    reward, noise = curve.reward, curve.noise.variance
    low = reward < reward[0] - _FAR * np.sqrt(noise[0] + noise)
    if curve.points < 4 or not low[-2:].all():
        return None
    since = int(np.flatnonzero(~low)[-1])
    peak, width = float(reward[: since + 1].max()), curve.bounds[1] - curve.bounds[0]
    fall, at_once = peak - float(reward[-1]), float(reward[since] - reward[since + 1])
    if fall < _LEAST_FALL * width:
        return None
    name, verb = ("collapse", "collapsed") if at_once >= _AT_ONCE * fall else ("decline", "fell")
    when = float(curve.compute[since])
    text = f"The pass rate {verb} by {fall:.2f}, to less than it began with, beginning about {compute_text(when)}"
    return Misfit(name, when, fall, text)


def find_misfit(problem: Problem, found: Posterior, width: float) -> Misfit | None:
    """The first of collapse or decline, two-phase, break, shape and residuals that holds.

    A `shape` whose residuals hang together as well is as much less sure as the worse of the two says.

    Args:
        problem: the scaled curve.
        found: its posterior, whose nodes contain the best sigmoid.
        width: of the reward's range, for the sizes that are reported.
    """
    compute = problem.compute
    if len(compute) < _MIN_POINTS:
        return None
    comparison = Comparison.of(problem, found)
    changes = _Changes.of(problem, compute)
    changed = _fall(comparison, changes, found.cut, compute, width)
    changed = changed or _another_shape(comparison, changes, found, compute, width)
    if changed is not None and changed.withheld:
        return changed
    residuals = _residuals(comparison)
    if changed is None or residuals is None:
        return changed or residuals
    return replace(changed, widening=max(changed.widening or 1.0, residuals.widening or 1.0))


def _residuals(comparison: Comparison) -> Misfit | None:
    found = hanging(comparison)
    if found is None:
        return None
    lag, wider = found
    text = f"Residuals hang together along the curve (correlation {lag:.2f})"
    return Misfit("residuals", None, lag, text, float(np.clip(wider, 1.0, _MOST_WIDENING)))


@dataclass(frozen=True, eq=False)
class _Changes:
    """Evaluations at which something may have changed, and the columns that say how."""

    starts: IntArray  # (T,)
    sudden: IntArray  # 1 for a step, 0 for a ramp
    columns: FloatArray  # (N, T)

    @classmethod
    def of(cls, problem: Problem, compute: FloatArray) -> _Changes:
        restarts = np.flatnonzero(np.isinf(problem.ticks[: len(compute) - 1]))  # a run may go on otherwise than before
        slow = np.unique(np.r_[1, restarts, np.linspace(3, len(compute) - 2, _CHANGES)].astype(np.int64))
        sharp = np.unique(np.r_[1, restarts, _sharpest_jumps(problem.reward)])
        return cls(
            starts=np.concatenate([slow, sharp]),
            sudden=np.repeat([0, 1], [len(slow), len(sharp)]),
            columns=np.concatenate([ramps(compute, slow), steps(len(compute), sharp)], axis=1),
        )

    def from_evaluation(self, first: int, last: int | None = None) -> _Changes:
        """Those with so many evaluations before them, and no more than `last`."""
        kept = (self.starts >= first) & (last is None or self.starts <= last)
        return _Changes(self.starts[kept], self.sudden[kept], self.columns[:, kept])

    def fall_of(self, comparison: Comparison, whole: bool = False) -> Extended:
        """The best of them as a fall."""
        return comparison.extend(self.columns, np.full(len(self.starts), -1.0), whole)

    def about(self, column: int, compute: FloatArray) -> _Changes:
        """Bends and jumps at every evaluation near that of one column."""
        reach = len(compute) // _CHANGES + 1
        centre = int(self.starts[column])
        near = np.arange(max(centre - reach, _BREAK_BEFORE), min(centre + reach, len(compute) - 2) + 1)
        return _Changes(
            starts=np.concatenate([near, near]),
            sudden=np.repeat([0, 1], len(near)),
            columns=np.concatenate([ramps(compute, near), steps(len(compute), near)], axis=1),
        )


def _sharpest_jumps(reward: FloatArray) -> IntArray:
    """Evaluations that begin a jump up or down: the mean of two lies far off the mean of the two before."""
    pairs = (reward[1:] + reward[:-1]) / 2
    jumps = pairs[2:] - pairs[:-2]  # jumps[i] compares evaluations i+2, i+3 with i, i+1
    order = np.argsort(jumps) + 2
    return np.unique([at for at in (*order[:_SHARPEST], *order[-_SHARPEST:]) if at >= 3]).astype(np.int64)


# --- collapse and decline ---


def _fall(comparison: Comparison, changes: _Changes, cut: int, compute: FloatArray, width: float) -> Misfit | None:
    """A fall after an early regime of `cut` evaluations, or one that describes them better than such a regime does."""
    after = changes.from_evaluation(cut + 1)
    found = _fallen(comparison, after, after.fall_of(comparison), compute, width)
    if found is not None or not comparison.early:
        return found
    within = changes.from_evaluation(1, comparison.early)
    best = within.fall_of(comparison, whole=True)
    says_more = best.ratio - 2 * comparison.gained_by_cutting >= _OVER_CUT
    return _fallen(comparison, within, best, compute, width) if says_more else None


def _fallen(
    comparison: Comparison, changes: _Changes, best: Extended, compute: FloatArray, width: float
) -> Misfit | None:
    since = int(changes.starts[best.column]) - 1  # the last evaluation before it
    peak = float(best.values[: since + 1].max())
    fall = peak - float(best.values[-1])
    if best.ratio < _RATIO or fall < _LEAST_FALL:
        return None
    name = "collapse" if _is_collapse(best, since, peak) else "decline"
    lowest, now = float(best.values[since + 1 :].min()), float(best.values[-1])
    back = _is_back(comparison.problem.reward, since)
    size, regained = (peak - lowest) * width, (now - lowest) * width
    return Misfit(name, float(compute[since]), size, _of_a_fall(name, size, regained, back, compute[since]), back=back)


def _is_back(reward: FloatArray, since: int) -> bool:
    """The last two evaluations are where the best two neighbours before the fall were."""
    pairs = (reward[1:] + reward[:-1]) / 2
    return since >= 1 and float(pairs[-1]) > float(pairs[:since].max()) - _LEAST_FALL


def _of_a_fall(name: str, size: float, regained: float, back: bool, since: float) -> str:
    verb = "collapsed" if name == "collapse" else "fell"
    so_far = ""
    if back:
        so_far = " and has come back"
    elif regained >= _TOLD * size:
        so_far = f" and has regained {regained:.2f} of it"
    return f"The pass rate {verb} by {size:.2f}{so_far}, beginning about {compute_text(float(since))}"


def _is_collapse(best: Extended, since: int, peak: float) -> bool:
    """Sudden and large: most of the loss within two evaluations, and much of what had been gained."""
    lost = peak - float(best.values[since + 1 :].min())
    at_once = peak - float(best.values[since + 1 : since + 1 + _SUDDEN].min())
    gained = peak - float(best.values[0])
    return at_once >= _AT_ONCE * lost and at_once >= min(_LARGE, max(_COLLAPSE * gained, 2 * _LEAST_FALL))


# --- two-phase growth, breaks and other shapes ---


def _another_shape(
    comparison: Comparison, changes: _Changes, found: Posterior, compute: FloatArray, width: float
) -> Misfit | None:
    """A second rise, a break, or a smooth curve that is no sigmoid: whichever explains more than the gentler ones."""
    if len(compute) < _PHASE_POINTS:
        return None
    log_c, cut = comparison.problem.log_c, found.cut  # within an early regime nothing changes: it is off the curve
    seen = log_c[np.isfinite(log_c)]
    inside = float(seen[min(max(cut, 1) + 2, len(seen) - 1)]), float(seen[-4])  # too little of a later rise is seen
    centres = np.linspace(*inside, _CENTRES)
    columns = logistic(log_c, centres, _STEEPNESS)
    first = _first_phase(comparison, columns, centres, seen) if comparison.early else None
    if first is not None:
        return _two_phase(first.delta, float(centres[first.column]), width)
    second = comparison.extend(columns, signs=np.ones(_CENTRES))
    late = changes.from_evaluation(cut + _BREAK_BEFORE)
    sharp = comparison.extend(late.columns, signs=np.zeros(len(late.starts)))
    if max(second.ratio, sharp.ratio) < _WORTH:
        return None
    late = late.about(sharp.column, compute).from_evaluation(cut + _BREAK_BEFORE)  # as finely laid as the gentle ones
    sharp = comparison.extend(late.columns, signs=np.zeros(len(late.starts)), near=sharp)
    ranked = rivals(comparison, inside)
    smoothest = ranked[0].found.ratio
    centre = float(centres[second.column])
    broken = sharp.ratio >= max(_BREAK_RATIO, smoothest + _SHARPER) and abs(sharp.delta) >= _LEAST_BREAK
    rises = second.ratio >= max(_RATIO, smoothest) and second.delta >= _LEAST_SECOND
    # a shoulder shows two phases by itself; without one, a second rise must say more than any other change
    if rises and (second.ratio >= sharp.ratio if broken else _has_shoulder(second, seen, centre)):
        return _two_phase(second.delta, centre, width)
    later = _steep_second_rise(ranked, inside, sharp.ratio if broken else 0.0)
    if later is not None:
        return _two_phase(later.height, later.centre, width)
    if broken:
        sudden = bool(late.sudden[sharp.column])
        return _break(sharp, sudden, float(compute[late.starts[sharp.column] - 1]), width)
    if smoothest < _BREAK_RATIO or len(compute) < _SHAPE_POINTS:
        return None
    return _shape(smoothest, widening(comparison, found, ranked))


def _first_phase(comparison: Comparison, columns: FloatArray, centres: FloatArray, seen: FloatArray) -> Extended | None:
    """A second rise of which what would else be an early regime is the first phase."""
    found = comparison.extend(columns, np.ones(_CENTRES), whole=True)
    says_more = found.ratio - 2 * comparison.gained_by_cutting >= _OVER_CUT
    rises = says_more and found.ratio >= _RATIO and found.delta >= _LEAST_SECOND
    return found if rises and _has_shoulder(found, seen, float(centres[found.column])) else None


def _shape(ratio: float, wider: float) -> Misfit:
    text = "The curve is smooth, but bends otherwise than a sigmoid does"
    return Misfit("shape", None, ratio, text, float(np.clip(wider, 1.0, _MOST_WIDENING)))


def _steep_second_rise(ranked: list[Rival], inside: tuple[float, float], sharp: float) -> Rise | None:
    """A second rise while the first phase still grows, without a dip between them.

    Of the best pairs of smooth rises the later one is steep and far from the earlier one, and no other pair describes
    the evaluations nearly as well, nor a sharp change as well.
    """
    steep = [rival for rival in ranked if _is_second_rise(*rival.in_turn, inside)]
    others = max((rival.found.ratio for rival in ranked if rival not in steep), default=0.0)
    least = max(_BREAK_RATIO, others + _SHARPER, sharp)
    return steep[0].in_turn[1] if steep and steep[0].found.ratio >= least else None


def _is_second_rise(early: Rise, late: Rise, inside: tuple[float, float]) -> bool:
    large = min(early.height, late.height) >= _LEAST_SECOND
    return (
        large and late.slope >= _STEEP and late.centre - early.centre >= _LATER and inside[0] < late.centre < inside[1]
    )


def _two_phase(size: float, log_since: float, width: float) -> Misfit:
    size, since = size * width, float(np.exp(log_since))
    text = f"Growth has two phases: a second rise of {size:.2f} about {compute_text(since)}"
    return Misfit("two-phase", since, size, text)


def _break(sharp: Extended, sudden: bool, since: float, width: float) -> Misfit:
    size = sharp.delta * width
    way = "up" if size > 0 else "down"
    what = f"jumps {way} by {abs(size):.2f}" if sudden else f"bends {way}"
    text = f"The curve {what} as after a change of the recipe, about {compute_text(since)}"
    return Misfit("break", since, size, text)


def _has_shoulder(best: Extended, seen: FloatArray, centre: float) -> bool:
    """Whether the slope in log compute really dips between two phases, inside the data."""
    fine = np.linspace(seen[0], seen[-1], 200)
    first = rise(fine, best.node[:1], best.node[1:])[:, 0]
    second = logistic(fine, np.array([centre]), _STEEPNESS)[:, 0]
    slope = np.gradient(best.height * first + best.delta * second, fine)
    steepest_before, steepest_after = np.maximum.accumulate(slope), np.maximum.accumulate(slope[::-1])[::-1]
    return bool((slope < _SHOULDER * np.minimum(steepest_before, steepest_after)).any())
