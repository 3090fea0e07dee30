"""Several unfinished arms of one sweep as siblings: joint draws of their curves.

Each arm's own posterior is known by its draws. The arms are taken as siblings, theta_i = (A, ln B, ln C_mid)_i ~
0.9 N(mu, S) + 0.1 (the arm's own flat prior), with mu unknown and S = diag(s_d sd_d)^2: sd the spread that siblings
have by default, ln s_d ~ N(0, 1/2^2). For a candidate (mu, s) the marginal likelihood of an arm is an average over its
draws,

    F_i(mu, s) = 0.9 mean_k [ N(theta_ik | mu, S) / p0(theta_ik) ] + 0.1,

where p0 is the prior under which it was fitted, so that no arm has to be fitted again. A joint draw is a candidate,
chosen in proportion to p(mu) p(s) prod_i F_i / (density by which it was proposed), and then one draw of every arm
in proportion to the terms of its F_i. What the arms share (how far up the unseen ceiling is, say) is thereby common
to all arms of a joint draw and cancels where they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from ..arrays import Float32Array, FloatArray, IntArray
from ..past.family import SPREAD
from ..past.parameters import Parameters, log_density, parameters_of
from ..posterior.evenly import picks
from ..posterior.sigmoid import log_compute, rise

if TYPE_CHECKING:
    from ..fitting.fit import Fit

JOINT_DRAWS = 2000
OWN = 0.1  # share of arms that are no siblings, as in the robust sibling prior
_SPREAD_SD = 0.5  # of the logarithm of each spread's factor s: a sweep may be 2.3 times tighter or wider (90 %)
_THIN = 500  # draws of an arm that a marginal likelihood averages over
_CANDIDATES = 192, 192, 192, 768  # centres and spreads proposed, the later ones by the moments of the round before
_KEPT = 200  # candidates that joint draws are made of, each with as many draws of every arm
_MOST_LOG_DENSITY = 80.0  # that single precision holds: a spread of next to nothing, which its prior rules out


@dataclass(frozen=True, eq=False)
class Joint:
    """Equally weighted joint draws, every array of shape (S, K): S draws, K arms; rewards in their own scale."""

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray

    def arm(self, at: int, compute: FloatArray) -> FloatArray:
        """The curve of one arm at each compute: (S, G)."""
        g = rise(log_compute(compute), np.log(self.B[:, at]), np.log(self.C_mid[:, at])).T
        start, ceiling = self.R0[:, [at]], self.A[:, [at]]
        return np.asarray(start + (ceiling - start) * g)


def joint_draws(fits: Sequence[Fit], *, siblings: bool = True, seed: int = 0) -> Joint:
    """Joint draws of the arms' curves.

    Args:
        fits: one per arm, in one unit of compute and on one scale of rewards; may be none.
        siblings: let the arms inform one another; else each arm stands for itself.
        seed: of the drawing.
    """
    rng = np.random.default_rng(seed)
    if not fits:
        nothing = np.empty((JOINT_DRAWS, 0))
        return Joint(nothing, nothing, nothing, nothing)
    if siblings and len(fits) > 1:
        chosen = _Siblings([parameters_of(fit) for fit in fits]).choose(JOINT_DRAWS, rng)
    else:
        chosen = np.stack([rng.integers(0, len(fit.all_draws.A), JOINT_DRAWS) for fit in fits], axis=1)
    draws = [fit.all_draws for fit in fits]
    pick = [[getattr(d, name)[chosen[:, at]] for at, d in enumerate(draws)] for name in ("A", "B", "C_mid", "R0")]
    A, B, C_mid, R0 = (np.stack(columns, axis=1) for columns in pick)
    return Joint(A, B, C_mid, R0)


class _Siblings:
    """Candidates (mu, s) and how well each explains every arm."""

    def __init__(self, arms: list[Parameters]):
        self.arms = arms
        self.thin = [arm.thinned(_THIN) for arm in arms]
        self.over_prior = [np.exp(-thin.log_prior).astype(np.float32) for thin in self.thin]

    def choose(self, size: int, rng: np.random.Generator) -> IntArray:
        """Indices of the arms' draws, shape (size, K)."""
        first, *further = _CANDIDATES
        found = self._first(first, rng)
        for number in further:
            found = self._next(_moments(found), number, rng)
        weight = np.exp(found.log_weight - found.log_weight.max())
        picked = picks(np.cumsum(weight), _KEPT, rng.random())
        candidate = np.repeat(picked, -(-size // _KEPT))[:size]
        chosen = np.empty((size, len(self.arms)), dtype=np.int64)
        for at, (thin, density) in enumerate(zip(self.thin, found.density, strict=True)):
            chosen[:, at] = thin.index[_pick(self.over_prior[at], density, candidate, rng)]
        return chosen

    def _first(self, number: int, rng: np.random.Generator) -> _Round:
        """Spreads from their prior; centres from the arms' own draws, blurred by the spread."""
        log_s = _SPREAD_SD * rng.standard_normal((number, 3))
        sd = np.array(SPREAD) * np.exp(log_s)
        arm, row = rng.integers(0, len(self.thin), number), rng.random(number)
        base = [self.thin[i].theta[int(u * len(self.thin[i].theta))] for i, u in zip(arm, row, strict=True)]
        mu = np.stack(base) + sd * rng.standard_normal((number, 3))
        density = [_normal(thin.theta, mu, sd) for thin in self.thin]
        proposal = np.mean([each.mean(axis=0, dtype=np.float64) for each in density], axis=0)
        log_weight = self._explained(density) + self._log_centre(mu) - np.log(proposal + 1e-300)
        return _Round(np.concatenate([mu, log_s], axis=1), log_weight, density)

    def _next(self, moments: tuple[FloatArray, FloatArray], number: int, rng: np.random.Generator) -> _Round:
        """Centres and spreads from the moments of the round before."""
        centre, root = moments
        candidates = centre + _student(rng, (number, 6)) @ root.T
        mu, log_s = candidates[:, :3], candidates[:, 3:]
        density = [_normal(thin.theta, mu, np.array(SPREAD) * np.exp(log_s)) for thin in self.thin]
        log_prior = self._log_centre(mu) - 0.5 * ((log_s / _SPREAD_SD) ** 2).sum(axis=1)
        log_weight = self._explained(density) + log_prior - _log_student(candidates, centre, root)
        return _Round(candidates, log_weight, density)

    def _explained(self, density: list[Float32Array]) -> FloatArray:
        """Log of the product of the arms' marginal likelihoods under each candidate: (M,)."""
        total = np.zeros(density[0].shape[1])
        for over_prior, each in zip(self.over_prior, density, strict=True):
            total += np.log((1 - OWN) * (over_prior @ each) / len(over_prior) + OWN)
        return total

    def _log_centre(self, mu: FloatArray) -> FloatArray:
        """Log prior of the centre: that under which the arms were fitted, averaged where they differ."""
        densities = [log_density(arm.prior, mu, arm.box, 0.0) for arm in self.arms]
        inside = np.where((mu[:, 0] > 0) & (mu[:, 0] < 1), 0.0, -50.0)  # a ceiling lies in the reward's range
        return np.asarray(np.mean(densities, axis=0) + inside)


@dataclass(frozen=True, eq=False)
class _Round:
    candidates: FloatArray  # (mu, ln s), (M, 6)
    log_weight: FloatArray  # (M,)
    density: list[Float32Array]  # N(theta | mu, diag (s sd)^2) of every arm's draws, each (D, M)


def _normal(theta: FloatArray, mu: FloatArray, sd: FloatArray) -> Float32Array:
    """N(theta | mu, diag sd^2) for every draw and candidate: (D, M), by one matrix product."""
    centre = theta.mean(axis=0)  # single precision suffices around it
    m, precision = mu - centre, 1 / sd**2
    x = np.concatenate([theta - centre, (theta - centre) ** 2], axis=1).astype(np.float32)  # (D, 6)
    linear = np.concatenate([m * precision, -0.5 * precision], axis=1).astype(np.float32)  # (M, 6)
    constant = -0.5 * (m**2 * precision).sum(axis=1) - np.log(sd).sum(axis=1) - 1.5 * np.log(2 * np.pi)
    exponent = x @ linear.T
    exponent += constant.astype(np.float32)
    return np.asarray(np.exp(np.minimum(exponent, np.float32(_MOST_LOG_DENSITY), out=exponent), out=exponent))


def _moments(found: _Round) -> tuple[FloatArray, FloatArray]:
    """Centre and root of the next round's proposal: the weighted moments of the last one, widened."""
    weight = np.exp(found.log_weight - logsumexp(found.log_weight))
    centre = np.asarray(weight @ found.candidates, dtype=np.float64)
    centred = found.candidates - centre
    least = np.diag(np.concatenate([0.3 * np.array(SPREAD), np.full(3, 0.5 * _SPREAD_SD)]) ** 2)
    return centre, np.asarray(np.linalg.cholesky(1.5 * (centred * weight[:, None]).T @ centred + least))


_DOF = 5.0


def _student(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Multivariate Student-t rows of unit scale."""
    return np.asarray(rng.standard_normal(shape) / np.sqrt(rng.chisquare(_DOF, shape[0]) / _DOF)[:, None])


def _log_student(x: FloatArray, centre: FloatArray, root: FloatArray) -> FloatArray:
    """Log density of the above, up to a constant."""
    z = np.linalg.solve(root, (x - centre).T)
    return np.asarray(-(_DOF + len(centre)) / 2 * np.log1p((z**2).sum(axis=0) / _DOF))


def _pick(over_prior: Float32Array, density: Float32Array, candidate: IntArray, rng: np.random.Generator) -> IntArray:
    """For every joint draw's candidate one of the arm's draws, in proportion to its term in F: (S,)."""
    rows = []
    columns, counts = np.unique(candidate, return_counts=True)  # candidates come in increasing order
    terms = (1 - OWN) * over_prior[:, None] * density[:, columns] + OWN
    totals = np.cumsum(terms, axis=0, dtype=np.float64)
    for at, count in enumerate(counts):
        # stratified: the draws taken for one candidate spread over its whole range, in random order
        u = (rng.permutation(count) + rng.random(count)) / count
        rows.append(np.searchsorted(totals[:, at], u * totals[-1, at]))
    return np.asarray(np.minimum(np.concatenate(rows), len(totals) - 1))
