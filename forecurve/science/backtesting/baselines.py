"""Plain forecasts to compare with: a power law, and no change at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import errors
from ..arrays import BoolArray, FloatArray
from ..checks import check_kind
from ..curves.curve import Curve
from ..fitting.outcome import Outcome
from ..values import jsonable
from .golden import golden

_LOG_B = (float(np.log(1e-3)), float(np.log(20.0)))
_NODES = 400
_ROUNDS = 40
_MOST = 1e150  # of (C / last)^-B: its square is a number too


@dataclass(frozen=True)
class PowerLaw:
    """R(C) = A - D / C^B, the limit of the sigmoid far beyond its midpoint (the paper's A.4).

    Attributes:
        A: ceiling, at most the upper bound of the reward.
        drop: what is still missing of A at the last compute, >= 0.
        scale: that compute; D = drop * scale^B.
        B: > 0.
        sse: sum of squared residuals over the points with compute above 0.
        points: how many those were.
    """

    A: float
    drop: float
    scale: float
    B: float
    sse: float
    points: int

    @property
    def D(self) -> float:
        """drop * scale^B; infinite in units of compute so small that it leaves what a float can hold."""
        with np.errstate(over="ignore"):
            return float(self.drop * np.float64(self.scale) ** self.B)

    def reward_at(self, compute: npt.ArrayLike) -> FloatArray:
        """The curve at each compute above 0, shape (N,)."""
        x = np.atleast_1d(np.asarray(compute, dtype=np.float64))
        with np.errstate(over="ignore"):
            far = np.minimum((x / self.scale) ** -self.B, _MOST)
        return np.asarray(self.A - self.drop * far)

    def to_dict(self) -> dict[str, float | None]:
        """JSON-safe."""
        return dict(jsonable({"A": self.A, "D": self.D, "B": self.B, "sse": self.sse, "points": self.points}))


def power_law(curve: Curve) -> PowerLaw:
    """Unweighted least squares of R = A - D / C^B with A at most 1 (the range's end) and D >= 0.

    Given B the curve is linear in A and D, which leaves a search in one dimension: a lattice in ln B, then golden
    section. A point at compute 0 is left out: the power law has no value there.

    Raises:
        CurveError: no curve.

    >>> compute = [1.0, 2.0, 4.0, 8.0, 16.0]
    >>> best = power_law(Curve(compute, [0.7 - 0.3 / c**0.5 for c in compute]))
    >>> f"{best.A:.3f} {best.D:.3f} {best.B:.3f}"
    '0.700 0.300 0.500'
    """
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    positive = curve.compute > 0
    reward, scale = curve.reward[positive], float(curve.compute[-1])
    log_c = np.log(curve.compute[positive] / scale)
    lattice = np.linspace(*_LOG_B, _NODES)
    sse = _linear(log_c, reward, lattice, curve.bounds[1])[2]

    def left_is_lower(left: FloatArray, right: FloatArray) -> BoolArray:
        found = _linear(log_c, reward, np.concatenate([left, right]), curve.bounds[1])[2]
        return found[:1] < found[1:]

    log_b = golden(left_is_lower, lattice[[int(sse.argmin())]], lattice[1] - lattice[0], _ROUNDS)
    ceiling, drop, sse = _linear(log_c, reward, log_b, curve.bounds[1])
    exponent = float(np.exp(log_b[0]))
    return PowerLaw(float(ceiling[0]), float(drop[0]), scale, exponent, float(sse[0]), int(positive.sum()))


def _linear(
    log_c: FloatArray, y: FloatArray, log_b: FloatArray, top: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(A, D, sse) at each ln B, shape (K,), on A <= top and D >= 0; compute as a share of the last one."""
    with np.errstate(over="ignore"):
        x = np.exp(-np.exp(log_b) * log_c[:, None])  # (C / last)^-B >= 1
    x = np.minimum(x, _MOST)
    mean_x, mean_y = x.mean(axis=0), float(y.mean())
    spread = np.square(x - mean_x).sum(axis=0)
    drop = np.maximum(-((y - mean_y) @ (x - mean_x)) / np.maximum(spread, 1e-300), 0.0)
    ceiling = mean_y + drop * mean_x
    # where A would pass the top, D alone is free
    capped = ceiling > top
    drop = np.where(capped, np.maximum((top - y) @ x / np.square(x).sum(axis=0), 0.0), drop)
    ceiling = np.where(capped, top, ceiling)
    sse = np.square(y[:, None] - (ceiling - drop * x)).sum(axis=0)
    return ceiling, drop, sse


def last_value(curve: Curve) -> float:
    """No change from here: the mean of the last 10 % of the evaluations, as runs end (see `Outcome`).

    Raises:
        CurveError: no curve.
    """
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    return Outcome.of(curve).reward
