"""How noisy one evaluation is, and how the noise of neighbouring evaluations hangs together.

An evaluation is the curve + a slowly wandering part (an Ornstein-Uhlenbeck process in compute) + sampling noise:

    Cov(y) = alpha * v * (diag(w) + eta * K),    K_st = rho^|u_s - u_t|

with v the nominal sampling variance of the first evaluations, w each evaluation's share of it, u a clock that ticks
once per usual gap between evaluations. alpha has an inverse-gamma prior that depends on what is known of the noise;
(eta, rho) and the length of an early regime take a few values with prior weights. Everything here looks backwards
only, so that a new evaluation never changes what the ones before it said, and a Kalman filter gives every inner product
in O(N) per parameter node.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..arrays import FloatArray, IntArray
from ..checks import LEAST_VARIANCE
from ..compiled import compiled

# Inverse-gamma (shape, rate) of alpha, by what is known. "known": sampling variance from per-prompt counts or given:
# hardly below it, possibly well above (wandering, changed prompts). "binomial": an upper bound for a fixed prompt set
# (measured: a third to a half of it), so alpha may lie below 1. "rewards": the same, of as many answers as the rewards
# themselves tell (`granularity`); with partial credit there are fewer. "unknown": a wide guess around UNKNOWN_SD.
ALPHA_PRIOR = {"known": (3.0, 3.0), "binomial": (2.0, 1.0), "rewards": (1.2, 0.8), "unknown": (0.75, 0.5)}
SOURCES = tuple(ALPHA_PRIOR)
"""From what says most to what says least."""
UNKNOWN_SD = 0.015
_LEAST_RATE = 1e-3
LEVEL_OF = 4  # latest evaluations that tell the level of one: few, so that a jump is soon known
Number = TypeVar("Number", FloatArray, float)


@dataclass(frozen=True)
class SamplingNoise:
    """Nominal sampling variance of each evaluation, shape (N,), in the reward's own scale, and where it comes from."""

    variance: FloatArray
    source: str  # one of SOURCES


@dataclass(frozen=True)
class NoiseKnown:
    """What is known of a run's noise before its own data, see `family_noise`.

    Attributes:
        weights: of `wandering.HYPOTHESES`, adding up to 1.
        alpha_priors: (source, shape, rate) of alpha's inverse-gamma, for sources of the sampling variance that are
            known.
    """

    weights: tuple[float, ...]
    alpha_priors: tuple[tuple[str, float, float], ...] = ()

    def alpha_prior(self, source: str) -> tuple[float, float]:
        """Shape and rate of alpha's inverse-gamma."""
        known = {name: (shape, rate) for name, shape, rate in self.alpha_priors}
        return known.get(source, ALPHA_PRIOR[source])


REFERENCE_POINTS = 8  # evaluations whose mean nominal variance is the unit of the noise model
TICKS = (0.2, 5.0)  # so that log-spaced evaluations are neither glued together nor cut apart
FORGOTTEN = 1e6  # ticks that a restart stands for: nothing is left of the wandering part
WINDOW = 32  # latest values whose median is the usual one; what lies behind is never looked at again


def levels_of(rate: FloatArray) -> FloatArray:
    """The pass rate that each evaluation is taken to measure: the mean of the latest LEVEL_OF up to it, shape (N,).

    Were its variance that of its own rate, one that came out nearer to 0 or 1 by chance would weigh more, and many
    small evaluations would be drawn there together, by about (1 - 2 p) / n for n samples each.
    """
    return np.asarray(latest(rate) / np.minimum(np.arange(1, len(rate) + 1), LEVEL_OF))


def latest(values: FloatArray) -> FloatArray:
    """The sum of the latest LEVEL_OF up to each, shape (N,)."""
    total = values.copy()
    for back in range(1, LEVEL_OF):
        total[back:] += values[:-back]
    return total


def numbers_of(
    size: int, prompts: FloatArray | None, samples: FloatArray | None, counts: tuple[IntArray | None, ...] | None
) -> FloatArray:
    """Answers in each evaluation, shape (size,): NaN where prompts, or one of the sizes that others have, are unknown,
    half of it would be far too few."""
    sizes = [] if prompts is None else [column for column in (prompts, samples) if column is not None]
    number = np.prod(sizes, axis=0) if sizes else np.full(size, np.nan)
    if counts is not None and samples is not None:
        for at, row in enumerate(counts):
            number[at] = number[at] if row is None else len(row) * samples[at]
    return np.asarray(number)


def next_level(before: Sequence[float], rate: float) -> float:
    """The last of `levels_of`, given the LEVEL_OF - 1 rates before it, or as many as there are."""
    return sum(reversed(before), start=rate) / (len(before) + 1)


def next_number(
    prompts: FloatArray | None, samples: FloatArray | None, counts: tuple[IntArray | None, ...] | None
) -> float:
    """`numbers_of` a single evaluation."""
    if prompts is None and counts is None:
        return math.nan
    if counts is None and prompts is not None:  # at every new evaluation: no arrays
        return float(prompts[0]) if samples is None else float(prompts[0]) * float(samples[0])
    return float(numbers_of(1, prompts, samples, counts)[0])


def filled(values: FloatArray) -> FloatArray:
    """Values with NaN where one is unknown as the last known one before has it, at first as the first known one does;
    shape (N,). What comes later changes nothing but before the first one that is known."""
    known = np.flatnonzero(~np.isnan(values))
    if len(known) in (0, len(values)):
        return values
    behind = np.searchsorted(known, np.arange(len(values)), side="right") - 1
    return np.asarray(values[known[np.maximum(behind, 0)]])


def sampling_noise(
    level: FloatArray,
    behind: FloatArray,
    scale: float,
    number: FloatArray,
    samples: FloatArray | None,
    variance: FloatArray | None,
    counts: tuple[IntArray | None, ...] | None,
    by_rewards: bool = False,
) -> SamplingNoise:
    """The best nominal variance that the curve's columns allow.

    Args:
        level: `levels_of` rewards moved to [0, 1], shape (N,).
        behind: answers that tell it, `latest` of `number`, shape (N,).
        scale: width of the reward's own range; variances come back in that range.
        number: answers in each evaluation, `filled`; shape (N,).
        samples, variance, counts: as in `Curve`.
        by_rewards: whether it is the rewards themselves that tell the numbers.
    """
    exact = _exact_variance(level, behind, scale, samples, variance, counts)
    rough = smoothed_binomial(level, number, behind) * scale**2
    if not np.isnan(exact).all():
        return SamplingNoise(filled(np.where(np.isnan(exact), rough, exact)), "known")
    if not np.isnan(rough).all():
        return SamplingNoise(rough, "rewards" if by_rewards else "binomial")
    return SamplingNoise(np.full(level.shape, (UNKNOWN_SD * scale) ** 2), "unknown")


def next_noise(level: float, behind: float, number: float, scale: float, by_rewards: bool) -> SamplingNoise:
    """`sampling_noise` of a single evaluation of which no more than its number of answers is known, or NaN."""
    if math.isnan(number):
        return SamplingNoise(np.array([(UNKNOWN_SD * scale) ** 2]), "unknown")
    source = "rewards" if by_rewards else "binomial"
    return SamplingNoise(np.array([smoothed_binomial(level, number, behind) * scale**2]), source)


def _exact_variance(
    level: FloatArray,
    behind: FloatArray,
    scale: float,
    samples: FloatArray | None,
    variance: FloatArray | None,
    counts: tuple[IntArray | None, ...] | None,
) -> FloatArray:
    exact = np.full(level.shape, np.nan) if variance is None else variance.astype(np.float64, copy=True)
    exact[exact <= 0] = np.nan  # a variance of 0 says "unknown": no evaluation is exact
    if counts is None or samples is None:
        return exact
    for at, row in enumerate(counts):
        if row is not None and np.isnan(exact[at]) and samples[at] >= 2:
            exact[at] = counts_variance(row, int(samples[at]), level[at], behind[at]) * scale**2
    return exact


def counts_variance(counts: IntArray, samples: int, level: float, behind: float) -> float:
    """Sampling variance of the mean pass rate over a FIXED prompt set: sum p(1-p)/(k-1) / N^2, moved to its level.

    Args:
        counts: successes per prompt, shape (N,).
        samples: samples per prompt, k >= 2.
        level: the pass rate that they measure, see `levels_of`.
        behind: answers that tell it.

    Returns:
        The variance: the share of the binomial one that the counts tell, a tenth at least so that it is never 0, of the
        binomial one at the level.
    """
    p = counts / samples
    size, rate = len(counts), float(p.mean())
    number = float(size * samples)
    binomial = rate * (1 - rate) / number
    share = float((p * (1 - p)).sum()) / (samples - 1) / size**2 / binomial if binomial > 0 else 1.0
    return max(share, 0.1) * smoothed_binomial(level, number, behind)


def at_levels(variance: FloatArray, rate: FloatArray, number: FloatArray) -> FloatArray:
    """What `counts_variance` found at the rates of evaluations themselves, moved to their levels; all of shape (N,)."""
    told = smoothed_binomial(levels_of(rate), number, latest(np.nan_to_num(number)))
    return variance * told / smoothed_binomial(rate, number, number)


def smoothed_binomial(level: Number, number: Number, behind: Number) -> Number:
    """p(1-p)/n, with half a success and half a failure added to the answers that tell p (Jeffreys), so that 0 and 1
    have a variance. With more of them small evaluations near 0 would look far quieter than they are allowed to be, and
    those that follow, higher up, would be expected to be as quiet.

    No rate is taken for nearer to 0 or 1 than a thousandth, or than two answers of an evaluation of more than 2,000: a
    run that stands at 0 would else be so sure of it that a rise to come counted for nothing. Nor is the variance less
    than a known one may be, however many answers there are said to be."""
    p = (level * behind + 0.5) / (behind + 1.0)
    least = 2.0 / (number + 4.0)
    if isinstance(p, float) and isinstance(least, float):
        least = min(least, _LEAST_RATE)
        p = min(max(p, least), 1.0 - least)
        return max(p * (1.0 - p) / number, LEAST_VARIANCE)
    least = np.minimum(least, _LEAST_RATE)
    p = np.clip(p, least, 1.0 - least)
    return np.maximum(p * (1.0 - p) / number, LEAST_VARIANCE)


def evaluation_clock(compute: FloatArray, restarts: tuple[float, ...] = ()) -> tuple[FloatArray, float]:
    """(ticks, usual gap): clock ticks since the evaluation before, shape (N,), the first one 0.

    A tick is a gap over the median of the latest gaps up to it, so that later evaluations change nothing behind them.
    """
    gaps = np.diff(compute)
    usual = running_median(gaps)
    ticks = np.concatenate([[0.0], clock_ticks(gaps, usual)])
    first = np.searchsorted(compute, restarts, side="right")
    ticks[first[(first > 0) & (first < len(compute))]] = np.inf  # nothing carries over a restart
    return ticks, float(usual[-1])


def running_median(values: FloatArray) -> FloatArray:
    """The median of the latest WINDOW values up to each, shape (N,)."""
    medians = np.empty(len(values))
    compiled(_median_loop, _median_rows)(values, medians)
    return medians


def _median_loop(values: Any, medians: Any) -> None:
    latest, size = np.empty(WINDOW), 0  # sorted
    for at in range(len(values)):
        if size == WINDOW:
            size -= 1
            for other in range(np.searchsorted(latest, values[at - WINDOW]), size):
                latest[other] = latest[other + 1]
        place = np.searchsorted(latest[:size], values[at])
        for other in range(size, place, -1):
            latest[other] = latest[other - 1]
        latest[place] = values[at]
        size += 1
        medians[at] = (latest[(size - 1) // 2] + latest[size // 2]) / 2


def _median_rows(values: Any, medians: Any) -> None:
    """`_median_loop` with a list."""
    latest: list[float] = []  # sorted
    numbers = values.tolist()
    for at, value in enumerate(numbers):
        if at >= WINDOW:
            latest.pop(bisect_left(latest, numbers[at - WINDOW]))
        insort(latest, value)
        medians[at] = (latest[(len(latest) - 1) // 2] + latest[len(latest) // 2]) / 2


def clock_ticks(gaps: FloatArray, usual: float | FloatArray) -> FloatArray:
    """Gaps in compute turned into ticks of the evaluation clock."""
    return np.clip(gaps / usual, *TICKS)


def clock_ahead(compute: FloatArray, usual: float, restarts: tuple[float, ...] = ()) -> FloatArray:
    """The evaluation clock at places to come, 0 at the first but for the restarts before it; shape (N,)."""
    clock = np.concatenate([[0.0], np.cumsum(clock_ticks(np.diff(compute), usual))])
    return np.asarray(clock + FORGOTTEN * np.searchsorted(np.sort(np.asarray(restarts)), compute))
