"""What the other seeds of its arm tell of a run's end: runs that differ in nothing but their seed end about alike.

The prior (`nested`) knows of an arm's seeds what their sigmoids were. Where these are no good description, where seeds
of the arm stayed at 0 or fell, or where arms differ far more than seeds do, their ends themselves say more. A forecast
says m_j, give or take h_j, and the k_j other finished seeds of the arm ended at c_j on the mean. With seeds tau apart,

    m_j + w_j (c_j - m_j),    w_j = s_j^2 / (s_j^2 + tau^2 (1 + 1 / k_j)),    s_j^2 = h_j h,

h the usual sd: what a forecast says of its own sureness is believed by half. tau is not chosen: a lattice of it is
averaged by how past forecasts would have done, their errors Laplace of a scale that is not known. Of that such a share
is taken as would have helped them (`gains`).

Seeds that are still on their way, but far ahead, are expected to end somewhere: their doubt is added to the distance at
which seeds end. Nobody knows how wrong such expectations are, so only the median moves, and the interval stays where it
was and reaches as much further on that side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray
from ..posterior.prior import TELLING_RUNS
from .gains import careful_share

_APART: FloatArray = np.geomspace(0.003, 0.4, 8)  # seeds of an arm, of the range of rewards
_LEAST_ERROR = 1e-4

Ends = Sequence[float]


@dataclass(frozen=True, eq=False)
class Drawn:
    """How far forecasts are drawn to the ends of their arms' other seeds: of n past ones and the new one, (n + 1,).

    Attributes:
        move: of the median, in units of reward.
        narrower: their sd, as a share of what it was.
        share: of what they say that is their arm's and no longer their own.
    """

    move: FloatArray
    narrower: FloatArray
    share: FloatArray


def drawn_to_ends(
    medians: FloatArray,
    sds: FloatArray,
    came: FloatArray,
    mates: Sequence[Ends],
    width: float = 1.0,
    doubt: float = 0.0,
) -> Drawn:
    """Draw forecasts to how the other seeds of their arms ended, as far as that would have helped past ones.

    Nothing is drawn where the new run's arm has no other finished seed, or fewer than 3 past runs' arms have.

    Args:
        medians, sds: of the past forecasts and, last, the new one, shape (n + 1,).
        came: how the past runs ended, shape (n,).
        mates: how the other finished seeds of each run's arm ended, n + 1 of them, each possibly empty.
        width: of the range of rewards.
        doubt: the sd with which the ends of the new run's seeds are known, in units of reward.
    """
    number = np.array([len(ends) for ends in mates])
    known = np.flatnonzero(number[:-1])
    if not number[-1] or len(known) < TELLING_RUNS:
        return Drawn(np.zeros(len(medians)), np.ones(len(medians)), np.zeros(len(medians)))
    ended = np.array([np.mean(ends) if len(ends) else np.nan for ends in mates])
    apart = (_APART[:, None] * width) ** 2 * (1 + 1 / np.maximum(number, 1))
    apart[:, -1] += doubt**2
    own = sds * np.median(sds)
    weight = np.where(number > 0, own / (own + apart), 0.0)  # (tau, n + 1)
    away = np.where(number > 0, ended - medians, 0.0)
    wrong = (came - medians[:-1])[known]
    error = np.abs(wrong - (weight * away)[:, known]).mean(axis=1)
    belief = -len(known) * np.log(error + _LEAST_ERROR * width)
    belief = np.exp(belief - belief.max())
    belief /= belief.sum()
    move, narrower = belief @ (weight * away), belief @ np.sqrt(1 - weight)
    share = careful_share(wrong, move[known])
    return Drawn(share * move, narrower**share, share * (1 - narrower**2))
