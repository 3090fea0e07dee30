"""Where several unfinished arms stand: joint draws of what each reaches at one common compute, the horizon.

An arm whose curve is no sigmoid is read from its own forecast (`predict_ending`), which knows how it fell, broke or
has not begun, and neither tells the others anything nor is told by them. On the way there it is taken to go straight in
the logarithm of compute.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..curves.order import place_of
from ..fitting.aftermath import LAST, falls_on
from ..fitting.horizon import evaluation_noise
from ..fitting.level import levels
from ..fitting.outcome import ending_draws
from ..values import spread
from .belief import Belief, Look, Prospect
from .pooling import JOINT_DRAWS, joint_draws
from .told import in_order_of, told
from .worth import arm_means, arms_of_runs, regret_of

if TYPE_CHECKING:
    from ..fitting.fit import Fit

_SAME_DIGITS = 12  # of expected ends: what lies behind them is the order of a sum
LOOKS = 10  # computes between the present and the horizon at which an arm may be looked at again


@dataclass(frozen=True, eq=False)
class Standing:
    """The arms at one moment.

    Attributes:
        fits: one per arm, K of them.
        horizon: compute at which they are compared.
        now: compute of each arm, (K,).
        ends: joint draws of the rewards at the horizon, (S, K).
        levels: joint draws of the rewards now, (S, K).
        prospects: where each arm may be looked at again, K of them.
        middles: joint draws of its rewards between two of those places, (S, G) each.
        together: whether arms inform one another in these draws.
        sizes: how many of the runs each arm has (`worth`), A of them; one each by default.
    """

    fits: tuple[Fit, ...]
    horizon: float
    now: FloatArray
    ends: FloatArray
    levels: FloatArray
    prospects: tuple[Prospect, ...]
    middles: tuple[FloatArray, ...]
    together: bool
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.sizes:
            object.__setattr__(self, "sizes", (1,) * len(self.fits))

    def reordered(self, order: Sequence[int]) -> Standing:
        """The same with the arms in another order."""
        at = list(order)
        return replace(
            self,
            fits=tuple(self.fits[arm] for arm in at),
            now=self.now[at],
            ends=self.ends[:, at],
            levels=self.levels[:, at],
            prospects=tuple(self.prospects[arm] for arm in at),
            middles=tuple(self.middles[arm] for arm in at),
        )

    @property
    def worth(self) -> FloatArray:
        """Joint draws of the arms' ends, the means of their runs', (S, A)."""
        return arm_means(self.ends, self.sizes)

    @property
    def best(self) -> int:
        """The run with the highest expected end of the arm that has it; of several the first by name."""
        return self.choice(0.0)

    def choice(self, near: float, closed: Collection[str] = ()) -> int:
        """The run to take, of the arm with the highest expected end; of several the first by name.

        Runs that may go on, or are at the horizon, come before those that are `closed` on the way. Of its runs that are
        expected to end within `near` of the highest it is the furthest: it costs least to be taken to its end, and who
        is on the way there is not left for another seed at every evaluation.
        """
        width, names = self.fits[0].curve.width, [fit.curve.name for fit in self.fits]
        own, arms = (np.round(ends.mean(axis=0) / width, _SAME_DIGITS) for ends in (self.ends, self.worth))
        arm = arms_of_runs(self.sizes)
        first = min(range(len(names)), key=lambda at: (-arms[arm[at]], -own[at], names[at]))
        seeds = [at for at in range(len(names)) if arm[at] == arm[first]]
        seeds = [at for at in seeds if names[at] not in closed or _is_there(self.fits[at], self.horizon)] or seeds
        highest = max(own[at] for at in seeds)
        good = [at for at in seeds if own[at] >= highest - near / width]
        return min(good, key=lambda at: (-self.now[at], -own[at], names[at]))

    @property
    def expected_regret(self) -> float:
        """E[highest end of an arm] - highest expected one: what choosing now is expected to lose."""
        return regret_of(self.worth)

    @property
    def fallen(self) -> BoolArray:
        """Arms that fell: nothing is spent on them."""
        return np.array([_fell(fit) for fit in self.fits])

    @property
    def told_ends(self) -> FloatArray:
        """Draws of the ends as they are told, (S, K): about the medians of `ends`, by which arms are compared, as
        unsure as these or as each arm's own forecast, which knows that runs leave their curves (`told`). Where arms
        tell one another nothing it is that forecast."""
        return np.column_stack([self._told_end(arm) for arm in range(len(self.fits))])

    def told_gain(self, arm: int, start: float, to: float) -> FloatArray:
        """Draws of `gain` as it is told, (S,), in the same way."""
        fit, now = self.fits[arm], self.now[arm]
        if start >= to:
            return np.zeros(len(self.ends))
        if fit.withheld:
            whole = self.ends[:, arm] - np.median(self.levels[:, arm])
            return np.asarray(whole * np.log(to / start) / np.log(self.horizon / now))
        joint, level = self.gain(arm, start, to), np.clip(levels(fit, np.array([start, to])), *fit.curve.bounds)
        if not self.together:
            return in_order_of(joint, level[1] - level[0])
        gain = told(joint, level[1] - level[0])
        here = self.levels[:, arm] + self.gain(arm, now, start)
        return np.asarray(np.clip(here + gain, *fit.curve.bounds) - here)

    def _told_end(self, arm: int) -> FloatArray:
        fit, ends = self.fits[arm], self.ends[:, arm]
        if fit.withheld or self.now[arm] >= self.horizon:
            return ends  # its own forecast, or as good as known
        own = ending_draws(fit, self.horizon)
        return np.clip(told(ends, own), *fit.curve.bounds) if self.together else in_order_of(ends, own)

    def gain(self, arm: int, start: float, to: float) -> FloatArray:
        """Joint draws of what an arm gains between two computes from its present to the horizon, (S,): between the
        places where it is known straight in the logarithm of compute."""
        places = np.concatenate([[self.now[arm]], _middles(float(self.now[arm]), self.prospects[arm]), [self.horizon]])
        rewards = np.column_stack([self.levels[:, arm], self.middles[arm], self.ends[:, arm]])

        def reward(compute: float) -> FloatArray:
            at = int(np.clip(np.searchsorted(places, compute) - 1, 0, len(places) - 2))
            share = np.log(compute / places[at]) / np.log(places[at + 1] / places[at])
            return np.asarray(rewards[:, at] + share * (rewards[:, at + 1] - rewards[:, at]))

        return reward(to) - reward(start)

    def stop_on_the_way(self, look: Look) -> float:
        """The compute at which to think again about a look from here: its first edge, however far it goes.

        A look is worth taking for where it leads, but what it shows on the way may already change the plan.
        """
        return float(self.prospects[look.arm].edges[0])

    def belief(self) -> Belief:
        """What further evaluations would tell."""
        most = np.where([not fit.withheld for fit in self.fits], np.inf, self._perfect_knowledge)
        width = self.fits[0].curve.width
        return Belief(self.ends, list(self.middles), list(self.prospects), self.now, width, most, self.sizes)

    @property
    def _perfect_knowledge(self) -> FloatArray:
        """What knowing one run's end exactly would gain in the choice, if it told nothing of the others, (K,)."""
        means, arms = self.worth.mean(axis=0), arms_of_runs(self.sizes)
        rest = [float(np.delete(means, arm).max(initial=-np.inf)) for arm in arms]
        share = 1 / np.array(self.sizes)[arms]  # of a run in its arm
        others = means[arms] - share * self.ends.mean(axis=0)
        return np.asarray(np.maximum(share * self.ends + others, rest).mean(axis=0) - means.max())


@dataclass(frozen=True, eq=False)
class Entrant:
    """One arm made ready to be compared; worth keeping while its fit stays as it is.

    Attributes:
        fit: its posterior.
        noise: variance of one evaluation.
        prospect: where it may be looked at again.
    """

    fit: Fit
    noise: float
    prospect: Prospect


def enter(fit: Fit, horizon: float) -> Entrant:
    """An arm that is to be compared at a horizon."""
    noise = _noise_now(fit)
    return Entrant(fit, noise, _prospect(fit, noise, horizon))


def _fell(fit: Fit) -> bool:
    """And has not come back."""
    return fit.misfit_detail is not None and fit.misfit_detail.fallen


def _is_there(fit: Fit, horizon: float) -> bool:
    """Whether the run went as far as the arms are compared."""
    return fit.curve.now >= horizon * (1 - 1e-9)


def _noise_now(fit: Fit) -> float:
    """Variance of one evaluation. Where the curve changed, or rose anew, the sigmoid takes that for noise: what came
    since says it then, or the sampling alone."""
    change = fit.change
    if change is None:
        return evaluation_noise(fit)
    if change.later is None:
        return float(fit.curve.noise.variance[-1])
    return change.last_level()[1] if falls_on(change.later) else evaluation_noise(change.later)


def standing(
    entrants: Sequence[Entrant],
    horizon: float,
    *,
    siblings: bool = True,
    seed: int = 0,
    sizes: Sequence[int] = (),
) -> Standing:
    """Joint draws of where the arms end.

    Args:
        entrants: one per arm, made for this horizon; one unit, one scale of rewards.
        horizon: compute at which the arms are compared; the curve of an arm beyond it is read there.
        siblings: let the arms inform one another.
        seed: of the drawing, in which the order of the arms has no say.
        sizes: see `Standing`.
    """
    order = sorted(range(len(entrants)), key=lambda at: place_of(entrants[at].fit.curve))
    arms = arms_of_runs(sizes or [1] * len(order))[order].tolist()
    here = _standing([entrants[at] for at in order], arms, horizon, siblings, seed)
    return replace(here.reordered([order.index(at) for at in range(len(order))]), sizes=tuple(sizes))


def _standing(entrants: Sequence[Entrant], arms: Sequence[int], horizon: float, siblings: bool, seed: int) -> Standing:
    fits = [arm.fit for arm in entrants]
    now = np.array([fit.curve.now for fit in fits])
    grids = [_middles(arm.fit.curve.now, arm.prospect) for arm in entrants]
    described = [at for at, fit in enumerate(fits) if not fit.withheld]  # the others' curves tell nothing of anybody
    of_arm = [arms[at] for at in described]
    joint = joint_draws([fits[at] for at in described], siblings=siblings, seed=seed, arms=of_arm)
    tables = {
        at: _doubted(fits[at], joint.run(place, np.concatenate([[now[at], horizon], grids[at]])))
        for place, at in enumerate(described)
    }
    rng = np.random.default_rng(seed + 1)
    tables |= {at: _by_itself(arm, grids[at], horizon, rng) for at, arm in enumerate(entrants) if arm.fit.withheld}
    ordered = [tables[at] for at in range(len(entrants))]
    return Standing(
        fits=tuple(fits),
        horizon=float(horizon),
        now=now,
        ends=np.stack([table[:, 1] for table in ordered], axis=1),
        levels=np.stack([table[:, 0] for table in ordered], axis=1),
        prospects=tuple(arm.prospect for arm in entrants),
        middles=tuple(table[:, 2:] for table in ordered),
        together=siblings and len(described) > 1,
    )


def _doubted(fit: Fit, table: FloatArray) -> FloatArray:
    """Draws (S, 2 + G) of the level now, the end and the middles: growth to them as unsure as a misfit makes it."""
    level, later = table[:, :1], table[:, 1:]
    return np.hstack([level, np.clip(level + spread((later - level).T, fit.widening).T, *fit.curve.bounds)])


def _prospect(fit: Fit, noise: float, horizon: float) -> Prospect:
    now = fit.curve.now
    if _fell(fit) or _is_there(fit, horizon):
        return Prospect(np.empty(0), np.empty(0))
    gap = fit.curve.recent_gap
    edges = [now]
    for edge in now * np.geomspace(1.0, horizon / now, LOOKS + 1)[1:]:
        if edge - edges[-1] >= 0.99 * gap:  # a look shows at least one evaluation
            edges.append(float(edge))
    if len(edges) == 1:
        return Prospect(np.empty(0), np.empty(0))  # it is as good as there
    edges[-1] = float(horizon)
    evaluations = np.maximum(np.diff(edges) / gap, 1.0)
    return Prospect(np.array(edges[1:]), noise / evaluations)


def _middles(now: float, prospect: Prospect) -> FloatArray:
    starts = np.concatenate([[now], prospect.edges[:-1]])[: len(prospect.edges)]
    return np.asarray((starts + prospect.edges) / 2)


def _by_itself(arm: Entrant, grid: FloatArray, horizon: float, rng: np.random.Generator) -> FloatArray:
    """As `_doubted`, of an arm that no sigmoid describes: from where its last evaluations are to its own forecast; one
    that went so far stays where it stood."""
    fit = arm.fit
    upto = max(int(np.searchsorted(fit.curve.compute, horizon * (1 + 1e-9), side="right")), 1)
    last = fit.curve.reward[max(upto - LAST, 0) : upto]
    level = last.mean() + np.sqrt(arm.noise / len(last)) * rng.standard_normal(JOINT_DRAWS)
    level = np.clip(level, *fit.curve.bounds)
    if _is_there(fit, horizon):
        return np.repeat(level[:, None], 2 + len(grid), axis=1)
    end = in_order_of(rng.random(JOINT_DRAWS), ending_draws(fit, horizon))
    way = np.log(grid / fit.curve.now) / np.log(max(horizon / fit.curve.now, 1 + 1e-9))
    return np.column_stack([level, end, level[:, None] + way * (end - level)[:, None]])
