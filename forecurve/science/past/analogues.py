"""What past forecasts got wrong, told for one new run: those whose runs went the same way so far say most.

A past run's error e_j (what came less the posterior's median) is taken as a Gaussian process over runs,

    e_j = b + g (m_j - m) + w(path_j) + noise_j,    noise_j ~ N(0, s^2 + (kappa h_j)^2)

with b a bias that all share, g the share by which forecasts overstate how runs differ (m_j the forecast's median, m the
usual one), w a smooth function of how the run went up to the forecast, and h_j the forecast's own standard deviation.
The covariance of w is a^2 exp(-d^2 / 2 l^2), d the root mean square difference of two paths (`Course.path`).

Or forecasts say nothing that past ends do not say, and runs that went alike end alike,

    end_j = m + b + w(path_j) + noise_j,    noise_j ~ N(0, s^2)

which is half of what is believed beforehand, and less where the new run is a stranger: more unlike the past run
nearest to it than any of those is to its own nearest (`_strangeness`).

a, l, s, kappa and the sizes of b and g are not chosen: a lattice of them is averaged by evidence. Beforehand half of
what is believed of errors is on "no likeness", half on "no bias" and four fifths on "no overstatement", so that few or
contradictory past runs leave a forecast nearly as it is. What runs share (b, g and w without the noise) is told with
more doubt: .95 are on none of the three, for where there is nothing to be learned it must not make a sure forecast
unsure. Errors of runs left out are in closed form (Rasmussen and Williams 2006, 5.4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from ..arrays import FloatArray, IntArray
from ..checks import check_kind
from ..curves.curve import Curve
from ..errors import CurveError

PLACES = 6
"""A path is the mean reward in so many equal parts of the compute seen."""
_PATHS_KEPT = 16  # of one course

_AMPLITUDES = (0.03, 0.1, 0.3)
_LENGTHS = (0.02, 0.05, 0.1, 0.2)
_SPREADS = (0.003, 0.01, 0.03, 0.1)
_TRUSTS = (0.3, 1.0)
_BIAS = 0.05
_OVERSTATED = 0.5
_NO_LIKENESS, _NO_BIAS, _NO_OVERSTATEMENT = 0.5, 0.5, 0.8
_NOTHING_SHARED = 0.95
_BY_ENDS = 0.5  # beforehand on "forecasts say nothing that past ends do not say"
_LEVEL = 0.2  # sd of what such ends share, about the usual forecast
_ENDS_NO_LIKENESS = 0.3
_STRANGER = 0.25  # so much stranger than any past run, in units of the strangest: the weight falls by exp(-1/2)

_LEAST_SD = 1e-4


@dataclass(frozen=True)
class Errors:
    """Expected errors: mean and sd, that of the noise included.

    Attributes:
        new: of the new run.
        shared: of the new run, but for what is its own: b, g and w without the noise.
        left_out: of every past run, as the others tell it, each of shape (n,).
    """

    new: tuple[float, float]
    shared: tuple[float, float]
    left_out: tuple[FloatArray, FloatArray]

    def times(self, width: float) -> Errors:
        """In a range of rewards of this width."""
        mean, sd = self.left_out
        return Errors(_pair(*self.new, width), _pair(*self.shared, width), (mean * width, sd * width))


def _pair(mean: float | FloatArray, sd: float | FloatArray, width: float = 1.0) -> tuple[float, float]:
    return float(mean) * width, float(sd) * width


@dataclass(frozen=True, eq=False)
class Course:
    """How a run went: its evaluations in the order of compute, each of shape (n,)."""

    compute: FloatArray
    reward: FloatArray

    @classmethod
    def of(cls, curve: Curve) -> Course:
        """As far as the curve goes."""
        check_kind("curve", curve, Curve, "pass Curve(compute, reward)", CurveError)
        return cls(curve.compute, curve.reward)

    def path(self, until: float) -> FloatArray:
        """The mean reward in six equal parts of (0, until]; a part without an evaluation is filled by interpolation.

        >>> Course(np.array([0.0, 1.0, 2.0, 3.0, 9.0]), np.array([0.0, 0.1, 0.2, 0.3, 0.9])).path(3.0).round(3).tolist()
        [0.025, 0.1, 0.125, 0.2, 0.225, 0.3]
        """
        path = self._paths.get(until)
        if path is None:
            if len(self._paths) == _PATHS_KEPT:
                self._paths.clear()
            path = self._paths[until] = self._path(until)
        return path

    @cached_property
    def _paths(self) -> dict[float, FloatArray]:
        """Runs of a backtest are as long as one another, or a few lengths: all are asked about the same places."""
        return {}

    def _path(self, until: float) -> FloatArray:
        edges = np.linspace(0.0, until, PLACES + 1)
        upto = np.searchsorted(self.compute, edges, side="right")
        sums = np.diff(np.concatenate([[0.0], np.cumsum(self.reward)])[upto])
        counts = np.diff(upto)
        filled = np.interp((edges[:-1] + edges[1:]) / 2, self.compute, self.reward)
        return np.where(counts > 0, sums / np.maximum(counts, 1), filled)


def expected_errors(errors: FloatArray, medians: FloatArray, sds: FloatArray, paths: FloatArray | None) -> Errors:
    """What the new run's forecast will get wrong, as past runs have it. Rewards in a range of width 1.

    Args:
        errors: what came less the forecast's median, of n past runs, shape (n,).
        medians, sds: of the forecasts of the past runs and, last, of the new one, shape (n + 1,).
        paths: how these n + 1 runs went, shape (n + 1, PLACES), or None where that is not known.
    """
    knots = _knots(paths is not None)
    above = medians - np.median(medians[:-1])
    apart = None if paths is None else _apart(paths)
    noise = knots.spread[:, None] ** 2 + (knots.trust[:, None] * np.maximum(sds, _LEAST_SD)) ** 2
    alike = _of_likeness(knots, np.zeros((len(above), len(above))) if apart is None else apart)
    said = knots.by_ends[:, None] * above  # by forecasts, where they are taken to say nothing: (K, n + 1)
    told = errors + said[:, :-1]
    shared = alike[knots.base, -1]  # of the new run with all
    shared += knots.bias[:, None] ** 2 + knots.overstated[:, None] ** 2 * above[-1] * above
    to_new = shared[:, :-1]
    solved = _solved(knots, alike[:, :-1, :-1], noise[:, :-1], above[:-1], (told, to_new))
    pull, of_new = solved.told
    log_likelihood = -0.5 * (pull * told).sum(axis=1) - 0.5 * solved.log_det
    evidence = (log_likelihood + knots.log_weight)[:, None] - knots.by_ends[:, None] * _strangeness(apart, len(medians))
    mean = (to_new * pull).sum(axis=1) - said[:, -1]
    unsure = np.maximum(shared[:, -1] - (to_new * of_new).sum(axis=1), 0.0)
    new = _averaged(evidence[:, -1], mean, unsure + noise[:, -1])
    common = _averaged(evidence[:, -1] + knots.doubt, mean, unsure)
    variance = 1 / solved.diagonal
    left_out = _left_out(told, pull, variance, said[:, :-1], evidence[:, :-1])
    return Errors(_pair(*new), _pair(*common), left_out)


@dataclass(frozen=True)
class _Knots:
    """The lattice of what is not known, K knots; each field but `bases` of shape (K,).

    `by_ends` is 1 where the end is told and not the error, else 0. `doubt` is added to the log weights where it is
    asked what runs share: beforehand .95 are on nothing. `base` says which of the `bases`, knots that differ in more
    than bias and overstatement, each one is like but for these.
    """

    base: IntArray
    bases: IntArray
    amplitude: FloatArray
    length: FloatArray
    spread: FloatArray
    trust: FloatArray
    bias: FloatArray
    overstated: FloatArray
    by_ends: FloatArray
    log_weight: FloatArray
    doubt: FloatArray


@lru_cache(maxsize=2)
def _knots(likeness: bool) -> _Knots:
    alike = _alike(_NO_LIKENESS) if likeness else [(0.0, 1.0, 1.0)]
    bias = [(0.0, _NO_BIAS), (_BIAS, 1 - _NO_BIAS)]
    overstated = [(0.0, _NO_OVERSTATEMENT), (_OVERSTATED, 1 - _NO_OVERSTATEMENT)]
    by_errors = (1 - _BY_ENDS if likeness else 1.0) / (len(_SPREADS) * len(_TRUSTS))
    rows = [
        (amplitude, length, spread, trust, by, over, 0.0, np.log(a * b * c * by_errors))
        for (amplitude, length, a), (by, b), (over, c), spread, trust in product(
            alike, bias, overstated, _SPREADS, _TRUSTS
        )
    ]
    if likeness:
        by_ends = _BY_ENDS / len(_SPREADS)
        rows += [
            (amplitude, length, spread, 0.0, _LEVEL, 0.0, 1.0, np.log(a * by_ends))
            for (amplitude, length, a), spread in product(_alike(_ENDS_NO_LIKENESS), _SPREADS)
        ]
    columns = np.array(rows).T
    nothing = (columns[0] == 0) & (columns[4] == 0) & (columns[5] == 0)
    share = np.exp(columns[-1])[nothing].sum() / np.exp(columns[-1]).sum()
    doubt = np.log(np.where(nothing, _NOTHING_SHARED / share, (1 - _NOTHING_SHARED) / (1 - share)))
    _, bases, base = np.unique(columns[:4], axis=1, return_index=True, return_inverse=True)
    return _Knots(base.ravel(), bases, *np.vstack([columns, doubt]))


def _alike(none: float) -> list[tuple[float, float, float]]:
    """(amplitude, length, share of the weight) of w, so much of it on none."""
    each = (1 - none) / (len(_AMPLITUDES) * len(_LENGTHS))
    return [(0.0, 1.0, none), *((amplitude, length, each) for amplitude, length in product(_AMPLITUDES, _LENGTHS))]


def _of_likeness(knots: _Knots, apart: FloatArray) -> FloatArray:
    """Covariance of w between runs at each base: (bases, n + 1, n + 1)."""
    amplitude, length = (each[knots.bases, None, None] for each in (knots.amplitude, knots.length))
    return np.asarray(amplitude**2 * np.exp(-0.5 * apart / length**2))


@dataclass(frozen=True, eq=False)
class _Solved:
    """Of the inverse of the covariance of past errors at each knot, (n, n): what it makes of some vectors, each of
    shape (K, n), its diagonal, (K, n), and log |covariance|, (K,)."""

    told: FloatArray
    diagonal: FloatArray
    log_det: FloatArray


def _solved(
    knots: _Knots, alike: FloatArray, noise: FloatArray, above: FloatArray, vectors: Sequence[FloatArray]
) -> _Solved:
    """Only bases are inverted: b and g lie in one direction each, and come in afterwards (Sherman and Morrison)."""
    among = alike + noise[knots.bases, :, None] * np.eye(len(above))
    inverse = np.linalg.inv(among)
    log_det = np.linalg.slogdet(among)[1][knots.base]
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)[knots.base]
    along = np.ones_like(above), above
    every = np.stack([*vectors, *(np.broadcast_to(one, vectors[0].shape) for one in along)], axis=1)
    solved = (every @ inverse[knots.base]).swapaxes(0, 1)
    for size, direction, seen in zip((knots.bias, knots.overstated), along, solved[-2:], strict=True):
        grown = 1 + size**2 * (seen @ direction)
        share = size**2 / grown
        diagonal -= share[:, None] * seen**2
        solved -= (share * (solved @ direction))[..., None] * seen.copy()
        log_det += np.log(grown)
    return _Solved(solved[:-2], diagonal, log_det)


def _apart(paths: FloatArray) -> FloatArray:
    """Mean square difference of every two paths."""
    return np.asarray(((paths[:, None] - paths[None]) ** 2).mean(axis=2))


def _strangeness(apart: FloatArray | None, runs: int) -> FloatArray:
    """Half a squared distance of each run from all past ones but itself, (n + 1,).

    0 where one of them is as near as they are among themselves, and where it is not known how runs went.
    """
    if apart is None:
        return np.zeros(runs)
    to_past = (np.sqrt(apart) + np.diag(np.full(len(apart), np.inf)))[:, :-1]
    return np.array([_stranger(to_past, at) for at in range(len(apart))])


def _stranger(to_past: FloatArray, at: int) -> float:
    others = np.flatnonzero(np.arange(to_past.shape[1]) != at)
    usual = max(float(to_past[np.ix_(others, others)].min(axis=1).max()), _LEAST_SD)
    return float(0.5 * (max(to_past[at].min() / usual - 1, 0.0) / _STRANGER) ** 2)


def _left_out(
    told: FloatArray, pull: FloatArray, variance: FloatArray, said: FloatArray, evidence: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd of each past error given the others, and with the knots weighed without it."""
    mean = told - pull * variance
    own = -0.5 * (told - mean) ** 2 / variance - 0.5 * np.log(variance)
    return _averaged(evidence - own, mean - said, variance)


def _averaged(evidence: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and sd of a mixture over the first axis, whose log weights are `evidence`."""
    weight = np.exp(evidence - evidence.max(axis=0))
    weight /= weight.sum(axis=0)
    centre = (weight * mean).sum(axis=0)
    return centre, np.sqrt((weight * (variance + (mean - centre) ** 2)).sum(axis=0))


def nearest(paths: FloatArray, most: int) -> list[int]:
    """Which of the past runs went most like the new one, the last row; at most so many, in the order given."""
    apart = ((paths[:-1] - paths[-1]) ** 2).mean(axis=1)
    return sorted(int(at) for at in np.argsort(apart, kind="stable")[:most])
