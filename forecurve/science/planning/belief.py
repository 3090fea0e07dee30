"""What further evaluations of an arm are worth: the knowledge gradient on joint draws.

The belief is Gaussian over the arms' values at the horizon V (K,) and over what evaluations between here and there
would show Y: the mean and covariance of joint posterior draws, plus the noise of evaluations. Looking at one arm up
to some compute moves the posterior means by a Gaussian vector whose covariance is known beforehand (preposterior
analysis); the value of that look is E[max of the moved means] - max of the means now, in closed form along the
direction that matters to that arm (the correlated knowledge gradient: Frazier, Powell and Dayanik 2009).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import ndtr

from ..arrays import FloatArray, IntArray
from .worth import arm_means

_PARALLEL = 1e-12
_MOVES = 4096  # draws of where looks move the means
_JITTER = 1e-10  # of the squared range of rewards: keeps covariances of smooth curves invertible


@dataclass(frozen=True, eq=False)
class Prospect:
    """What an arm could still be asked.

    Attributes:
        edges: computes at which a look may end, increasing, the first one after the present; shape (G,).
        noise: variance of the mean of the evaluations between one edge and the next, shape (G,).
    """

    edges: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class Look:
    """One arm taken to one compute: what it costs and what it is expected to be worth."""

    arm: int
    edge: int  # index into its edges: all up to it are seen
    compute: float
    spend: float
    value: float

    @property
    def rate(self) -> float:
        """Value per unit of compute."""
        return self.value / self.spend


class Belief:
    """Gaussian belief over V and all Y; looks condition it.

    Args:
        ends: V under each joint draw, (S, K).
        middles: for each run the curve at the middle of each of its bins under each draw, (S, G_k).
        prospects: the runs' bins.
        now: compute of each run, (K,).
        width: of the range of rewards.
        most: what knowing each run's end exactly would be worth, (K,), where that is less than a Gaussian of its mean
            and variance makes of it; infinite by default.
        sizes: how many of the runs each arm has, whose mean is what is chosen by (`worth`); one each by default.
    """

    def __init__(
        self,
        ends: FloatArray,
        middles: list[FloatArray],
        prospects: list[Prospect],
        now: FloatArray,
        width: float = 1.0,
        most: FloatArray | None = None,
        sizes: Sequence[int] = (),
    ):
        self.size = ends.shape[1]
        self.sizes = tuple(sizes) or (1,) * self.size
        self.mean = ends.mean(axis=0)
        self.prospects = prospects
        self.now = np.asarray(now, dtype=np.float64).copy()
        everything = np.concatenate([ends, *middles], axis=1)
        centred = everything - everything.mean(axis=0)
        self.covariance = centred.T @ centred / len(centred)
        self.covariance[np.diag_indices(len(self.covariance))] += _JITTER * width**2
        offsets = np.cumsum([self.size, *[middle.shape[1] for middle in middles]])
        self._unseen = self.covariance[: self.size, : self.size].copy()
        self.columns: list[IntArray] = [np.arange(a, b) for a, b in pairwise(offsets)]
        self.seen = [0] * self.size
        self.most = np.full(self.size, np.inf) if most is None else np.array(most, dtype=np.float64)

    def look(self, arm: int, edge: int) -> Look:
        """The knowledge gradient of taking `arm` to its `edge`-th compute."""
        compute = float(self.prospects[arm].edges[edge])
        moved = self._moved(arm, self.columns[arm][self.seen[arm] : edge + 1], self._noise(arm, edge))
        value = min(knowledge_gradient(self._of_arms(self.mean), self._of_arms(moved)), float(self.most[arm]))
        return Look(arm, edge, compute, compute - float(self.now[arm]), value)

    def best_look(self, most: float, arms: Sequence[int] | None = None) -> Look | None:
        """The look at one of `arms` with the largest value per unit of compute that costs at most `most`, or None."""
        looks = [
            self.look(arm, edge)
            for arm in (range(self.size) if arms is None else arms)
            for edge in range(self.seen[arm], len(self.prospects[arm].edges))
            if self.prospects[arm].edges[edge] - self.now[arm] <= most * (1 + 1e-9)
        ]
        return max(looks, key=lambda look: look.rate, default=None)

    def after(self, look: Look) -> None:
        """Condition on a look: variances shrink as they will, means stay as they are expected to."""
        columns = self.columns[look.arm][self.seen[look.arm] : look.edge + 1]
        noise = self._noise(look.arm, look.edge)
        cross = self.covariance[:, columns]
        block = self.covariance[np.ix_(columns, columns)] + np.diag(noise)
        self.covariance = self.covariance - cross @ np.linalg.solve(block, cross.T)
        self.seen[look.arm] = look.edge + 1
        self.now[look.arm] = look.compute
        self.most[look.arm] -= look.value

    def saved(self) -> float:
        """E[max of the means] - max of the means now, after all looks together: two that tell of one choice save less
        than each would by itself."""
        moved = self._unseen - self.covariance[: self.size, : self.size]
        values, vectors = np.linalg.eigh(moved)
        # whichever way a vector points, its draws must not hang on the order of the arms
        vectors *= np.sign(np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0))
        normal = np.random.default_rng(20251117).standard_normal((_MOVES, self.size))
        shift = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        both = self._of_arms(np.concatenate([self.mean + shift, self.mean - shift]))
        return max(float(both.max(axis=1).mean() - self._of_arms(self.mean).max()), 0.0)

    def _of_arms(self, values: FloatArray) -> FloatArray:
        return arm_means(values, self.sizes)

    def _noise(self, arm: int, edge: int) -> FloatArray:
        return self.prospects[arm].noise[self.seen[arm] : edge + 1]

    def _moved(self, arm: int, columns: IntArray, noise: FloatArray) -> FloatArray:
        """Change of every posterior mean per standard deviation of what matters to `arm`, (K,)."""
        cross = self.covariance[: self.size, columns]  # (K, G)
        block = self.covariance[np.ix_(columns, columns)] + np.diag(noise)
        weights = np.linalg.solve(block, cross[arm])
        variance = float(cross[arm] @ weights)
        if variance <= 0:
            return np.zeros(self.size)
        return np.asarray(cross @ weights / np.sqrt(variance))


def knowledge_gradient(mean: FloatArray, slope: FloatArray) -> float:
    """E[max_k (mean_k + slope_k Z)] - max_k mean_k for Z ~ N(0, 1).

    >>> round(knowledge_gradient(np.array([0.0, 0.0]), np.array([1.0, 0.0])), 4)  # E[max(Z, 0)] = 1 / sqrt(2 pi)
    0.3989
    """
    lines = _envelope(mean, slope)
    total = 0.0
    for (a, b), (c, d) in pairwise(lines):
        z = -abs((a - c) / (d - b))
        total += (d - b) * float(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) + z * ndtr(z))
    return total


def _envelope(mean: FloatArray, slope: FloatArray) -> list[tuple[float, float]]:
    """The lines (mean, slope) that are on top somewhere, by increasing slope."""
    top: list[tuple[float, float]] = []
    for b, a in sorted(zip(slope.tolist(), mean.tolist(), strict=True)):
        if top and b - top[-1][1] < _PARALLEL:
            if top[-1][0] >= a:
                continue
            top.pop()
        while len(top) >= 2 and _hidden(top[-2], top[-1], (a, b)):
            top.pop()
        top.append((a, b))
    return top


def _hidden(left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether the middle line is nowhere above both others."""
    (a1, b1), (a2, b2), (a3, b3) = left, middle, right
    return (a1 - a3) * (b2 - b1) <= (a1 - a2) * (b3 - b1)
