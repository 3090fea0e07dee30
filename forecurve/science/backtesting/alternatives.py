"""Other curves fitted beside the sigmoid, for comparison: a power law and a broken line in log compute (paper, A.4).

Model choice moves a ceiling more than noise does: on one window of the paper's longest run a power law says A = 1.0
where the sigmoid says 0.645. All are least squares on the same evaluations, those with compute above 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import errors
from ..arrays import FloatArray
from ..checks import MIN_POINTS, as_float, check_compute, check_kind
from ..curves.curve import Curve
from ..posterior.point import least_squares
from ..posterior.sigmoid import reward_at
from ..values import jsonable
from .baselines import power_law

_JOINTS = 200
_LEAST_SIZE = 1e-12  # of a mean squared residual, relative to the range: exact data have a BIC too


@dataclass(frozen=True)
class Alternative:
    """One kind of curve at its best.

    Attributes:
        name: sigmoid | power law | broken.
        parameters: how many it has.
        sse: sum of squared residuals.
        bic: N ln(sse / N) + parameters ln N; the lowest is the best supported.
        compute, value: what it says at that compute, inside the reward's range.
    """

    name: str
    parameters: int
    sse: float
    bic: float
    compute: float
    value: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return dict(jsonable(dict(vars(self))))


def alternatives(curve: Curve, compute: float | None = None) -> list[Alternative]:
    """The sigmoid, a power law and a broken line, the best supported first.

    Args:
        curve: at least 3 evaluations with compute above 0.
        compute: where each is read; the last evaluation's when left out.

    Raises:
        CurveError: no curve. TooFewPoints: fewer evaluations than that. ComputeOrder: no finite compute above 0.

    >>> steps = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    >>> exact = [0.2 + 0.4 / (1 + (6.0 / c) ** 1.5) for c in steps]
    >>> best = alternatives(Curve(steps, exact), compute=500.0)[0]
    >>> f"{best.name} {best.value:.3f}"
    'sigmoid 0.599'
    """
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    compute = curve.now if compute is None else compute
    check_compute("compute", compute, errors.ComputeOrder, "ask for another", "a finite compute above 0 is needed")
    at = as_float(compute)
    seen = _without_start(curve)
    found = [_sigmoid(seen, at), _power_law(seen, at), _broken(seen, at)]
    return sorted(found, key=lambda one: one.bic)


def _without_start(curve: Curve) -> Curve:
    """The evaluations with compute above 0: a power law and a logarithm have no value there."""
    if curve.compute[0] > 0:
        return curve
    if curve.points <= MIN_POINTS:
        raise errors.TooFewPoints(
            "compute",
            f"{curve.points - 1} evaluations above 0",
            f"at least {MIN_POINTS} are needed",
            "wait for more",
        )
    return Curve(curve.compute[1:], curve.reward[1:], unit=curve.unit, name=curve.name, bounds=curve.bounds)


def _sigmoid(curve: Curve, at: float) -> Alternative:
    best = least_squares(curve)
    arguments = (np.array([value]) for value in (best.A, best.B, best.C_mid, best.R0))
    return _made("sigmoid", 4, best.sse, curve, at, float(reward_at(np.array([at]), *arguments)[0, 0]))


def _power_law(curve: Curve, at: float) -> Alternative:
    best = power_law(curve)
    return _made("power law", 3, best.sse, curve, at, float(best.reward_at(at)[0]))


def _broken(curve: Curve, at: float) -> Alternative:
    """Two straight pieces in log compute that meet: level, two slopes and the joint."""
    log_c = np.log(curve.compute)
    joints = np.linspace(log_c[0], log_c[-1], _JOINTS + 2)[1:-1]
    best_sse, best_value = np.inf, 0.0
    for joint in joints:
        design = _pieces(log_c, joint)
        solution = np.linalg.lstsq(design, curve.reward, rcond=None)[0]
        sse = float(np.square(curve.reward - design @ solution).sum())
        if sse < best_sse:
            best_sse, best_value = sse, float((_pieces(np.log(np.array([at])), joint) @ solution)[0])
    return _made("broken", 4, best_sse, curve, at, best_value)


def _pieces(log_c: FloatArray, joint: float) -> FloatArray:
    return np.stack([np.ones_like(log_c), np.minimum(log_c - joint, 0.0), np.maximum(log_c - joint, 0.0)], axis=1)


def _made(name: str, parameters: int, sse: float, curve: Curve, at: float, value: float) -> Alternative:
    low, high = curve.bounds
    size = curve.points
    mean_square = max(sse / size, _LEAST_SIZE * (high - low) ** 2)
    bic = float(size * np.log(mean_square) + parameters * np.log(size))
    return Alternative(name, parameters, float(sse), bic, at, float(np.clip(value, low, high)))
