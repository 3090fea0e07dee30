"""Watch a live run against its frozen forecast: an e-process on whitened innovations.

If the forecast holds, the evaluations after the freeze are normal with mean m and covariance K, so with K = L L' the
innovations z = L^-1 (y - m) are independent standard normals: uncertainty of the curve and correlation are absorbed.
The evidence for a drop is the average over drifts d and start times s of

    prod_{r = s..t} exp(-d z_r - d^2 / 2),

whose expectation never exceeds 1 while the forecast holds; by Ville's inequality it ever exceeds 1/alpha with
probability at most alpha, however often it is looked at. The sharp form gives WARN (alpha 0.05). The robust form
clips z at +-2.5 and divides it by 1.25, which withstands a noise that is larger than assumed, and gives ALERT at 0.01.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from . import errors
from .arrays import FloatArray
from .frozen import FrozenForecast
from .values import Estimate
from .wording import compute_text, level_text

DRIFTS = (0.5, 1.0, 2.0, 3.0)
WARN_ALPHA = 0.05
ALERT_ALPHA = 0.01
_CLIP = 2.5
_SHRINK = 1.25
_Z90 = 1.6448536269514722


@dataclass(frozen=True, eq=False)
class Watch:
    """The verdict on all evaluations after the freeze.

    Attributes:
        level: None, "WARN" (sharp evidence) or "ALERT" (robust evidence); once reached it stays.
        since_compute: compute of the evaluation from which the fall most likely began; None without a level.
        e_value, e_value_robust: the largest evidence so far; 20 and 100 are the thresholds.
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
    z = solve_triangular(np.linalg.cholesky(covariance), y - mean, lower=True)
    sharp, robust = evidence(z, frozen.horizon), evidence(robust_z(z), frozen.horizon)
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


@dataclass(frozen=True)
class Evidence:
    """Largest e-value so far, and the evaluation from which that fall most likely began."""

    peak: float
    start: int


def evidence(z: FloatArray, horizon: int) -> Evidence:
    """The e-process of one run's innovations, shape (H,)."""
    path, pieces = _log_e_process(z[None, :], horizon)
    at = int(path[0].argmax())
    start = int(pieces[0, :, at, : at + 1].max(axis=0).argmax())
    return Evidence(float(np.exp(min(path[0, at], 700.0))), start)


def e_process(z: FloatArray, horizon: int) -> FloatArray:
    """log E_t for many runs at once: (runs, H) -> (runs, H)."""
    return _log_e_process(z, horizon)[0]


def _log_e_process(z: FloatArray, horizon: int) -> tuple[FloatArray, FloatArray]:
    """(log E, log pieces): pieces[run, drift, t, s] is the bet opened at s as it stands at t, weight included."""
    size = z.shape[1]
    drifts = np.array(DRIFTS)
    growth = np.cumsum(-drifts[None, :, None] * z[:, None, :] - drifts[None, :, None] ** 2 / 2, axis=2)
    before = np.concatenate([np.zeros((*growth.shape[:2], 1)), growth[:, :, :-1]], axis=2)
    weight = start_weights(size, horizon)
    pieces = growth[:, :, :, None] - before[:, :, None, :] + np.log(weight)
    opened = np.tril(np.ones((size, size), dtype=bool))
    pieces = np.where(opened, pieces, -np.inf)
    # bets that are not opened yet stand at 1
    waiting = np.log(np.maximum(1.0 - np.cumsum(weight), 1e-300))
    running = logsumexp(pieces, axis=(1, 3)) - np.log(len(drifts))
    return np.logaddexp(running, waiting), pieces


def start_weights(size: int, horizon: int) -> FloatArray:
    """Prior weight of each start time: 0.9 evenly over the horizon, the rest over all that comes later."""
    index = np.arange(1, size + 1)
    later = 0.1 * horizon / np.maximum(index * (index - 1.0), 1.0)
    return np.where(index <= horizon, 0.9 / horizon, later)


def _level(sharp: float, robust: float) -> str | None:
    if robust >= 1 / ALERT_ALPHA:
        return "ALERT"
    return "WARN" if sharp >= 1 / WARN_ALPHA else None


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
