"""The alert of a run that fell below its own forecast: its words, and the evidence behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forecurve.science import FrozenForecast, Watch
from server.metrics.curve import Point

KIND = "below_forecast"
_Z90 = 1.6448536269514722


def words(name: str, verdict: Watch) -> tuple[str, str]:
    """Title and text of the alert; the text is the science's own sentence with the run's name marked."""
    fell = "fell below its forecast" if verdict.level == "ALERT" else "may be falling below its forecast"
    marked = verdict.sentence.replace(name, f"`{name}`", 1) if verdict.sentence.startswith(name) else verdict.sentence
    return f"{name} {fell}", marked


def evidence(verdict: Watch, frozen: FrozenForecast, later: Sequence[Point]) -> dict[str, Any]:
    """What a person can check: the evidence against the forecast, and each evaluation beside what was expected.

    `e_value` passes 20 for WARN, `e_value_robust` 100 for ALERT; `z` are the whitened innovations. `expected` is the
    90 % interval of the last evaluation, `points` has those of all.
    """
    compute = np.array([point.compute for point in later])
    variance = np.array([np.nan if point.variance is None else point.variance for point in later])
    mean, covariance = frozen.outlook(compute, variance)
    half = _Z90 * np.sqrt(np.diag(covariance))
    low, high = frozen.bounds
    lower, upper = np.maximum(mean - half, low), np.minimum(mean + half, high)
    return {
        "e_value": verdict.e_value,
        "e_value_robust": verdict.e_value_robust,
        "shortfall": verdict.shortfall,
        "actual": verdict.actual,
        "expected": verdict.predicted.to_dict(),
        "points": [
            {
                "step": point.step,
                "compute": point.compute,
                "reward": point.reward,
                "median": float(mean[at]),
                "lower": float(lower[at]),
                "upper": float(upper[at]),
                "z": float(verdict.z[at]),
            }
            for at, point in enumerate(later)
        ],
    }
