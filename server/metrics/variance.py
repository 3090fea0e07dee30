"""The sampling variance of a pass rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from forecurve.science.curves.noise import counts_variance

from .curve import Point


def known_variance(samples: int | None, counts: Sequence[int] | None) -> float | None:
    """Variance of a pass rate, at that rate, over repeated sampling of its fixed set of prompts, by each prompt's own
    successes, as `Curve` has it; None without counts, or where a single sample a prompt tells nothing of it."""
    if counts is None or samples is None or samples < 2:
        return None
    successes = np.asarray(counts)
    return counts_variance(successes, samples, float(successes.mean()) / samples, float(successes.size * samples))


def standard_error(point: Point) -> float | None:
    """Of an evaluation, as it is shown; None when the number of samples is not known.

    Without counts it is binomial, p (1 - p) / (N k), which also counts the spread between prompts: an upper bound, and
    so nothing that a fit may take for known.
    """
    if point.variance is not None:
        return math.sqrt(point.variance)
    total = (point.prompts or 0) * (point.samples or 1)
    return math.sqrt(point.reward * (1 - point.reward) / total) if total else None
