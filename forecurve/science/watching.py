"""Watch a live run against its frozen forecast: an e-process on whitened innovations.

If the forecast holds, the evaluations after the freeze are normal with mean m and covariance K, so with K = L L' the
innovations z = L^-1 (y - m) are independent standard normals: uncertainty of the curve and correlation are absorbed.
The evidence for a drop is the average over drifts d and start times s of

    prod_{r = s..t} exp(-d z_r - d^2 / 2),

whose expectation never exceeds 1 while the forecast holds; by Ville's inequality it ever exceeds 1/alpha with
probability at most alpha, however often it is looked at. The sharp form gives WARN (alpha 0.05). The robust form
clips z at +-2.5 before the next evaluation is judged, divides it by 1.25 and gives ALERT at the same threshold: by
simulation (20,000 futures of 75 evaluations drawn from a frozen forecast) it is false in 0.02 % of the runs, in 0.3 %
with errors 20 % larger than assumed and 1.0 % with 30 %.
Evidence is read off only at evaluations below the frozen forecast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from . import errors
from .arrays import BoolArray, FloatArray
from .frozen import FrozenForecast
from .values import Estimate
from .wording import compute_text, level_text

DRIFTS = (0.5, 1.0, 2.0, 3.0)
WARN_THRESHOLD = 20.0  # 1 / 0.05, by Ville's inequality
ALERT_THRESHOLD = 20.0  # of the robust form: at most 1 % even with a noise 30 % larger than assumed, by simulation
_CLIP = 2.5
_SHRINK = 1.25
_Z90 = 1.6448536269514722


@dataclass(frozen=True, eq=False)
class Watch:
    """The verdict on all evaluations after the freeze.

    Attributes:
        level: None, "WARN" (sharp evidence) or "ALERT" (robust evidence); once reached it stays.
        since_compute: compute of the evaluation from which the fall most likely began; None without a level.
        e_value, e_value_robust: the largest evidence so far; 20 is the threshold of both.
        z: whitened innovations, one per evaluation.
        predicted: the frozen forecast of the last evaluation, 90 %.
        actual: the last evaluation.
        shortfall: predicted median - actual.
        sentence: one line.
    """

    level: str | None
    since_compute: float | None
    e_value: float
    e_value_robust: float
    z: FloatArray
    predicted: Estimate
    actual: float
    shortfall: float
    sentence: str


def watch(
    frozen: FrozenForecast,
    compute: npt.ArrayLike,
    reward: npt.ArrayLike,
    variance: npt.ArrayLike | None = None,
) -> Watch:
    """Judge all evaluations after the freeze, in order.

    Args:
        frozen: the forecast.
        compute, reward: at least one evaluation, compute strictly increasing and after `frozen.at_compute`.
        variance: nominal sampling variance of each, computed as for the fitted curve (`Curve.noise.variance`); the
            last one's before the freeze where left out.

    Raises:
        FrozenError: no evaluations, or not after the freeze, or not numbers.
    """
    x, y, v = _evaluations(frozen, compute, reward, variance)
    mean, covariance = frozen.outlook(x, v)
    factor: FloatArray = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    z = solve_triangular(factor, y - mean, lower=True)
    below = y < mean  # a run that leaps above its forecast is no fall, whatever the innovations after the leap say
    sharp = evidence(z, frozen.horizon, below)
    robust = evidence(robust_innovations(y - mean, factor), frozen.horizon, below)
    level = _level(sharp.peak, robust.peak)
    judged = robust if level == "ALERT" else sharp
    since = None if level is None else float(x[judged.start])
    spread = _Z90 * float(np.sqrt(covariance[-1, -1]))
    low, high = frozen.bounds
    predicted = Estimate(float(mean[-1]), max(float(mean[-1]) - spread, low), min(float(mean[-1]) + spread, high))
    actual = float(y[-1])
    return Watch(
        level=level,
        since_compute=since,
        e_value=sharp.peak,
        e_value_robust=robust.peak,
        z=z,
        predicted=predicted,
        actual=actual,
        shortfall=predicted.median - actual,
        sentence=_sentence(frozen, level, since, x[-1], predicted, actual),
    )


def robust_z(z: FloatArray) -> FloatArray:
    """Innovations that a mis-scaled or heavy-tailed noise cannot carry away."""
    return np.clip(z, -_CLIP, _CLIP) / _SHRINK


def robust_innovations(shortfall: FloatArray, factor: FloatArray) -> FloatArray:
    """`robust_z` of evaluations that were each clipped before the next was judged.

    Whitening expects a run that has fallen to stay down, so its later innovations are small; clipped, the first one
    alone proves nothing. An evaluation therefore moves the expectation of the next ones by its clipped part only:
    what stays down stays a surprise.

    Args:
        shortfall: evaluations minus their mean, shape (..., H).
        factor: Cholesky factor of their covariance, shape (H, H).
    """
    clipped = np.zeros_like(shortfall)
    for t in range(shortfall.shape[-1]):
        surprise = (shortfall[..., t] - clipped[..., :t] @ factor[t, :t]) / factor[t, t]
        clipped[..., t] = np.clip(surprise, -_CLIP, _CLIP)
    return clipped / _SHRINK


@dataclass(frozen=True)
class Evidence:
    """Largest e-value so far, and the evaluation from which that fall most likely began."""

    peak: float
    start: int


def evidence(z: FloatArray, horizon: int, counts: BoolArray | None = None) -> Evidence:
    """The e-process of one run's innovations, shape (H,).

    Args:
        z: innovations.
        horizon: evaluations among which a start is looked for first.
        counts: evaluations at which the evidence is read off; all when left out. Leaving some out only makes it
            rarer to exceed a threshold.
    """
    path = e_process(z[None, :], horizon)[0]
    at = int(np.where(True if counts is None else counts, path, -np.inf).argmax())
    if counts is not None and not counts.any():
        return Evidence(1.0, 0)
    return Evidence(float(np.exp(min(path[at], 700.0))), _likely_start(z[: at + 1], horizon))


def e_process(z: FloatArray, horizon: int) -> FloatArray:
    """log E_t for many runs at once: (runs, H) -> (runs, H).

    With bets w_s opened at every s, the sum over s <= t obeys M_t = (M_{t-1} + w_t) exp(-d z_t - d^2 / 2).
    """
    weight = start_weights(z.shape[1], horizon)
    waiting = np.log(np.maximum(1.0 - np.cumsum(weight), 1e-300))  # bets that are not opened yet stand at 1
    drifts = np.array(DRIFTS)
    opened = np.full((z.shape[0], len(drifts)), -np.inf)
    path = np.empty(z.shape)
    for t in range(z.shape[1]):
        opened = np.logaddexp(opened, np.log(weight[t])) - drifts * z[:, t, None] - drifts**2 / 2
        path[:, t] = np.logaddexp(np.logaddexp.reduce(opened, axis=1) - np.log(len(drifts)), waiting[t])
    return path


def _likely_start(z: FloatArray, horizon: int) -> int:
    """The start whose best bet has grown most by the end of z."""
    drifts = np.array(DRIFTS)[:, None]
    growth = np.cumsum((-drifts * z - drifts**2 / 2)[:, ::-1], axis=1)[:, ::-1]  # from each start to the end
    return int((growth.max(axis=0) + np.log(start_weights(len(z), horizon))).argmax())


def start_weights(size: int, horizon: int) -> FloatArray:
    """Prior weight of each start time: 0.9 evenly over the horizon, the rest over all that comes later."""
    index = np.arange(1, size + 1)
    later = 0.1 * horizon / np.maximum(index * (index - 1.0), 1.0)
    return np.where(index <= horizon, 0.9 / horizon, later)


def _level(sharp: float, robust: float) -> str | None:
    if robust >= ALERT_THRESHOLD:
        return "ALERT"
    return "WARN" if sharp >= WARN_THRESHOLD else None


def _evaluations(
    frozen: FrozenForecast, compute: npt.ArrayLike, reward: npt.ArrayLike, variance: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    x = np.atleast_1d(np.asarray(compute, dtype=np.float64))
    y = np.atleast_1d(np.asarray(reward, dtype=np.float64))
    v = None if variance is None else np.atleast_1d(np.asarray(variance, dtype=np.float64))
    if len(x) == 0 or x.shape != y.shape or (v is not None and v.shape != x.shape):
        raise errors.FrozenError(
            f"reward: one per compute and at least one is needed, got {y.shape} for {x.shape}; pair them up"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise errors.FrozenError(
            "reward: finite numbers are needed, got a NaN or an infinity; leave that evaluation out"
        )
    if x[0] <= frozen.at_compute or (np.diff(x) <= 0).any():
        raise errors.FrozenError(
            f"compute: must increase from {frozen.at_compute:g} {frozen.unit}, got {x[:3].tolist()}...; "
            "pass only evaluations after the freeze, in order"
        )
    return x, y, v


def _sentence(
    frozen: FrozenForecast, level: str | None, since: float | None, now: float, predicted: Estimate, actual: float
) -> str:
    here = f"{actual:.2f} at {compute_text(now)} {frozen.unit}, forecast {level_text(predicted)}"
    if level is None or since is None:
        return f"{frozen.name} follows its forecast: {here}."
    verb = "fell below" if level == "ALERT" else "may be falling below"
    return f"{frozen.name} {verb} its own forecast: {here}, since {compute_text(since)} {frozen.unit}."
