"""From the evaluations of a run to the curve that is fitted: what rises in compute, with its noise and its restarts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from forecurve.science import Curve
from forecurve.science.arrays import FloatArray
from forecurve.science.curves.noise import at_levels
from server.metrics.curve import PASS_RATES, Point

MIN_POINTS = 4
"""Evaluations, the start included, below which nothing is said of a run."""


def curve_of(
    name: str, unit: str, points: Sequence[Point], seed: int | None = None, bounds: tuple[float, float] = PASS_RATES
) -> Curve:
    """The curve of points whose compute rises, and whose rewards lie in `bounds`.

    Raises:
        CurveError: they are no curve (e.g. rewards out of range).
    """
    return Curve(
        compute=[point.compute for point in points],
        reward=[point.reward for point in points],
        unit=unit,
        name=name,
        prompts=column(points, "prompts"),
        samples=column(points, "samples"),
        variance=_variances(points),
        restarts=restarts(points),
        seed=seed,
        bounds=bounds,
    )


def _variances(points: Sequence[Point]) -> FloatArray | None:
    """As `Curve` has them of counts; NaN where unknown."""
    known, reward = column(points, "variance"), column(points, "reward")
    prompts, samples = column(points, "prompts"), column(points, "samples")
    if known is None or reward is None or prompts is None or samples is None:
        return None
    return at_levels(known, reward, prompts * samples)


def rising(points: Sequence[Point]) -> list[Point]:
    """The points whose compute rises with their step; where it does not, the later ones are believed.

    A resumed attempt may count compute from an earlier place than the last evaluation that is kept of the one before.
    """
    kept: list[Point] = []
    for point in reversed(points):
        if not kept or point.compute < kept[-1].compute:
            kept.append(point)
    return kept[::-1]


def restarts(points: Sequence[Point]) -> list[float]:
    """Compute of the last evaluation before each change of attempt: what comes after it is a new segment of the curve.

    It is not the compute of the checkpoint that an attempt resumed from. That may lie before the last evaluation that
    is kept of the attempt before, which would then count to the segment of the new one.
    """
    return [before.compute for before, after in pairwise(points) if before.attempt != after.attempt]


def column(points: Sequence[Point], name: str) -> FloatArray | None:
    """One number per point, NaN where unknown; None when nothing is known."""
    values = np.array([getattr(point, name) for point in points], dtype=float)
    return None if np.isnan(values).all() else values
