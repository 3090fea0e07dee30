"""What a forecast is judged by: the mean of a run's last evaluations, and our interval for exactly that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .. import errors
from ..arrays import FloatArray
from ..checks import as_float, check_compute, check_kind, computes_of
from ..curves.curve import Curve
from ..curves.noise import FORGOTTEN, TICKS, clock_ahead
from ..departures.drift import drift
from ..posterior.evenly import Axis, normals, uniforms
from ..values import Estimate, estimate_of, spread
from .aftermath import LAST, Change, falls_on, p_lasts
from .evaluations import sampling_variance

if TYPE_CHECKING:
    from .fit import Fit

FINISHED_AT = 0.9
"""A run that has spent so much of the budget tells how another ends there. One that was cut short does not: often it
was cut short for what was forecast of it."""
SHARE = 10  # the last tenth
MOST = 30
_ROUNDING = 1e-9
_FEW = 8  # places stand for up to 30, where the last compute is at most so many times the first:
_NEAR = 2.0
_BACK = 0.2  # of runs that fell within their last two evaluations: these may be broken


def tail_size(points: int) -> int:
    """How many evaluations the last 10 % of a curve are: rounded down, at least 1, at most 30.

    >>> [tail_size(points) for points in (5, 19, 20, 299, 1000)]
    [1, 1, 2, 29, 30]
    """
    return min(MOST, max(1, points // SHARE))


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended: the mean reward of its last evaluations, and where in compute those were, shape (m,)."""

    compute: FloatArray
    reward: float

    @classmethod
    def of(cls, curve: Curve) -> Outcome:
        """Of a finished run."""
        check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
        size = tail_size(curve.points)
        return cls(curve.compute[-size:], float(curve.reward[-size:].mean()))


def stood_at(compute: FloatArray, reward: FloatArray, budget: float) -> float | None:
    """How a run that may have gone on would have ended at `budget`; None where it did not go about as far.

    Args:
        compute, reward: of its evaluations, (N,).
    """
    upto = int(np.searchsorted(compute, budget * (1 + _ROUNDING), side="right"))
    if compute[-1] < FINISHED_AT * budget or not upto:
        return None
    return float(reward[upto - tail_size(upto) : upto].mean())


def predict_ending(fit: Fit, budget: float) -> Estimate:
    """How the run will end at `budget`: the mean of the last 10 % of its evaluations, made as often as of late.

    Raises:
        CurveError: no fit, or a budget that is no compute a run can have.
    """
    _check_fit(fit)
    check_compute("budget", budget, errors.ComputeOrder, f"give compute in {fit.unit}")
    return estimate_of(ending_draws(fit, as_float(budget)))


def ending_draws(fit: Fit, budget: float) -> FloatArray:
    """Draws of how the run will end at `budget`, (K,), as `predict_ending` has them."""
    curve, gap = fit.curve, fit.curve.recent_gap
    size = tail_size(curve.points + math.floor(max(budget - curve.now, 0.0) / gap))
    return _mean_draws(fit, np.maximum(budget - gap * np.arange(size), min(curve.now, budget))[::-1])


def predict_mean(fit: Fit, compute: npt.ArrayLike) -> Estimate:
    """The mean of m future evaluations, one at each compute: median and 90 % interval.

    Where no past run tells how such a run goes on the sigmoid itself is doubted: runs leave it, the further the more
    (`drift`), and may level off more slowly (`other_rise`). Besides there are three parts, per draw of the posterior:
    the mean of the curve over the m places; the mean of the wandering part, an Ornstein-Uhlenbeck process that starts
    where it was last seen, so that its covariance between places i and j is alpha v (eta rho^|u_i - u_j| + (p - eta)
    d_i d_j) with d the decay since then and p what is unknown of its last state; and sampling noise, which shrinks as
    1/m. Where a run bends otherwise than a sigmoid the interval is wider by `Fit.widening`. After a fall, a break or a
    second rise it is that of what came since (`Change`), as far as that state lasts; else the run ends somewhere
    between there and where its whole curve would lead.

    Args:
        fit: the forecast, made before `compute`.
        compute: where, shape (m,), m at least 1, in any order.

    Raises:
        CurveError: no fit, or a compute that is not finite or below 0.
    """
    _check_fit(fit)
    x = np.sort(computes_of("compute", compute))  # the evaluation clock goes by the order of compute
    return estimate_of(_mean_draws(fit, x))


def _mean_draws(fit: Fit, x: FloatArray) -> FloatArray:
    """Draws of the mean of evaluations at x, increasing, (K,)."""
    draws = _by_all(fit, x)
    if fit.change is not None:
        draws = _after_change(fit, x, fit.change, draws)
    draws = np.clip(draws + drift(fit, x).mean(axis=0), *fit.curve.bounds)
    return np.clip(spread(draws, fit.widening), *fit.curve.bounds)


def _after_change(fit: Fit, x: FloatArray, change: Change, whole: FloatArray) -> FloatArray:
    """Draws of where a run ends that fell, broke or rose anew, given those of its whole curve.

    A fall that goes on lasts at its last evaluations. Where it has fewer than 3 yet, their mean is the level that may
    last, and the evaluations before it, or all where these are fewer than 3 too, say where the run was going.
    """
    rest = max(float(x.mean()) - fit.curve.now, 0.0)
    lasts = p_lasts(fit.curve.now - change.since, rest, change.for_good)
    if change.later is not None and falls_on(change.later):
        level, variance = change.last_level()
        return _mixed(level + np.sqrt(variance / LAST) * normals(Axis.NOISE, len(whole)), whole, lasts)
    if change.later is not None:
        return _mixed(_by_all(change.later, np.maximum(x - change.since, 0.0)), whole, lasts)
    if fit.misfit_detail is None or not fit.misfit_detail.fallen:
        return whole
    before = change.earlier or fit
    level = float(fit.curve.reward[change.before :].mean())
    noise = np.sqrt(sampling_variance(before, np.full((1, len(whole)), level))[0] / (fit.curve.points - change.before))
    still = level + noise * normals(Axis.NOISE, len(whole))
    return _mixed(still, whole if before is fit else _by_all(before, x), lasts, _BACK)


def _check_fit(fit: Fit) -> None:
    from .fit import Fit

    check_kind("fit", fit, Fit, "pass fit(curve)", errors.CurveError)


def _mixed(later: FloatArray, whole: FloatArray, lasts: float, back: float = 0.0) -> FloatArray:
    """Draws of the state that lasts with this probability, or of any place between it and the whole curve's end; of
    those that do not last a share `back` is all the way there."""
    still = uniforms(Axis.LASTS, len(later)) < lasts
    share = np.minimum(uniforms(Axis.BETWEEN, len(later)) / (1 - back), 1.0)
    return np.where(still, later, later + share * (whole - later))


def _by_all(fit: Fit, x: FloatArray) -> FloatArray:
    """Of the mean of evaluations at x, (K,), by the sigmoid and by other laws, where these have a say."""
    draws, other = _draws(fit, x), fit.other_rise
    return draws if other is None else other.mixed(draws, lambda law: _draws(law, x))


def _draws(fit: Fit, x: FloatArray) -> FloatArray:
    """Of the mean of evaluations at x, (K,)."""
    p, width = fit.posterior, fit.curve.width
    ahead = np.maximum(np.maximum(x - fit.curve.now, 0.0) / fit.setting.usual_gap, TICKS[0])
    ahead[fit.curve.resumed_before(x)] = FORGOTTEN
    clock = clock_ahead(x, fit.setting.usual_gap, fit.curve.restarts_ahead)
    eta, rho = fit.setting.wandering
    decay = (rho[:, None] ** ahead).mean(axis=1)[p.hypothesis]
    spread, eta = (eta * _shared(rho, clock))[p.hypothesis], eta[p.hypothesis]
    unit = p.alpha * fit.setting.unit_variance * width**2
    wandering = unit * np.maximum(spread + (p.state_variance - eta) * decay**2, 0.0)
    places, weights = _standing_for(x)
    curve = fit.all_draws.reward_at(places)
    sampling = np.einsum("m,mk->k", weights, sampling_variance(fit, curve)) / len(x)
    z = normals(Axis.NOISE, len(p.A))
    draws = np.einsum("m,mk->k", weights, curve) + width * p.state_mean * decay
    return np.asarray(draws + np.sqrt(wandering + sampling) * z)


def _shared(rho: FloatArray, clock: FloatArray) -> FloatArray:
    """For each rho, (H,), the mean of rho^|u_i - u_j| over all pairs: the variance of a mean of m places, relative to
    that of one."""
    lags = np.abs(clock[:, None] - clock)
    each, of = np.unique(rho, return_inverse=True)  # few are told apart: 25 hypotheses share them
    return np.asarray((each[:, None, None] ** lags).mean(axis=(1, 2))[of])


def _standing_for(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Places whose weighted mean is that of a curve at all of x: few where these are many, evenly spaced, and near one
    another, as the last tenth of a run is; a whole rise is no polynomial."""
    gaps = np.diff(x)
    if len(x) <= _FEW or x[-1] > _NEAR * x[0] or np.ptp(gaps) > _ROUNDING * x[-1]:
        return x, np.full(len(x), 1.0 / len(x))
    nodes, weights = _gauss_rule(len(x))
    return (x[0] + x[-1]) / 2 + gaps.mean() * nodes, weights


@cache
def _gauss_rule(size: int) -> tuple[FloatArray, FloatArray]:
    """Nodes about the middle, in gaps, and weights of the Gaussian rule for the mean over so many evenly spaced places:
    exact for polynomials of degree 2 x 8 - 1 (Golub and Welsch 1969, from the recurrence of Gram's polynomials)."""
    k = np.arange(1, _FEW)
    beside = np.sqrt(k**2 * (size**2 - k**2) / (4.0 * (4 * k**2 - 1)))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, vectors[0] ** 2
