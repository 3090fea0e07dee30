"""A second rise, a break, or a smooth curve that is no sigmoid."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..posterior.drawing import Posterior
from ..posterior.sigmoid import rise
from ..wording import compute_text, reward_text
from .changes import BREAK_BEFORE, Changes
from .extension import Extended, NullModel
from .misfit import MOST_WIDENING, OVER_CUT, RATIO, Misfit
from .shape import Rise, Rival, logistic, rivals, widening

_BREAK_RATIO = 24.0  # a break may go either way and look like anything: more is asked of it
_LEAST_SECOND = 0.05
_LEAST_BREAK = 0.02
_SHOULDER = 0.6  # the slope between two phases is below this share of the smaller one's peak
_STEEPNESS = 6.0  # of the second phase, in log compute
_STEEP = 4.0  # at least so where the first phase still grows
_LATER = float(np.log(2.0))  # and so much later in log compute
_PHASE_POINTS = 10  # below, a second rise or a break can hardly be told from noise
_SHARPER = 6.0  # by how much a sharp change must beat every gentle one: odds of 20 to 1
_SHAPE_POINTS = 20  # below, gentle rivals have as many freedoms as the noise has turns
_WORTH = 12.0  # a sharp change or a second rise from which gentle rivals are asked
_CENTRES = 16


def another_shape(null: NullModel, changes: Changes, found: Posterior, width: float) -> Misfit | None:
    """A second rise, a break, or a smooth curve that is no sigmoid: whichever explains more than the gentler ones."""
    compute, log_c = null.problem.compute, null.problem.log_c
    if len(compute) < _PHASE_POINTS:
        return None
    cut = found.cut  # within an early regime nothing changes: it is off the curve
    seen = log_c[np.isfinite(log_c)]
    inside = float(seen[min(max(cut, 1) + 2, len(seen) - 1)]), float(seen[-4])  # too little of a later rise is seen
    centres = np.linspace(*inside, _CENTRES)
    columns = logistic(log_c, centres, _STEEPNESS)
    first = _first_phase(null, columns, centres, seen) if null.early else None
    if first is not None:
        return _two_phase(first.delta, float(centres[first.column]), width)
    second = null.extend(columns, signs=np.ones(_CENTRES))
    late = changes.from_evaluation(cut + BREAK_BEFORE)
    sharp = null.extend(late.columns, signs=np.zeros(len(late.starts)))
    if max(second.ratio, sharp.ratio) < _WORTH:
        return None
    late = late.about(sharp.column, compute).from_evaluation(cut + BREAK_BEFORE)  # as finely laid as the gentle ones
    sharp = null.extend(late.columns, signs=np.zeros(len(late.starts)), near=sharp)
    ranked = rivals(null, inside)
    smoothest = ranked[0].found.ratio
    centre = float(centres[second.column])
    broken = sharp.ratio >= max(_BREAK_RATIO, smoothest + _SHARPER) and abs(sharp.delta) >= _LEAST_BREAK
    rises = second.ratio >= max(RATIO, smoothest) and second.delta >= _LEAST_SECOND
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
    return _shape(smoothest, widening(null, found, ranked))


def _first_phase(null: NullModel, columns: FloatArray, centres: FloatArray, seen: FloatArray) -> Extended | None:
    """A second rise of which what would else be an early regime is the first phase."""
    found = null.extend(columns, np.ones(_CENTRES), whole=True)
    says_more = found.ratio - null.cut_ratio >= OVER_CUT
    rises = says_more and found.ratio >= RATIO and found.delta >= _LEAST_SECOND
    return found if rises and _has_shoulder(found, seen, float(centres[found.column])) else None


def _shape(ratio: float, wider: float) -> Misfit:
    text = "The curve is smooth, but bends otherwise than a sigmoid does"
    return Misfit("shape", None, ratio, text, float(np.clip(wider, 1.0, MOST_WIDENING)))


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
    text = f"Growth has two phases: a second rise of {reward_text(size, width)} about {compute_text(since)}"
    return Misfit("two-phase", since, size, text)


def _break(sharp: Extended, sudden: bool, since: float, width: float) -> Misfit:
    size = sharp.delta * width
    way = "up" if size > 0 else "down"
    what = f"jumps {way} by {reward_text(abs(size), width)}" if sudden else f"bends {way}"
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
