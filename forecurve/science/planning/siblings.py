"""Members of one family, the arms of a sweep or the seeds of an arm: what they have in common, and a draw of each.

A member is known by draws theta (A, ln B, ln C_mid) of its own posterior under a prior p0. Members are theta_i ~
0.9 N(mu, S) + 0.1 (the member's own flat prior), with mu unknown and S = diag(s_d sd_d)^2: sd the spread that they have
by default, ln s_d ~ N(0, 1/2^2). For a candidate (mu, s) the marginal likelihood of a member is an average over its
draws,

    F_i(mu, s) = 0.9 mean_k [ N(theta_ik | mu, S) / p0(theta_ik) ] + 0.1,

so that none has to be fitted again. A joint draw is a candidate, chosen in proportion to p(mu) p(s) prod_i F_i /
(density by which it was proposed), and then one draw of every member in proportion to the terms of its F_i.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..arrays import Float32Array, FloatArray, IntArray
from ..past.parameters import Parameters, log_density
from ..posterior.evenly import picks

OWN = 0.1  # share of members that are none of the family, as in the robust sibling prior
_SPREAD_SD = 0.5  # of the logarithm of each spread's factor s: a family may be 2.3 times tighter or wider (90 %)
_THIN = 500  # draws of a member that a marginal likelihood averages over
_MOST_LOG_DENSITY = 80.0  # that single precision holds: a spread of next to nothing, which its prior rules out


@dataclass(frozen=True)
class Effort:
    """How many centres and spreads are proposed, round by round, each but the first by the moments of the one before;
    and of how many of the last ones joint draws are made, each with as many draws of every member."""

    proposed: tuple[int, ...]
    kept: int


@dataclass(frozen=True, eq=False)
class Chosen:
    """Joint draws: indices of the members' draws, (S, K), and the centre of each, (S, 3), with its log prior, (S,)."""

    index: IntArray
    centre: FloatArray
    log_prior: FloatArray


class Family:
    """Candidates (mu, s) and how well each explains every member.

    Args:
        members: at least one.
        spread: of A, ln B and ln C_mid among them, by default.
        effort: see `Effort`.
    """

    def __init__(self, members: Sequence[Parameters], spread: tuple[float, float, float], effort: Effort):
        self.members = members
        self.spread = np.array(spread)
        self.effort = effort
        self.thin = [one.thinned(_THIN) for one in members]
        self.over_prior = [np.exp(-thin.log_prior).astype(np.float32) for thin in self.thin]

    def choose(self, size: int, rng: np.random.Generator) -> Chosen:
        """So many joint draws."""
        first, *further = self.effort.proposed
        found = self._first(first, rng)
        for number in further:
            found = self._next(_moments(found, self.spread), number, rng)
        weight = np.exp(found.log_weight - found.log_weight.max())
        picked = picks(np.cumsum(weight), self.effort.kept, rng.random())
        candidate = np.repeat(picked, -(-size // self.effort.kept))[:size]
        chosen = np.empty((size, len(self.members)), dtype=np.int64)
        for at, (thin, density) in enumerate(zip(self.thin, found.density, strict=True)):
            chosen[:, at] = thin.index[_pick(self.over_prior[at], density, candidate, rng)]
        centre = found.candidates[candidate, :3]
        return Chosen(chosen, centre, self._log_centre(centre))

    def _first(self, number: int, rng: np.random.Generator) -> _Round:
        """Spreads from their prior; centres from the members' own draws, blurred by the spread."""
        log_s = _SPREAD_SD * rng.standard_normal((number, 3))
        sd = self.spread * np.exp(log_s)
        member, row = rng.integers(0, len(self.thin), number), rng.random(number)
        base = [self.thin[i].theta[int(u * len(self.thin[i].theta))] for i, u in zip(member, row, strict=True)]
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
        density = [_normal(thin.theta, mu, self.spread * np.exp(log_s)) for thin in self.thin]
        log_prior = self._log_centre(mu) - 0.5 * ((log_s / _SPREAD_SD) ** 2).sum(axis=1)
        log_weight = self._explained(density) + log_prior - _log_student(candidates, centre, root)
        return _Round(candidates, log_weight, density)

    def _explained(self, density: list[Float32Array]) -> FloatArray:
        """Log of the product of the members' marginal likelihoods under each candidate: (M,)."""
        total = np.zeros(density[0].shape[1])
        for over_prior, each in zip(self.over_prior, density, strict=True):
            total += np.log((1 - OWN) * (over_prior @ each) / len(over_prior) + OWN)
        return total

    def _log_centre(self, mu: FloatArray) -> FloatArray:
        """Log prior of the centre: that under which the members were fitted, averaged where they differ."""
        densities = [log_density(one.prior, mu, one.box, 0.0) for one in self.members]
        inside = np.where((mu[:, 0] > 0) & (mu[:, 0] < 1), 0.0, -50.0)  # a ceiling lies in the reward's range
        return np.asarray(np.mean(densities, axis=0) + inside)


@dataclass(frozen=True, eq=False)
class _Round:
    candidates: FloatArray  # (mu, ln s), (M, 6)
    log_weight: FloatArray  # (M,)
    density: list[Float32Array]  # N(theta | mu, diag (s sd)^2) of every member's draws, each (D, M)


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


def _moments(found: _Round, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and root of the next round's proposal: the weighted moments of the last one, widened."""
    weight = np.exp(found.log_weight - logsumexp(found.log_weight))
    centre = np.asarray(weight @ found.candidates, dtype=np.float64)
    centred = found.candidates - centre
    least = np.diag(np.concatenate([0.3 * spread, np.full(3, 0.5 * _SPREAD_SD)]) ** 2)
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
    """For every joint draw's candidate one of the member's draws, in proportion to its term in F: (S,)."""
    rows = []
    columns, counts = np.unique(candidate, return_counts=True)  # candidates come in increasing order
    terms = (1 - OWN) * over_prior[:, None] * density[:, columns] + OWN
    totals = np.cumsum(terms, axis=0, dtype=np.float64)
    for at, count in enumerate(counts):
        # stratified: the draws taken for one candidate spread over its whole range, in random order
        u = (rng.permutation(count) + rng.random(count)) / count
        rows.append(np.searchsorted(totals[:, at], u * totals[-1, at]))
    return np.asarray(np.minimum(np.concatenate(rows), len(totals) - 1))
