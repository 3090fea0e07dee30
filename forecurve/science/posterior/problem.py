"""A curve made ready for the posterior: rewards moved to [0, 1], the noise model laid out, priors attached."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..arrays import FloatArray, IntArray
from ..curves.averaging import Averaged
from ..curves.noise import (
    ALPHA_PRIOR,
    REFERENCE_POINTS,
    evaluation_clock,
)
from ..curves.wandering import HYPOTHESES, Hypotheses, Wandering, Whitener, hypotheses_for
from .kernels import Filtered, noise_filter
from .point import search
from .prior import Box, Prior, box_of
from .sigmoid import log_compute

Said = TypeVar("Said")


@dataclass(frozen=True, eq=False)
class Setting:
    """What does not depend on the single evaluations. All in the scale where rewards lie in [0, 1].

    Attributes:
        points: evaluations, N.
        unit_variance: v, the mean nominal sampling variance of the first evaluations; the noise model's unit.
        source: what sampling variances are known from, see `ALPHA_PRIOR`.
        hypotheses: H of them.
        prior, box: of the parameters.
        usual_gap: compute between two evaluations.
        columns: eta, rho and log prior weight of each hypothesis, (H,).
        burr: the rise is Burr's law and not the sigmoid's, see `other_rise`.
        begins: compute from which the curve's own is counted, see `late_start`.
    """

    points: int
    unit_variance: float
    source: str
    hypotheses: Hypotheses
    prior: Prior
    box: Box
    usual_gap: float
    columns: tuple[FloatArray, FloatArray, FloatArray]
    burr: bool = False
    begins: float = 0.0

    @property
    def rate(self) -> float:
        """Of alpha's inverse-gamma prior."""
        return self.alpha_prior[1]

    @property
    def nu(self) -> float:
        """Exponent of the marginal density once alpha is integrated: the prior's shape + N / 2."""
        return self.alpha_prior[0] + self.points / 2

    @property
    def alpha_prior(self) -> tuple[float, float]:
        """Shape and rate of alpha's inverse-gamma prior."""
        noise = self.prior.noise
        return ALPHA_PRIOR[self.source] if noise is None else noise.alpha_prior(self.source)

    @property
    def prior_parts(self) -> tuple[bool, ...]:
        """For each part of the prior: is it the informative one?"""
        return (False, True) if self.prior.informative else (False,)

    def with_one_more(self, usual_gap: float, box: Box) -> Setting:
        """With one evaluation more."""
        return replace(self, points=self.points + 1, box=box, usual_gap=usual_gap)

    @property
    def log_weights(self) -> FloatArray:
        """Log prior weight of each hypothesis, (H,)."""
        return self.columns[2]

    @property
    def wandering(self) -> tuple[FloatArray, FloatArray]:
        """eta and rho of each hypothesis, (H,)."""
        return self.columns[0], self.columns[1]


@dataclass(frozen=True, eq=False)
class Problem:
    """The evaluations as the noise model sees them.

    Attributes:
        setting: all else.
        compute, log_c, reward: of the evaluations, (N,). What is said of single ones goes by `compute`: a logarithm
            and back is a little off.
        shares: variance of each evaluation / v without the wandering part, (N,).
        wandering: that part under each hypothesis.
        ticks: of the evaluation clock, (N,).
        filtered: what the noise filter says of them.
        begins: which evaluation of the curve is the first of each, where neighbours were averaged; (N,).
        outliers: which evaluations of the curve count as outliers, (M,).
        kept: what they have said `once`, where they are looked at under several priors.
    """

    setting: Setting
    compute: FloatArray
    log_c: FloatArray
    reward: FloatArray
    shares: FloatArray
    wandering: Wandering
    ticks: FloatArray
    filtered: Filtered
    begins: IntArray
    outliers: IntArray
    kept: dict[Hashable, Any] | None = None

    def under(self, prior: Prior) -> Problem:
        """The same evaluations under another prior, A in the same scale as the rewards."""
        columns = _columns(self.setting.hypotheses, prior)
        setting = replace(self.setting, prior=prior, box=box_of(prior, self.compute), columns=columns)
        return replace(self, setting=setting)

    @property
    def since(self) -> FloatArray:
        """Compute as the law counts it, (N,): 0 where a late start has not begun."""
        return np.maximum(self.compute - self.setting.begins, 0.0)

    def once(self, what: Hashable, said: Callable[[], Said]) -> Said:
        """What the evaluations say by themselves, worked out once for all priors under which they are looked at."""
        if self.kept is None:
            return said()
        if what not in self.kept:
            self.kept[what] = said()
        found: Said = self.kept[what]
        return found

    @cached_property
    def optimum(self) -> FloatArray:
        """The least squares of all evaluations, see `search`."""
        return self.once(("optimum", self.setting.begins), lambda: search(self.log_c, self.reward))

    @cached_property
    def whiteners(self) -> tuple[Whitener, ...]:
        """Inner products of any column, one for each hypothesis."""
        rows = zip(self.wandering.variance, self.wandering.decay, strict=True)
        return tuple(Whitener(self.shares, *row) for row in rows)


def make_problem(seen: Averaged, source: str, prior: Prior, restarts: tuple[float, ...] = ()) -> Problem:
    """Lay the noise model out.

    Args:
        seen: the evaluations.
        source: what their nominal variance is known from, see `ALPHA_PRIOR`.
        prior: of the parameters, A in the same scale as the rewards.
        restarts: compute at which the run was resumed.
    """
    compute, reward, variance = seen.compute, seen.reward, seen.variance
    ticks, usual = evaluation_clock(compute, restarts)
    hypotheses = hypotheses_for(len(compute))
    setting = Setting(
        points=len(compute),
        unit_variance=float(variance[:REFERENCE_POINTS].mean()),
        source=source,
        hypotheses=hypotheses,
        prior=prior,
        box=box_of(prior, compute),
        usual_gap=usual,
        columns=_columns(hypotheses, prior),
    )
    shares = (variance + seen.extra) / setting.unit_variance
    wandering = Wandering.of(hypotheses, ticks, setting.unit_variance)
    return Problem(
        setting=setting,
        compute=compute,
        log_c=log_compute(compute),
        reward=reward,
        shares=shares,
        wandering=wandering,
        ticks=ticks,
        filtered=noise_filter(shares, wandering.variance, wandering.decay, reward),
        begins=seen.begins,
        outliers=seen.outliers,
    )


def _columns(hypotheses: Hypotheses, prior: Prior) -> tuple[FloatArray, FloatArray, FloatArray]:
    """`Setting.columns`."""
    eta, rho, weight, _, _ = hypotheses.columns
    if prior.noise is not None:
        weight = np.concatenate([prior.noise.weights, weight[len(HYPOTHESES) :]])
    return eta, rho, np.log(weight)
