"""A frozen forecast's draws as a few Gaussian pieces: what is not known of the curve, and the noise, in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .surprise import Mixture

_SIZE = 50  # draws of one piece
_DOF = (5.0, 1000.0)


@dataclass(frozen=True, eq=False)
class Pieces:
    """J groups of at most M draws, and in each L wandering parts, one for each correlation among the hypotheses.

    Attributes:
        draws: of each group, (J, M), those beyond its own any.
        there: which of them are its own, (J, M).
        sampling: variance of one usual evaluation, (J,).
        rho: correlation of each wandering part over a tick of the clock, (L,).
        wandering: variance of each, (J, L).
        unknown: what was not known of each at the freeze, (J, L).
        dof: degrees of freedom with which the scale of all variances is known.
    """

    draws: IntArray
    there: BoolArray
    sampling: FloatArray
    rho: FloatArray
    wandering: FloatArray
    unknown: FloatArray
    dof: float

    @classmethod
    def of(
        cls,
        end: FloatArray,
        scale: FloatArray,
        hypothesis: IntArray,
        hypotheses: tuple[tuple[float, float], ...],
        state_variance: FloatArray,
    ) -> Pieces:
        """Of K draws.

        Args:
            end: reward at the horizon of the freeze, (K,).
            scale: noise variance, (K,).
            hypothesis: index of each draw's own, (K,).
            hypotheses: (eta, rho) of each.
            state_variance: of the wandering part in units of the scale, of each hypothesis.
        """
        groups = _groups(end, hypothesis, len(hypotheses))
        dof = _degrees_of_freedom(scale, groups)
        eta, rhos = np.array(hypotheses).T
        share = np.stack([np.bincount(hypothesis[one], scale[one], len(eta)) / len(one) for one in groups])
        share *= _scale(dof) * (eta > 0)
        rho = np.unique(rhos[(share > 0).any(axis=0)])
        same = (rhos[:, None] == rho).astype(np.float64)  # parts that fade alike are one
        widest = max(len(one) for one in groups)
        return cls(
            draws=np.stack([np.pad(one, (0, widest - len(one))) for one in groups]),
            there=np.stack([np.arange(widest) < len(one) for one in groups]),
            sampling=np.array([scale[one].mean() for one in groups]) * _scale(dof),
            rho=rho,
            wandering=(share * eta) @ same,
            unknown=(share * state_variance) @ same,
            dof=dof,
        )

    def mixture(self, drawn: FloatArray, shares: FloatArray, clock: FloatArray, since: float) -> Mixture:
        """The joint forecast of H evaluations.

        Args:
            drawn: the curve of each draw at each, (H, K).
            shares: sampling variance of each over a usual one's, (H,).
            clock: at each, (H,).
            since: the clock at the evaluation before the first.
        """
        size = self.there.sum(axis=1)
        own = np.take(drawn, self.draws, axis=1) * self.there  # (H, J, M)
        mean = own.sum(axis=2) / size
        off = (own - mean[:, :, None]) * self.there * np.sqrt(_scale(self.dof) / size)[:, None]
        faded = _power(self.rho, np.diff(clock, prepend=since)[:, None])  # (H, L)
        fresh = self.wandering * (1.0 - faded**2)[:, None]  # (H, J, L)
        by_then = self.wandering + (self.unknown - self.wandering) * _power(self.rho, 2.0 * clock[:, None])[:, None]
        sampling = shares[:, None] * self.sampling
        steady = np.ones((len(clock), self.draws.shape[1]))
        return Mixture(
            weight=size / size.sum(),
            mean=mean,
            variance=(off**2).sum(axis=2) + by_then.sum(axis=2) + sampling,
            sampling=sampling,
            loading=np.concatenate([off, np.ones(fresh.shape)], axis=2),
            start=np.concatenate([np.ones(self.draws.shape), self.unknown], axis=1),
            carried=np.concatenate([steady, faded], axis=1),
            fresh=np.concatenate([np.zeros(off.shape), fresh], axis=2),
            dof=self.dof,
        )


def _groups(end: FloatArray, hypothesis: IntArray, kinds: int) -> list[IntArray]:
    """Draws with one noise hypothesis and neighbouring ends, some _SIZE in each group; few ones join together."""
    same: list[IntArray] = []
    few: list[IntArray] = []
    for index in range(kinds):
        mine = np.flatnonzero(hypothesis == index)
        (same if len(mine) >= _SIZE / 2 else few).append(mine)
    together = np.concatenate(few) if few else np.empty(0, dtype=np.int64)
    if len(together) >= _SIZE / 2 or not same:
        same.append(together)
    elif len(together):
        same[0] = np.concatenate([same[0], together])
    return [
        group
        for mine in same
        for group in np.array_split(mine[np.argsort(end[mine], kind="stable")], max(1, round(len(mine) / _SIZE)))
    ]


def _degrees_of_freedom(scale: FloatArray, groups: list[IntArray]) -> float:
    """2a of the inverse-gamma that the scales within the groups look like: Var(log scale) = 1 / (a - 1/2)."""
    logs = np.concatenate([np.log(scale[group]) - np.log(scale[group]).mean() for group in groups])
    return float(np.clip(1.0 + 2.0 / max(float(logs.var()), 1e-6), _DOF[0], _DOF[1]))


def _scale(dof: float) -> float:
    """The squared scale of a Student-t whose variance is 1."""
    return (dof - 2) / dof


def _power(rho: FloatArray, ticks: FloatArray) -> FloatArray:
    """rho^ticks, 0 where it is negligible: denormal numbers make linear algebra a hundred times slower."""
    return np.where(ticks < np.log(1e-12) / np.log(rho), rho ** np.minimum(ticks, 1e3), 0.0)
