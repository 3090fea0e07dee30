"""When a run reaches a target: the first time that its level, the pass rate without noise, is there.

Each draw of the posterior has a path from now on: its level (`levels`), where past runs tell moved and spread at the
budget as the interval of the end is (`Conformal`), before it in proportion to the logarithm of compute. It is the
forecast of the end, read the other way round (docs/decisions/0059).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from ..arrays import FloatArray
from ..checks import as_float, check_compute, check_kind, number
from ..fitting.fit import Fit
from ..fitting.level import levels, on_curves
from ..past.conformal import Conformal
from ..posterior.sigmoid import compute_at
from ..values import Reach

if TYPE_CHECKING:
    from ..past.hindsight import Hindsight

FURTHEST = 20.0
"""Times the present compute, or the budget if that is more: how far runs leave their curves beyond nobody has seen, and
from there on a path keeps the distance from its curve that it has then."""
_PLACES = 64
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)  # between milestones, of the range of rewards
_MOST_MILESTONES = 5


def compute_to_reach(fit: Fit, target: float, budget: float | None = None, hindsight: Hindsight | None = None) -> Reach:
    """See `Fit.compute_to_reach`."""
    wanted = number("target", target)
    if not np.isfinite(wanted):
        raise errors.RewardRange("target", target, "a finite reward is needed", "give one inside the range")
    low, high = fit.curve.bounds
    if not low <= wanted <= high:
        needed = f"rewards of this run are from {low:g} to {high:g}"
        raise errors.RewardRange("target", target, needed, "give one of these")
    budget = _budget(fit, budget)
    return _reach(_paths(fit, budget, hindsight), wanted, budget)


def milestones(fit: Fit, budget: float | None = None, hindsight: Hindsight | None = None) -> list[Reach]:
    """When the run reaches the next round levels: 5 at most, up to the highest that one draw in twenty is at by the
    budget, or by twice the present compute. Arguments and errors as of `Fit.compute_to_reach`."""
    check_kind("fit", fit, Fit, "pass fit(curve)", errors.CurveError)
    budget = _budget(fit, budget)
    paths, (low, high) = _paths(fit, budget, hindsight), fit.curve.bounds
    end = 2 * fit.curve.now if budget is None else max(budget, fit.curve.now)
    here = float(np.median(paths.level[0]))
    top = min(float(np.quantile(paths.level[np.searchsorted(paths.compute, end)], 0.95)), high)
    width = high - low
    step = next((one for one in _STEPS if (top - here) / width <= one * _MOST_MILESTONES), _STEPS[-1])
    first, last = (int(np.floor((level - low) / width / step)) for level in (here, top))
    levels = [float(f"{low + width * step * at:.12g}") for at in range(first + 1, last + 1)]
    return [_reach(paths, level, budget) for level in levels]


def _budget(fit: Fit, budget: float | None) -> float | None:
    if budget is None:
        return None
    check_compute("budget", budget, errors.ComputeOrder, f"give compute in {fit.unit}")
    return as_float(budget)


def _reach(paths: _Paths, target: float, budget: float | None) -> Reach:
    when = paths.first_at(target)
    # an infinite draw is "never": quantiles are order statistics, never an interpolation with infinity
    lower, median, upper = np.quantile(when, (0.05, 0.5, 0.95), method="inverted_cdf")
    by_budget = None if budget is None else float((when <= budget).mean())
    return Reach(target, float(median), float(lower), float(upper), float(np.isinf(when).mean()), by_budget)


@dataclass(frozen=True, eq=False)
class _Paths:
    """The level of each draw from now on.

    Attributes:
        compute: now and later, (m,).
        level: there, (m, K).
        curve: A, B, C_mid, R0, whether it is Burr's, and where it begins, of the curve that a draw is on up to now,
            (6, K).
        off: how far it has left that at the last place, (K,).
    """

    compute: FloatArray
    level: FloatArray
    curve: FloatArray
    off: FloatArray

    def first_at(self, target: float) -> FloatArray:
        """Compute at which each draw is there for the first time, (K,); inf for never."""
        there = self.level >= target
        already, within = there[0], there.any(axis=0)
        when: FloatArray = np.maximum(self._on_curve(target - self.off), self.compute[-1])
        when[already] = np.minimum(self._on_curve(target), self.compute[0])[already]
        coming = np.flatnonzero(within & ~already)
        at = there[:, coming].argmax(axis=0)
        before, after = self.level[at - 1, coming], self.level[at, coming]
        log_c = np.log(self.compute)
        share = (target - before) / (after - before)
        when[coming] = np.exp(log_c[at - 1] + share * (log_c[at] - log_c[at - 1]))
        return when

    def _on_curve(self, target: float | FloatArray) -> FloatArray:
        A, B, C_mid, R0, burr, begins = self.curve
        counted = compute_at(target, A, B, C_mid, R0, burr=burr > 0)
        return np.asarray(np.where(counted > 0, begins + counted, 0.0))


def _paths(fit: Fit, budget: float | None, hindsight: Hindsight | None) -> _Paths:
    now, other = fit.curve.now, fit.other_rise
    ahead = _ahead(fit, budget)
    compute = np.geomspace(now, max(FURTHEST * now, ahead or now), _PLACES)
    compute = compute if ahead is None else np.unique(np.append(compute, ahead))
    curve = _parameters(fit)
    if other is not None:
        curve = other.mixed(curve, _parameters)
    level = told_levels(fit, compute, budget, hindsight)
    return _Paths(compute, level, curve, level[-1] - on_curves(fit, compute[-1:])[0])


def told_levels(fit: Fit, compute: FloatArray, budget: float | None, hindsight: Hindsight | None) -> FloatArray:
    """Draws of the level at each compute from now on, (m, K), with what past forecasts got wrong where that tells."""
    level, now, ahead = levels(fit, compute), fit.curve.now, _ahead(fit, budget)
    if ahead is None or hindsight is None or not hindsight.runs or fit.withheld:
        return level
    share = np.clip(np.log(compute / now) / np.log(ahead / now), 0.0, 1.0)
    at_budget = levels(fit, np.array([ahead]))[0]
    return np.asarray(level + share[:, None] * _moved_by(hindsight, at_budget, fit.curve.bounds))


def _ahead(fit: Fit, budget: float | None) -> float | None:
    return budget if budget is not None and budget > fit.curve.now else None


def _parameters(fit: Fit) -> FloatArray:
    """See `_Paths.curve`."""
    d = fit.all_draws
    return np.stack([d.A, d.B, d.C_mid, d.R0, np.full(len(d.A), float(d.burr)), np.full(len(d.A), d.begins)])


def _moved_by(hindsight: Hindsight, ends: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    """By how much draws of the end, (K,), have to be moved to lie about the told end as they do about the posterior's:
    those above its median as much further from it as the interval's upper end is, and those below as its lower one."""
    own = hindsight.estimate
    told = Conformal.of(hindsight).apply(own, bounds)
    ends, least = np.clip(ends, *bounds), 1e-9 * (bounds[1] - bounds[0])
    up = (told.upper - told.median) / max(own.upper - own.median, least)
    down = (told.median - told.lower) / max(own.median - own.lower, least)
    away = ends - own.median
    return np.asarray(told.median + away * np.where(away > 0, up, down) - ends)
