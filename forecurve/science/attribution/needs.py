"""How many seeds would decide, in closed form.

With se the error of one run's value (its ceiling, or ln compute to a level) from its own evaluations and tau the sd
between seeds, the difference of an arm with n_a seeds and a control with n_0 has

    sd^2 = (se^2 + tau^2) (1 / n_a + 1 / n_0).

A difference D is shown to be beyond the region +-rope with probability `power` when (|D| - rope) / sd is at least
q(1 - alpha) + z(power). It is shown to be within when both one-sided bounds at q(level) are, which has probability
Phi((r - D) / sd) - Phi((-r - D) / sd) with r = rope - q(level) sd. q is the quantile of a Student-t, because tau is
known from few replicates; alpha is what the other claims leave for one.

An arm is decided as soon as one of its differences is. The compute multiplier is one with rope 0: any speed but the
control's is a difference, and none is ever shown to be the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

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
        sd = self.sd(arm_seeds, control_seeds)
        beyond = abs(difference) - self.rope
        if beyond > 0:
            return beyond / sd >= self._quantile(1 - self.alpha, more_runs) + float(ndtri(POWER))
        return self._power_within(abs(difference), sd, self._quantile(self.level, more_runs)) >= POWER

    def _quantile(self, q: float, more_runs: int) -> float:
        return float(ndtri(q) if self.spread.known else stdtrit(self.spread.dof + more_runs, q))

    def _power_within(self, difference: float, sd: float, certainty: float) -> float:
        """Probability that the whole one-sided bound lies within the region, both sides."""
        room = self.rope - certainty * sd
        if room <= 0:
            return 0.0
        return float(ndtr((room - difference) / sd) - ndtr((-room - difference) / sd))


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
