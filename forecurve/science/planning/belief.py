"""What further evaluations of an arm are worth: the knowledge gradient on joint draws.

The belief is Gaussian over the runs' values at the horizon V (K,) and over what evaluations between here and there
would show Y (K, G): the mean and covariance of joint posterior draws, plus the noise of evaluations. Looking at one
run up to some compute moves the posterior means by a Gaussian vector whose covariance is known beforehand
(preposterior analysis); the value of that look is E[max of the moved means] - max of the means now, in closed form
along the direction that matters to that run (`gradients`).

Of the covariance of Y only each run's own block is kept. What a look takes from the rest is a factor of a few columns,
and the covariance with the next run that is looked at is asked of the draws and these factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .gradients import knowledge_gradients
from .worth import arm_means

_MOVES = 4096  # draws of where looks move the means
_JITTER = 1e-10  # of the squared range of rewards: keeps covariances of smooth curves invertible
_AT_ONCE = 1 << 21  # slopes that are in memory at the same time


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
        self.most = np.full(self.size, np.inf) if most is None else np.array(most, dtype=np.float64)
        self._jitter = _JITTER * width**2
        self._edges = _padded([prospect.edges for prospect in prospects], np.inf)  # (K, G)
        self._noise = _padded([prospect.noise for prospect in prospects], 1.0)
        self._unseen = np.isfinite(self._edges)  # bins of which nothing is known yet
        bins = self._edges.shape[1]
        self._draws = np.zeros((self.size, bins, len(ends)))  # of Y, about their means
        for own, middle in zip(self._draws, middles, strict=True):
            own[: middle.shape[1]] = (middle - middle.mean(axis=0)).T
        draws = len(ends)
        together = self._flat(self._draws) @ (ends - self.mean) / draws
        self._cross = together.reshape(self.size, bins, self.size)  # of Y with V
        self._blocks = np.array([own @ own.T for own in self._draws]) / draws  # of each run's Y, (K, G, G)
        self._blocks[:, np.arange(bins), np.arange(bins)] += self._jitter
        self._factors: list[FloatArray] = []  # (K, G, g) of each look: times itself what it took off Y's covariance
        self._moves = np.zeros((self.size, self.size))  # likewise of V's, of all looks together

    def look(self, arm: int, edge: int) -> Look:
        """The knowledge gradient of taking `arm` to its `edge`-th compute."""
        value = self._values(np.array([arm]), self._unseen[[arm]])[0, edge]
        compute = float(self._edges[arm, edge])
        return Look(arm, edge, compute, compute - float(self.now[arm]), float(value))

    def best_look(self, most: float, arms: Sequence[int] | None = None) -> Look | None:
        """The look at one of `arms` with the largest value per unit of compute that costs at most `most`, or None."""
        which = np.arange(self.size) if arms is None else np.array(arms, dtype=np.int64)
        spends = self._edges[which] - self.now[which, None]
        wanted = self._unseen[which] & (spends <= most * (1 + 1e-9))
        if not wanted.any():
            return None
        values = self._values(which, wanted)
        rates = np.where(wanted, values / np.where(wanted, spends, 1.0), -np.inf)
        place, edge = divmod(int(rates.argmax()), rates.shape[1])
        arm, compute = int(which[place]), float(self._edges[which[place], edge])
        return Look(arm, edge, compute, float(spends[place, edge]), float(values[place, edge]))

    def after(self, look: Look) -> None:
        """Condition on a look: variances shrink as they will, means stay as they are expected to."""
        seen = np.flatnonzero(self._unseen[look.arm, : look.edge + 1])
        across = self._covariance_with(look.arm, seen)
        block = across[look.arm, seen] + np.diag(self._noise[look.arm, seen])
        root = np.linalg.cholesky(block)
        factor = np.asarray(np.linalg.solve(root, self._flat(across).T)).T.reshape(across.shape)
        moves = np.linalg.solve(root, self._cross[look.arm, seen])  # (g, K)
        self._moves += moves.T @ moves
        self._cross -= (self._flat(factor) @ moves).reshape(self._cross.shape)
        self._blocks -= np.einsum("kag,kbg->kab", factor, factor)
        self._factors.append(factor)
        self._unseen[look.arm, : look.edge + 1] = False
        self.now[look.arm] = look.compute
        self.most[look.arm] -= look.value

    def saved(self) -> float:
        """E[max of the means] - max of the means now, after all looks together: two that tell of one choice save less
        than each would by itself."""
        values, vectors = np.linalg.eigh(self._moves)
        # whichever way a vector points, its draws must not hang on the order of the arms
        vectors *= np.sign(np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0))
        normal = np.random.default_rng(20251117).standard_normal((_MOVES, self.size))
        shift = (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        both = self._of_arms(np.concatenate([self.mean + shift, self.mean - shift]))
        return max(float(both.max(axis=1).mean() - self._of_arms(self.mean).max()), 0.0)

    def _of_arms(self, values: FloatArray) -> FloatArray:
        return arm_means(values, self.sizes)

    def _values(self, which: IntArray, wanted: BoolArray) -> FloatArray:
        """The knowledge gradient of the looks that are wanted at these runs, and 0 of the others; (N, G) each."""
        values = np.zeros(wanted.shape)
        chunk = max(_AT_ONCE // max(wanted.shape[1] * self.size, 1), 1)
        for first in range(0, len(which), chunk):
            part = slice(first, first + chunk)
            slopes = self._of_arms(self._moved(which[part])[wanted[part]])
            values[part][wanted[part]] = knowledge_gradients(self._of_arms(self.mean), slopes)
        return np.asarray(np.minimum(values, self.most[which, None]))

    def _moved(self, which: IntArray) -> FloatArray:
        """Change of every posterior mean per standard deviation of what matters to each of these runs, for a look up to
        each of its bins, (N, G, K). The root of a block is that of its leading ones, so one serves all of a run's."""
        unseen = self._unseen[which]
        cross = np.where(unseen[..., None], self._cross[which], 0.0)
        blocks = np.where(unseen[:, :, None] & unseen[:, None, :], self._blocks[which], 0.0)
        every = np.arange(blocks.shape[1])
        blocks[:, every, every] += np.where(unseen, self._noise[which], 1.0)
        steps = np.linalg.solve(np.linalg.cholesky(blocks), cross)
        own = np.take_along_axis(steps, which[:, None, None], axis=2)  # (N, G, 1)
        toward, variance = np.cumsum(steps * own, axis=1), np.cumsum(own**2, axis=1)
        return np.asarray(np.where(variance > 0, toward, 0.0) / np.sqrt(np.where(variance > 0, variance, 1.0)))

    def _covariance_with(self, arm: int, bins: IntArray) -> FloatArray:
        """Of every run's Y with some of one run's, (K, G, g), after all looks until now."""
        own = self._draws[arm, bins]
        across = np.asarray(self._flat(self._draws) @ own.T / own.shape[1]).reshape(*self._edges.shape, len(bins))
        across[arm, bins, np.arange(len(bins))] += self._jitter
        for factor in self._factors:
            across -= (self._flat(factor) @ factor[arm, bins].T).reshape(across.shape)
        return across

    @staticmethod
    def _flat(of_bins: FloatArray) -> FloatArray:
        """(K, G, N) as (K * G, N), for one large product in place of many small ones."""
        return of_bins.reshape(-1, of_bins.shape[2])


def _padded(rows: list[FloatArray], nothing: float) -> FloatArray:
    """Rows of several lengths as one array, (K, G)."""
    whole = np.full((len(rows), max(map(len, rows), default=0)), nothing)
    for own, row in zip(whole, rows, strict=True):
        own[: len(row)] = row
    return whole
