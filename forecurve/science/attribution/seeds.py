"""How far runs of one recipe lie apart that differ in their seed alone, and what that leaves of an arm's mean.

A run's value y (its ceiling, or the logarithm of the compute it needs) is its arm's mean plus a seed effect:

    y_s = mu_arm + tau e_s,    e_s ~ N(0, 1),    tau^2 ~ scaled inverse chi-square(dof, sd^2)

tau is common to all arms and learned from every arm with at least two seeds. A run's posterior under a flat prior of y
is its likelihood, known by K equally weighted draws, so the likelihood of an arm's mean is exact and needs no normal
approximation: prod over seeds s of mean over draws k of N(y_sk; mu, tau^2). It is evaluated on a grid of mu by one
Fourier transform a run, for each tau on a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import logsumexp, polygamma

from .. import errors
from ..arrays import FloatArray, IntArray
from ..checks import as_float, check_positive, short, whole_of
from ..posterior.evenly import picks
from ..values import finite

Group = Sequence[FloatArray]  # the runs of one arm: for each the draws of its value, shape (K,)

_LEAST_SD, _MOST_SD = 1e-6, 50.0  # in units of the usual guess: else one value is as good as any, or all are alike
_LEAST_DOF = 0.5
_SD_RANGE = (0.3, 7.0)  # of the grid of tau, in units of the assumed sd
_SD_NODES = 12
_MAX_CELLS = 4096
_CELLS_PER_SD = 2.0  # of the smallest tau on the grid
_FLOOR = 1e-13  # of a density's top: below it the Fourier transform's rounding speaks


@dataclass(frozen=True)
class SeedSpread:
    """What is known of the sd between seeds before this comparison's own replicates.

    Args:
        sd: the sd.
        dof: how many replicates' worth of knowledge stands behind it, at least 0.5; infinite when it is simply known.
        past: runs beyond the first of an arm in past sweeps, from which it was learned.

    Raises:
        CompareError: one of these that cannot be.
    """

    sd: float
    dof: float = np.inf
    past: int = 0

    def __post_init__(self) -> None:
        check_positive("seed sd", self.sd, errors.CompareError, "give a standard deviation")
        object.__setattr__(self, "sd", as_float(self.sd))
        object.__setattr__(self, "dof", _checked_dof(self.dof))
        whole_of("past", self.past, errors.CompareError, "give how many runs it was learned from")

    @classmethod
    def of(cls, given: float | SeedSpread | None, default: SeedSpread) -> SeedSpread:
        """What was given, a number for an sd that is known; the default where nothing was.

        Raises:
            CompareError: no such number, or an sd that has nothing to do with the default.
        """
        if given is None:
            return default
        spread = given if isinstance(given, SeedSpread) else cls(given)
        least, most = _LEAST_SD * default.sd, _MOST_SD * default.sd
        if not least <= spread.sd <= most:
            needed, way_out = f"an sd from {least:g} to {most:g} is needed", f"the usual guess is {default.sd:g}"
            raise errors.CompareError("seed sd", spread.sd, needed, way_out)
        return spread

    @property
    def known(self) -> bool:
        """Whether no replicate can change it."""
        return bool(np.isinf(self.dof))

    def scaled(self, factor: float) -> SeedSpread:
        """The same knowledge of a value that is `factor` times as large."""
        return replace(self, sd=self.sd * factor)

    @cached_property
    def nodes(self) -> FloatArray:
        """The grid of tau, shape (T,)."""
        if self.known:
            return np.array([self.sd])
        return self.sd * np.geomspace(*_SD_RANGE, _SD_NODES)

    @cached_property
    def log_prior(self) -> FloatArray:
        """Log prior mass at the nodes but for a constant, shape (T,)."""
        if self.known:
            return np.zeros(1)
        scaled = self.dof * (self.sd / self.nodes) ** 2
        return np.asarray(self.dof / 2 * np.log(scaled) - scaled / 2)  # a chi-square's, in log tau as the grid is

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: `dof` is null when the sd is known."""
        return {"sd": self.sd, "dof": finite(self.dof), "past": self.past}


def _checked_dof(dof: object) -> float:
    """It as a number; infinite is one."""
    try:
        number = as_float(dof)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not number >= _LEAST_DOF:
        needed = f"a number of at least {_LEAST_DOF:g} is needed"
        raise errors.CompareError("seed dof", short(dof), needed, "leave it out when the sd is known")
    return number


# ScaleRL (App. A.5): three runs that differ by their seed vary in A "by at most +-0.015", an sd between .009 (total
# spread .015) and .018 (range .03). Six degrees of freedom put 90 % of the belief between .0086 and .024. All as shares
# of the range of rewards.
CEILING_SPREAD = SeedSpread(0.0125, 6.0)
# No figure is published for the compute to a level. A guess on the wide side, 90 % between 0.14 and 0.38 in the
# logarithm: too wide a guess costs power until there are replicates, too narrow a one costs truth.
COMPUTE_SPREAD = SeedSpread(0.20, 6.0)


class Means(NamedTuple):
    """Likelihood of an arm's mean on a grid, for each tau."""

    grid: FloatArray  # (G,)
    log_density: FloatArray  # (T, G), normalised over the grid
    log_evidence: FloatArray  # (T,), of tau; constant for a single seed


class Differences(NamedTuple):
    """Joint draws of (second group's mean - first group's mean), one column a pair, and what was learned of tau."""

    draws: FloatArray  # (D, pairs)
    spread: SeedSpread


def learn(groups: Sequence[Group], prior: SeedSpread, means_of: Callable[[Group], Means] | None = None) -> FloatArray:
    """Log posterior mass of tau at the prior's nodes, shape (T,), from every group with two or more runs.

    Args:
        groups: the runs of each arm.
        prior: what is believed before.
        means_of: gives a group's `means` at the prior's nodes, where they are wanted again.
    """
    log_mass = prior.log_prior.copy()
    for group in groups:
        if len(group) > 1 and not prior.known:
            log_mass += (means_of(group) if means_of else means(group, prior.nodes)).log_evidence
    return np.asarray(log_mass - logsumexp(log_mass))


def summarised(prior: SeedSpread, log_mass: FloatArray) -> SeedSpread:
    """The scaled inverse chi-square with the same mean and variance of log tau^2."""
    if prior.known:
        return prior
    mass, log_variance = np.exp(log_mass), 2 * np.log(prior.nodes)
    mean = float(mass @ log_variance)
    variance = float(mass @ (log_variance - mean) ** 2)
    dof = _dof_of(variance)
    scale = mean - np.log(dof / 2) + float(polygamma(0, dof / 2))
    return replace(prior, sd=float(np.exp(scale / 2)), dof=dof)


def _dof_of(variance: float) -> float:
    """dof at which a log chi-square has this variance, trigamma(dof / 2), by bisection."""
    low, high = 0.5, 2000.0
    for _ in range(50):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if float(polygamma(1, middle / 2)) > variance else (low, middle)
    return float(low)


def means(group: Group, sds: FloatArray) -> Means:
    """Likelihood of a group's mean for each tau in `sds`, a flat prior on the mean."""
    grid = _grid(group, sds)
    step = grid[1] - grid[0]
    frequency = 2 * np.pi * np.arange(len(grid) // 2 + 1) / (len(grid) * step)
    sharing = np.sinc(frequency * step / (2 * np.pi)) ** 2  # what counting in two cells blurs is taken out again
    damping = np.exp(-0.5 * (sds[:, None] * frequency) ** 2) / sharing / step
    total = np.zeros((len(sds), len(grid)))
    for draws in group:
        total += _smoothed(draws, grid, damping)
    evidence = logsumexp(total, axis=1) + np.log(grid[1] - grid[0])
    return Means(grid, total - evidence[:, None], evidence)


def _grid(group: Group, sds: FloatArray) -> FloatArray:
    pad = 4 * float(sds.max())
    low = min(float(draws.min()) for draws in group) - pad
    high = max(float(draws.max()) for draws in group) + pad
    wanted = int((high - low) / float(sds.min()) * _CELLS_PER_SD) + 64
    return np.linspace(low, high, next_fast_len(min(wanted, _MAX_CELLS), real=True))


def _smoothed(draws: FloatArray, grid: FloatArray, damping: FloatArray) -> FloatArray:
    """Log of mean_k N(draw_k; mu, sd^2) at the grid's mu, for each sd by its Fourier transform: (T, G)."""
    at = (draws - grid[0]) / (grid[1] - grid[0])
    left = at.astype(np.int64)
    share = at - left  # a draw between two cells counts in both, so that its place is kept
    counts = np.bincount(left, 1 - share, len(grid)) + np.bincount(left + 1, share, len(grid))
    density = irfft(rfft(counts / len(draws)) * damping, n=len(grid), axis=1)
    return np.asarray(np.log(np.maximum(density, _FLOOR * density.max(axis=1, keepdims=True))))


def differences(
    pairs: Sequence[tuple[Group, Group]], groups: Sequence[Group], prior: SeedSpread, size: int
) -> Differences:
    """Joint posterior draws of the difference between the groups of each pair.

    tau is drawn once for all pairs. The first group of every pair is the control, seen at one uniform number a draw:
    the arms share the control's error, as in Dunnett's test.

    Args:
        pairs: (control, arm); the control's values may differ from pair to pair (another level), not its runs.
        groups: every group of runs, from which tau is learned.
        prior: what is known of tau.
        size: number of draws.
    """
    seen: dict[int, Means] = {}

    def means_of(group: Group) -> Means:
        if id(group) not in seen:
            seen[id(group)] = means(group, prior.nodes)
        return seen[id(group)]

    log_mass = learn(groups, prior, means_of)
    which = picks(np.cumsum(np.exp(log_mass)), size)
    rng = np.random.default_rng(20251015)
    shared = rng.random(size)
    columns = [
        _inverted(means_of(arm), which, rng.random(size)) - _inverted(means_of(control), which, shared)
        for control, arm in pairs
    ]
    draws = np.stack(columns, axis=1) if columns else np.empty((size, 0))
    return Differences(draws, summarised(prior, log_mass))


def _inverted(of: Means, which: IntArray, uniform: FloatArray) -> FloatArray:
    """Draws by inversion of each tau's distribution function; `which` is sorted."""
    drawn = np.empty(len(uniform))
    step = of.grid[1] - of.grid[0]
    ends = np.searchsorted(which, np.arange(len(of.log_density)), side="right")
    for node, (begin, end) in enumerate(pairwise([0, *ends])):
        if begin < end:
            cumulative = np.cumsum(np.exp(of.log_density[node]))
            drawn[begin:end] = np.interp(uniform[begin:end], cumulative / cumulative[-1], of.grid + step / 2)
    return drawn
