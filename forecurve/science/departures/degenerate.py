"""Runs that are no sigmoid by a look at their rewards: without a shape, or lost below their start."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from ..curves.curve import Curve
from ..wording import compute_text, reward_text
from .misfit import AT_ONCE, LARGE, LEAST_FALL, Misfit, Name, least_collapse

_FAR = 4.0  # standard errors of a difference
_APART = 3.0  # likewise, of each of those that are far off together by a large part of the range
_TIMES = 1.5  # as large as other changes the other way
_BEFORE = 3  # evaluations that a single one must lie below, as far as there are so many,
_BEYOND_LUCK = 6.0  # by so many standard errors of a difference
_BEYOND_USUAL = 3.0  # and so many times the largest fall before
_ROUNDING = 1e-9  # of the range: means of the same rewards differ in their last digit


def degenerate(curve: Curve) -> Misfit | None:
    """Curves without a shape: all at one end of the range, all the same, or all far below the start."""
    reward, off = curve.reward, _ROUNDING * curve.width
    for end in curve.bounds:
        if (np.abs(reward - end) <= off).all():
            return Misfit("pinned", None, float(end), f"Every evaluation is {end:g}, so there is no curve to fit yet")
    if np.ptp(reward) <= off:
        return Misfit("constant", None, 0.0, f"Every evaluation is {reward[0]:.3g}, so there is no curve to fit yet")
    return _below_start(curve)


def _below_start(curve: Curve) -> Misfit | None:
    """A measured start far above all that followed. A start that was measured otherwise is better left out."""
    fall = float(curve.reward[0] - curve.reward[1:].max())
    least = max(_FAR * float(np.sqrt(2 * curve.noise.variance[0])), LEAST_FALL * curve.width)
    if curve.compute[0] > 0 or fall < least or fall <= _TIMES * max(0.0, *-np.diff(curve.reward[1:])):
        return None
    text = f"The pass rate fell by {reward_text(fall, curve.width)} and never came back, beginning about 0"
    return Misfit("decline", 0.0, fall, text)


def lost_all(curve: Curve) -> Misfit | None:
    """A run whose last evaluations, two or more, lie far below all that came before: clear without any fit."""
    reward, noise = curve.reward, curve.noise.variance
    low = reward < reward[0] - _FAR * np.sqrt(noise[0] + noise)
    if curve.points < 4 or not low[-2:].all():
        return None
    since = int(np.flatnonzero(~low)[-1])
    large = LARGE * curve.width
    if not any(_is_apart(reward, noise, cut, large) for cut in range(since + 1, curve.points - 1)):
        return None
    peak = float(reward[: since + 1].max())
    fall, at_once = peak - float(reward[-1]), float(reward[since] - reward[since + 1])
    if fall < LEAST_FALL * curve.width:
        return None
    name: Name = "collapse" if at_once >= AT_ONCE * fall else "decline"
    verb = "collapsed" if name == "collapse" else "fell"
    when = float(curve.compute[since])
    size = reward_text(fall, curve.width)
    text = f"The pass rate {verb} by {size}, to less than it began with, beginning about {compute_text(when)}"
    return Misfit(name, when, fall, text)


def lost_at_last(curve: Curve) -> Misfit | None:
    """A run whose last evaluation alone lies far below those before it, and so many answers are known to be behind each
    that no luck explains it. The curve has no place for it: one that goes between is wrong if the run has fallen, and
    wrong if the evaluation is broken."""
    reward, noise = curve.reward, curve.noise.variance
    before, last = reward[:-1], float(reward[-1])
    if curve.noise.source == "unknown":
        return None
    lowest = max(len(before) - _BEFORE, 0) + int(before[-_BEFORE:].argmin())
    gap, fall = float(reward[lowest]) - last, float(np.median(before[-_BEFORE:])) - last
    usual = max(0.0, float(-np.diff(before).min()))
    if gap <= max(_BEYOND_LUCK * float(np.sqrt(noise[lowest] + noise[-1])), _BEYOND_USUAL * usual):
        return None
    if fall < curve.width * least_collapse(float(before.max() - before[0]) / curve.width):
        return None
    when = float(curve.compute[-2])
    doubt = "unless its last evaluation is a broken one"
    text = f"The pass rate collapsed by {reward_text(fall, curve.width)}, {doubt}, beginning about {compute_text(when)}"
    return Misfit("collapse", when, fall, text)


def _is_apart(reward: FloatArray, noise: FloatArray, cut: int, large: float) -> bool:
    """Whether all from `cut` on lie below all before it, by what is told of their sizes and by the run's own ups and
    downs: more than 1.5 times the usual fall before and rise after it. Of those that lie so much lower together one may
    come nearer: what is left of a run swings."""
    before, after = reward[:cut], reward[cut:]
    bottom = int(before.argmin())
    gaps = before[bottom] - after
    against = np.concatenate([-np.diff(before), np.diff(after)])
    usual = float(np.median(against[against > 0])) if (against > 0).any() else 0.0
    errors, together = np.sqrt(noise[bottom] + noise[cut:]), float(gaps.mean())
    least = _APART if together > max(large, _FAR * float(errors.mean())) else _FAR
    return bool((gaps > least * errors).all() and gaps.min() > _TIMES * usual)
