"""Collapse and decline: a ramp or step down that describes the evaluations better than the sigmoid alone."""

from __future__ import annotations

from ..arrays import FloatArray
from ..wording import compute_text, reward_text
from .changes import Changes
from .extension import Extended, NullModel
from .misfit import AT_ONCE, LEAST_FALL, OVER_CUT, RATIO, Misfit, Name, least_collapse

_TOLD = 0.2  # of a fall: less of it regained is not spoken of
_SUDDEN = 2  # evaluations within which a collapse loses most of what it loses


def fall_in(null: NullModel, changes: Changes, cut: int, width: float) -> Misfit | None:
    """A fall after an early regime of `cut` evaluations, or one that describes them better than such a regime does."""
    after = changes.from_evaluation(cut + 1)
    best = after.fall_of(null)
    if _is_fall(after, best):
        return _told(null, *_dated(null, after, best, cut + 1), width)
    if not null.early:
        return None
    within = changes.from_evaluation(1, null.early)
    best = within.fall_of(null, whole=True)
    if best.ratio - null.cut_ratio < OVER_CUT or not _is_fall(within, best):
        return None
    return _told(null, *_dated(null, within, best, 1, whole=True), width)


def _is_fall(changes: Changes, best: Extended) -> bool:
    fall = float(best.values[: changes.starts[best.column]].max()) - float(best.values[-1])
    return best.ratio >= RATIO and fall >= LEAST_FALL


def _dated(
    null: NullModel, changes: Changes, best: Extended, first: int, *, whole: bool = False
) -> tuple[Extended, int]:
    """The fall as it is described best near where it was found, and the last evaluation before it.

    A few places are tried on the whole run, and lie elsewhere with every evaluation; the date must not.
    """
    compute = null.problem.compute
    near = changes.about(best.column, compute, first).with_slides(compute)
    finer = near.fall_of(null, whole, best)
    if finer.ratio > best.ratio and _is_fall(near, finer):
        return finer, int(near.starts[finer.column]) - 1
    return best, int(changes.starts[best.column]) - 1


def _told(null: NullModel, best: Extended, since: int, width: float) -> Misfit:
    peak = float(best.values[: since + 1].max())
    name: Name = "collapse" if _is_collapse(best, since, peak) else "decline"
    lowest, now = float(best.values[since + 1 :].min()), float(best.values[-1])
    back = _is_back(null.problem.reward, since)
    size, regained = (peak - lowest) * width, (now - lowest) * width
    when = float(null.problem.compute[since])
    return Misfit(name, when, size, _of_a_fall(name, size, regained, back, when, width), back=back)


def _is_back(reward: FloatArray, since: int) -> bool:
    """The last two evaluations are where the best two neighbours before the fall were."""
    pairs = (reward[1:] + reward[:-1]) / 2
    return since >= 1 and float(pairs[-1]) > float(pairs[:since].max()) - LEAST_FALL


def _of_a_fall(name: str, size: float, regained: float, back: bool, since: float, width: float) -> str:
    verb = "collapsed" if name == "collapse" else "fell"
    so_far = ""
    if back:
        so_far = " and has come back"
    elif regained >= _TOLD * size:
        so_far = f" and has regained {reward_text(regained, width)} of it"
    return f"The pass rate {verb} by {reward_text(size, width)}{so_far}, beginning about {compute_text(since)}"


def _is_collapse(best: Extended, since: int, peak: float) -> bool:
    """Sudden and large: most of the loss within two evaluations, and much of what had been gained."""
    lost = peak - float(best.values[since + 1 :].min())
    at_once = peak - float(best.values[since + 1 : since + 1 + _SUDDEN].min())
    gained = peak - float(best.values[0])
    return at_once >= AT_ONCE * lost and at_once >= least_collapse(gained)
