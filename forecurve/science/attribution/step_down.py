"""Many claims, one error rate: step-down min-p over the joint posterior.

A claim's own p is the posterior probability that it is wrong. Under a flat prior the posterior of an effect around its
estimate mirrors the estimate's distribution around the truth, so the ranks of joint posterior draws are draws of the
p's that would be seen if every claim were wrong, with the dependence that a shared control and a shared seed spread
bring. The step-down over the smallest of them (Westfall and Young 1993; Dunnett's test where all is normal) holds the
probability of ANY wrong claim at the level, with whatever skewness the draws have.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, IntArray


def below(draws: FloatArray) -> FloatArray:
    """For each draw the share of its column that lies below it, in (0, 1): shape (D, h)."""
    size = len(draws)
    ranks = np.empty_like(draws)
    order: IntArray = np.argsort(draws, axis=0)
    np.put_along_axis(ranks, order, ((np.arange(size) + 0.5) / size)[:, None], axis=0)
    return ranks


def either_way(draws: FloatArray, margin: float) -> tuple[float, FloatArray]:
    """p of the claim that an effect lies beyond +-margin, on the side that the draws themselves choose, and its draws
    were that wrong: the other side might have been chosen, which counts where the margin is small beside the effect's
    error.

    Args:
        draws: of the effect, shape (D,), their median at 0 or above.
        margin: half-width of the region, 0 or above.

    Returns:
        p, and what it would be were the effect at the region's upper end, shape (D,).
    """
    size = len(draws)
    ordered = np.sort(draws)
    error = draws - np.median(draws)

    def up_to(values: FloatArray) -> FloatArray:
        return (np.searchsorted(ordered - np.median(draws), values, side="right") - 0.5) / size

    near, far = up_to(error), up_to(error - 2 * margin)
    reference = np.where(error <= margin, near + far, 2 - near - far)  # seen at margin - error, on either side of 0
    p = float((draws <= margin).mean() + (draws <= -margin).mean())
    return min(p, 1.0), np.clip(reference, 0.0, 1.0)


def bounds(draws: FloatArray, margin: float, p: float) -> tuple[float, float]:
    """(lower, upper) of an effect: either lies beyond +-margin exactly where the claim that the effect does, on that
    side, has a p (`either_way`) below `p`.

    Where the margin is wide beside the effect's error it is the draws' quantile at `p`, and at half of it where there
    is next to no margin.
    """
    middle = float(np.median(draws))
    return middle + _lowest(draws - middle, margin, p), middle - _lowest(middle - draws, margin, p)


def _lowest(error: FloatArray, margin: float, p: float) -> float:
    ordered = np.sort(error)
    far = np.searchsorted(ordered, ordered - 2 * margin, side="right")
    return float(np.interp(p, (np.arange(len(ordered)) + 0.5 + far) / len(ordered), ordered))


def adjusted(p: FloatArray, reference: FloatArray) -> FloatArray:
    """p of each claim, adjusted for all of them.

    Args:
        p: shape (h,).
        reference: joint draws of p were all claims wrong, shape (D, h).

    Returns:
        Adjusted p, shape (h,), never below p: claims with adjusted p below alpha are wrong with probability at most
        alpha, all together.
    """
    order = np.argsort(p, kind="stable")
    answer = np.empty(len(p))
    least = np.full(len(reference), np.inf)
    tails = np.empty(len(p))
    for place in range(len(p) - 1, -1, -1):  # from the weakest claim up: each is judged beside those not stronger
        claim = order[place]
        least = np.minimum(least, reference[:, claim])
        tails[place] = float((least <= p[claim]).mean())
    answer[order] = np.maximum.accumulate(np.maximum(tails, p[order]))
    return np.minimum(answer, 1.0)


def critical(reference: FloatArray, alpha: float) -> float:
    """The p below which the strongest of the claims counts: their `alpha`-quantile were all wrong, shape (D, h)."""
    return float(np.quantile(reference.min(axis=1), alpha))
