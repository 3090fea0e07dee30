"""How many seeds would decide, in closed form.

With se the error of one run's value (its ceiling, or ln compute to a level) from its own evaluations and tau the sd
between seeds, the difference of an arm with n_a seeds and a control with n_0 has

    sd^2 = (se^2 + tau^2) (1 / n_a + 1 / n_0).

A claim counts both sides, for the draws choose theirs. So a difference d that is seen is one beyond the region +-rope
where

    F(-(d - rope) / sd) + F(-(d + rope) / sd) <= alpha,

and the least such d is d*: near rope + q(1 - alpha) sd where the region is wide, and q(1 - alpha / 2) sd where there is
next to none. A true difference D is claimed with probability `power` when (|D| - d*) / sd is at least z(power). It is
shown to be within when F((rope - d) / sd) - F((-rope - d) / sd) is at least `level`, for |d| up to some r, which has
probability Phi((r - D) / sd) - Phi((-r - D) / sd). F is that of a Student-t, because tau is known from few replicates;
alpha is what the other claims leave for one.

An arm is decided as soon as one of its differences is. The compute multiplier is one with rope 0: any speed but the
control's is a difference, and none is ever shown to be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from .seeds import SeedSpread

MOST_SEEDS = 20
_MOST_CONTROL_SEEDS = 5
POWER = 0.8


@dataclass(frozen=True)
class Design:
    """What the power of a comparison depends on.

    Attributes:
        noise: se, the error of one run's value from its own evaluations.
        spread: the sd between seeds and the knowledge behind it.
        rope: half-width of the region of practical equivalence.
        level: certainty of a claim that there is no difference.
        alpha: error left for one claim of a difference once all arms are accounted for.
    """

    noise: float
    spread: SeedSpread
    rope: float
    level: float
    alpha: float

    def sd(self, arm_seeds: float, control_seeds: float) -> float:
        """sd of the difference."""
        return float(np.sqrt((self.noise**2 + self.spread.sd**2) * (1 / arm_seeds + 1 / control_seeds)))

    def decides(self, difference: float, arm_seeds: int, control_seeds: int, more_runs: int = 0) -> bool:
        """Whether a true difference of this size would be decided with probability 0.8.

        Args:
            difference: true.
            arm_seeds, control_seeds: runs of each.
            more_runs: further degrees of freedom that the replicates give the sd between seeds.
        """
        sd, size = self.sd(arm_seeds, control_seeds), abs(difference)
        posterior, rope = _Posterior(np.inf if self.spread.known else self.spread.dof + more_runs), self.rope / sd
        if size > self.rope:
            return size / sd - posterior.least_beyond(rope, self.alpha) >= float(ndtri(POWER))
        room = posterior.most_within(rope, self.level)
        return float(ndtr(room - size / sd) - ndtr(-room - size / sd)) >= POWER


class _Posterior(NamedTuple):
    """Of a difference around what is seen of it, in units of its sd: a Student-t."""

    dof: float

    def below(self, at: float) -> float:
        """Its distribution function."""
        return float(stdtr(self.dof, at))

    def least_beyond(self, rope: float, alpha: float) -> float:
        """The least difference that, seen, is claimed to be beyond the region, whichever side it is on."""
        low, high = (rope - float(stdtrit(self.dof, tail)) for tail in (alpha, alpha / 2))
        return _root(lambda seen: alpha - self.below(rope - seen) - self.below(-rope - seen), low, high)

    def most_within(self, rope: float, level: float) -> float:
        """The largest difference that, seen, is claimed to be within the region; 0 where there is none."""
        return _root(lambda seen: level - self.below(rope - seen) + self.below(-rope - seen), 0.0, rope)


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function is 0; the end that is nearest to it where that is not between the two."""
    if rising(low) >= 0:
        return low
    return high if rising(high) <= 0 else float(brentq(rising, low, high))


class Effect(NamedTuple):
    """A difference as it seems now, and what showing it depends on."""

    design: Design
    size: float


def _decided(effects: Sequence[Effect], arm_seeds: int, control_seeds: int, more_runs: int) -> bool:
    return any(design.decides(size, arm_seeds, control_seeds, more_runs) for design, size in effects)


def seeds_to_decide(effects: Sequence[Effect], arm_seeds: int, control_seeds: int) -> int | None:
    """Seeds of the arm and of the control, each, with which one of an arm's effects would be decided (power 0.8).

    Returns:
        At least the seeds there are plus one; None when more than 20 would be needed: the difference lies so near
        +-rope that deciding is not worth it.
    """
    for seeds in range(min(arm_seeds, control_seeds) + 1, MOST_SEEDS + 1):
        arm, control = max(seeds, arm_seeds), max(seeds, control_seeds)
        if _decided(effects, arm, control, (arm - arm_seeds) + (control - control_seeds)):
            return seeds
    return None


def control_advice(undecided: Sequence[tuple[Sequence[Effect], int]], control_seeds: int) -> tuple[int, int] | None:
    """(further seeds of the control, arms they would decide): seeds of the control serve every arm.

    Args:
        undecided: effects and seeds of each arm that more seeds could decide.
        control_seeds: the control's runs.

    Returns:
        The number of seeds, at most 5, that decides most arms a seed; None when none would be decided.
    """
    best: tuple[int, int] | None = None
    for more in range(1, _MOST_CONTROL_SEEDS + 1):
        decided = sum(_decided(effects, seeds, control_seeds + more, more) for effects, seeds in undecided)
        if decided and (best is None or decided / more > best[1] / best[0]):
            best = (more, decided)
    return best
