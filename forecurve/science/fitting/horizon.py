"""When will the ceiling be known? A look ahead at what further evaluations would tell."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..posterior.prior import C_MID_REACH
from ..values import SDS_TO_A_SIDE, band_of
from .evaluations import evaluations_on_curve
from .identification import unknown_ceiling

if TYPE_CHECKING:
    from .fit import Fit

_STEPS = 24
_RECENT = 1000  # evaluations whose residuals tell how they hang together
_TRUTHS = 31  # fewer make the answer jump between posteriors that hardly differ
_EACH = 2  # of the draws each second one is weighed
_TOLD = 0.5  # of what evaluations to come would tell were their noise known: it is learned from them too


def decide_at(fit: Fit) -> float | None:
    """Compute at which the data would at least halve the sd of A, if evaluations go on as of late.

    Several draws of the posterior are taken for the truth in turn. Evaluations to come that lie on its curve weigh all
    draws anew, by their likelihood; the ceiling is known once its variance under these weights is a quarter of what is
    unknown of it at the level that the run will have by then. The median over the truths is the answer
    (docs/decisions/0060).

    Returns:
        Compute in the curve's unit; the present when A is identified already; None when half of the truths need
        more than 20 times the present compute.
    """
    from .fit import IDENTIFIED

    if fit.identified["A"] >= IDENTIFIED:
        return fit.curve.now
    edges = fit.curve.now * np.geomspace(1.0, C_MID_REACH, _STEPS + 1)
    ratios: list[FloatArray] = []
    known = np.zeros(_TRUTHS, dtype=bool)
    for share in _still_unknown(fit, edges):
        ratios.append(share / (1 - IDENTIFIED))
        known |= ratios[-1] <= 1
        if 2 * known.sum() > _TRUTHS:
            break  # the median is among these
    answer = float(np.median([_first_below_1(one, edges) for one in np.transpose(ratios)]))
    return None if not np.isfinite(answer) else answer


def evaluation_noise(fit: Fit) -> float:
    """Variance of one evaluation as good as white, in the reward's own scale squared.

    The noise is the spread of an evaluation's band beyond that of the curve, where the curve is known best: at the
    present, where neither another law of the rise nor a run's leaving its curve has a say. Evaluations that hang
    together tell less than their number, by (1 + rho) / (1 - rho) with rho the lag-1 correlation of the residuals,
    shrunk to 0 as if three more evaluations had shown none.
    """
    here = np.array([fit.curve.now])
    evaluation = band_of(here, np.clip(evaluations_on_curve(fit, here), *fit.curve.bounds)).at(0)
    curve = fit.predict(here).at(0)
    stationary = (evaluation.width**2 - curve.width**2) / (2 * SDS_TO_A_SIDE) ** 2
    least = float(np.median(fit.curve.noise.variance)) / 4  # a band cut off at the end of the range says too little
    compute, reward = fit.curve.compute[-_RECENT:], fit.curve.reward[-_RECENT:]
    residual = reward - np.median(fit.all_draws.reward_at(compute), axis=1)
    total = float(residual @ residual)
    rho = float(residual[1:] @ residual[:-1]) / (total * (1 + 3 / len(residual))) if total > 0 else 0.0
    rho = min(max(rho, 0.0), 0.9)
    return max(stationary, least) * (1 + rho) / (1 - rho)


def _still_unknown(fit: Fit, edges: FloatArray) -> Iterator[FloatArray]:
    """The variance of A at one compute after the other, relative to what is unknown of it without the data's shape,
    were one draw or another the truth: (truths,)."""
    draws, low, width = fit.all_draws.each(_EACH), fit.curve.bounds[0], fit.curve.width

    def level(at: float) -> FloatArray:
        return np.asarray((draws.reward_at(np.array([at]))[0] - low) / width)

    ceilings = (draws.A - low) / width
    precision = _TOLD * np.diff(edges) / fit.curve.recent_gap / (evaluation_noise(fit) / width**2)
    truths = (np.linspace(0.0, 1.0, 2 * _TRUTHS + 1)[1::2] * len(ceilings)).astype(int)  # draws lie in order of A
    far = np.zeros((_TRUTHS, len(ceilings)))
    yield _share_unknown(far, ceilings, level(edges[0]), fit)
    for (begin, end), weight in zip(pairwise(edges), precision, strict=True):
        between = level(np.sqrt(begin * end))
        far += weight * (between[truths, None] - between) ** 2
        yield _share_unknown(far, ceilings, level(end), fit)


def _share_unknown(far: FloatArray, ceilings: FloatArray, levels: FloatArray, fit: Fit) -> FloatArray:
    """For each truth, (truths,), given twice the log likelihood that draws lose to it, (truths, K)."""
    weight = np.exp(-0.5 * far)
    weight /= weight.sum(axis=1, keepdims=True)
    variance = weight @ ceilings**2 - (weight @ ceilings) ** 2
    few = np.maximum(1 - (weight**2).sum(axis=1), 1e-9)  # a sample's variance is too small by that
    unknown = unknown_ceiling(weight @ levels, fit.setting.prior)
    return np.asarray(np.maximum(variance / few, 1e-12) / unknown**2)


def _first_below_1(ratio: FloatArray, edges: FloatArray) -> float:
    """Where it is 1; within a step its logarithm is taken to fall evenly by the log of compute."""
    below = np.flatnonzero(ratio <= 1)
    if not len(below):
        return np.inf
    step = slice(max(below[0] - 1, 0), below[0] + 1)
    return float(np.exp(np.interp(0.0, -np.log(ratio[step]), np.log(edges[step]))))
