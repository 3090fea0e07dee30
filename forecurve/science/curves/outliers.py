"""Evaluations that tell nothing of the curve: single bad ones, and stretches such as while a verifier was down.

They get their own squared distance from their neighbours as further variance, which takes nearly all of their weight;
none is deleted. Both looks are backwards only: a spike is known two evaluations later, a stretch three after its last.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray
from .noise import running_median

SPIKE_SDS = 6.0  # robust standard deviations
LEAST_SD = 0.005
ENOUGH = 80  # latest evaluations that tell whether one of the last is an outlier
_MIN_POINTS = 7
_KNOWN_FROM = 14  # evaluations before a stretch that tell the noise by themselves
_BEFORE = 6  # a stretch has so many evaluations before it, and as many as it has itself
_LONGEST = 20
_AFTER = 3  # evaluations behind it that tell whether the run goes on as before
_SHARP = 0.5  # of its depth: every evaluation of it is as deep, and the sides are no further apart


def outlier_variance(reward: FloatArray, variance: FloatArray) -> FloatArray:
    """Further variance of evaluations that lie far off what is on both sides of them, else 0; shape (N,)."""
    if len(reward) < _MIN_POINTS:
        return np.zeros(len(reward))
    return np.maximum(spike_variance(reward, variance), stretch_variance(reward, variance))


def least_spike(variance: FloatArray | float) -> FloatArray:
    """The least standard deviation of a distance between an evaluation and its neighbours' median."""
    return np.maximum(np.sqrt(1.25 * np.asarray(variance)), LEAST_SD)


def spike_variance(reward: FloatArray, variance: FloatArray) -> FloatArray:
    """Further variance of single evaluations that lie far off both neighbours, (N,), N >= 7.

    Hampel's identifier: an evaluation is compared with the median of its two neighbours on each side; beyond SPIKE_SDS
    robust standard deviations it is a spike. A fall that stays is none: its second evaluation agrees with the first.
    """
    extra = np.zeros(len(reward))
    distance = _distance(reward)
    neighbours = np.minimum(np.abs(reward[2:-2] - reward[1:-3]), np.abs(reward[2:-2] - reward[3:-1]))
    aside, least = np.minimum(np.abs(distance), neighbours), least_spike(variance[2:-2])
    if not (aside > SPIKE_SDS * least).any():  # nearly always
        return extra
    spikes = aside > SPIKE_SDS * np.maximum(_usual(distance), least)
    extra[2:-2][spikes] = distance[spikes] ** 2
    return extra


def stretch_variance(reward: FloatArray, variance: FloatArray) -> FloatArray:
    """Further variance of two evaluations and more in a row that lie far off both sides, (N,), N >= 7.

    All of them lie as far below, or above, the two evaluations before and the three after as a spike would, and from
    one evaluation to the next the run is where it was, or has grown, and goes on so. A fall that is not made good is
    none, nor one from which the run climbs back, nor a rise that stays.
    """
    extra, steps = np.zeros(len(reward)), np.abs(np.diff(reward))
    if not (steps > SPIKE_SDS * LEAST_SD).any():  # nearly always
        return extra
    far = _far(reward, variance)
    jumps = np.flatnonzero(steps > far[1:]) + 1
    end = 0
    for start in jumps[(jumps >= _BEFORE) & (jumps < len(reward) - _AFTER - 1)].tolist():
        if start < end:
            continue
        end = _end_of_stretch(reward, start, float(far[start]))
        level = (reward[start - 2 : start].mean() + reward[end : end + _AFTER].mean()) / 2
        extra[start:end] = (reward[start:end] - level) ** 2
    return extra


def _far(reward: FloatArray, variance: FloatArray) -> FloatArray:
    """What counts as far for a stretch that begins at each evaluation, by the noise of those before it, (N,).

    Where these are few it is no less than the nominal noise says, which may be a guess.
    """
    usual = np.full(len(reward), LEAST_SD)
    usual[5:] = np.maximum(_usual(_distance(reward))[: len(reward) - 5], LEAST_SD)  # the latest does not reach beyond
    few = np.arange(len(reward)) < _KNOWN_FROM
    return np.asarray(SPIKE_SDS * np.maximum(usual, np.where(few, least_spike(variance), 0.0)))


def _end_of_stretch(reward: FloatArray, start: int, far: float) -> int:
    """The first evaluation after the stretch that begins at `start`; `start` itself where none does."""
    way = 1 if reward[start] < reward[start - 1] else -1  # turned so that the stretch lies below
    before = way * reward[start - 2 : start]
    for end in range(start + 2, min(start + min(_LONGEST, start), len(reward) - _AFTER) + 1):
        inside, after = way * reward[start:end], way * reward[end : end + _AFTER]
        if inside[-1] >= before.min() - far:
            return start
        level = min(before.min(), after.min())
        least, most = level - inside.max(), level - inside.min()
        grown = way * float(after.mean() - before.mean())  # upwards, whichever way the stretch lies
        goes_on = abs(after[-1] - after[0]) <= far / 2 + abs(grown) * (_AFTER - 1) / (end - start)
        if least > max(far, _SHARP * most) and -far <= grown <= _SHARP * least and goes_on:
            return end
    return start


def _distance(reward: FloatArray) -> FloatArray:
    """From the median of two neighbours on each side, (N - 4,)."""
    around = np.sort([reward[:-4], reward[1:-3], reward[3:-1], reward[4:]], axis=0)
    return np.asarray(reward[2:-2] - (around[1] + around[2]) / 2)


def _usual(distance: FloatArray) -> FloatArray:
    """Robust standard deviation of the latest distances up to each."""
    return 1.4826 * running_median(np.abs(distance))
