"""Policies: which arm of a sweep to run how far next, and which one to choose if it ended now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..curves.margins import SETTLED, least_gain
from ..fitting.fit import Fit, fit
from ..planning.standing import Entrant, Standing, enter, standing
from ..posterior.prior import Prior

if TYPE_CHECKING:
    from .replay import State


@dataclass(frozen=True)
class Step:
    """Run an arm to its first evaluation at or after a compute."""

    arm: int
    compute: float


class Policy(Protocol):
    """One replay's worth of decisions; a policy may remember. At every moment `next` is asked before `choice`."""

    def next(self, state: State) -> Step | None:
        """The next step, None when it is done."""

    def choice(self, state: State) -> int | None:
        """The arm it would choose now; None while it would not."""

    def settled(self, state: State) -> bool:
        """Whether it would stop here by itself."""


class ConstantCut:
    """Every arm to the same point, evaluation by evaluation; the highest last evaluation is chosen."""

    def next(self, state: State) -> Step | None:
        """The arm that is furthest behind."""
        return _hindmost(state)

    def choice(self, state: State) -> int | None:
        """At the end of each round."""
        return _highest_last(state, range(state.arms)) if _level(state) and state.points.min() > 0 else None

    def settled(self, state: State) -> bool:
        """It has no opinion of its own."""
        return False


class BestSoFar:
    """Every arm to a first point, then always the one whose last evaluation is highest."""

    def __init__(self, first: int):
        self.first = first

    def _short(self, state: State) -> list[int]:
        """Arms that have not come to their first point, nor to their end."""
        return [arm for arm in range(state.arms) if state.points[arm] < min(self.first, state.full[arm])]

    def next(self, state: State) -> Step | None:
        """First the hindmost, then the highest unfinished."""
        if short := self._short(state):
            return _one_more(state, short[0])
        best = _highest_last(state, range(state.arms))
        return None if state.finished(best) else _one_more(state, best)

    def choice(self, state: State) -> int | None:
        """The highest last evaluation, once every arm has come to its first point."""
        return None if self._short(state) else _highest_last(state, range(state.arms))

    def settled(self, state: State) -> bool:
        """It has no opinion of its own."""
        return False


class SuccessiveHalving:
    """Synchronous successive halving (Jamieson and Talwalkar 2016), ended as soon as one arm is left.

    Args:
        first: evaluations of every arm in the first rung; a start that was measured beforehand is none.
        eta: the factor by which rungs grow and arms shrink.
    """

    def __init__(self, first: int, eta: int):
        self.eta = eta
        self.rung = first
        self.alive: list[int] | None = None

    def _behind(self, state: State, arm: int) -> bool:
        """Whether an arm has not come to the rung, nor to its end."""
        measured = int(state.sweep.tracks[arm].curve.compute[0] == 0)
        return bool(state.points[arm] < min(self.rung + measured, state.full[arm]))

    def next(self, state: State) -> Step | None:
        """The first arm of the rung that is not there yet."""
        if self.alive is None:
            self.alive = list(range(state.arms))
        while len(self.alive) > 1:
            behind = [arm for arm in self.alive if self._behind(state, arm)]
            if behind:
                return _one_more(state, behind[0])
            if all(state.finished(arm) for arm in self.alive):
                return None
            keep = max(len(self.alive) // self.eta, 1)
            self.alive = sorted(self.alive, key=state.last, reverse=True)[:keep]
            self.rung *= self.eta
        return None

    def choice(self, state: State) -> int | None:
        """Known once the last rung is over."""
        if self.alive is None:
            return None
        level = not any(self._behind(state, arm) for arm in self.alive)
        return _highest_last(state, self.alive) if level or len(self.alive) == 1 else None

    def settled(self, state: State) -> bool:
        """When one is left."""
        return self.alive is not None and len(self.alive) == 1


class Forecasts:
    """Forecasts of the arms of one sweep as far as they were seen, each made once; policies may share them."""

    def __init__(self, prior: str | Prior = "none", siblings: bool = True):
        self.prior, self.siblings = prior, siblings
        self._entrants: dict[tuple[int, int], Entrant] = {}
        self._standings: dict[tuple[int, ...], Standing] = {}

    def standing(self, state: State) -> Standing | None:
        """Where the arms stand; None while one of them is too short."""
        key = tuple(int(points) for points in state.points)
        if key not in self._standings:
            entrants = [self._entrant(state, arm) for arm in range(state.arms)]
            known = [each for each in entrants if each is not None]
            if len(known) < len(entrants):
                return None
            self._standings[key] = standing(known, state.sweep.horizon, siblings=self.siblings)
        return self._standings[key]

    def fit(self, state: State, arm: int) -> Fit | None:
        """The forecast of one arm; None while it is too short."""
        entrant = self._entrant(state, arm)
        return None if entrant is None else entrant.fit

    def _entrant(self, state: State, arm: int) -> Entrant | None:
        key = (arm, int(state.points[arm]))
        curve = state.seen(arm)
        if curve is not None and key not in self._entrants:
            self._entrants[key] = enter(fit(curve, prior=self.prior), state.sweep.horizon)
        return self._entrants.get(key)


class Forecasting:
    """Ours: the knowledge gradient per unit of compute on joint forecasts of all arms, thought over at every edge.

    Args:
        forecasts: shared fits, or none to make its own.
        delta: the least difference that matters, by default 0.01 of the range of rewards; the choice is settled when
            its expected regret is a tenth of it.
    """

    def __init__(self, forecasts: Forecasts | None = None, *, delta: float | None = None):
        self.forecasts = forecasts or Forecasts()
        self.delta = delta

    def next(self, state: State) -> Step | None:
        """The hindmost until all can be forecast, then the look with the largest value per unit of compute."""
        here = self.forecasts.standing(state)
        if here is None:
            return _shortest(state)
        going = [arm for arm in range(state.arms) if not state.finished(arm)]  # one may end before the horizon
        look = here.belief().best_look(np.inf, going)
        return None if look is None else Step(look.arm, here.stop_on_the_way(look))

    def choice(self, state: State) -> int | None:
        """The highest expected end; before the arms can be forecast, the highest of level evaluations."""
        here = self.forecasts.standing(state)
        if here is not None:
            return here.best
        return _highest_last(state, range(state.arms)) if _level(state) and state.spent.any() else None

    def settled(self, state: State) -> bool:
        """When choosing now is expected to lose little."""
        here = self.forecasts.standing(state)
        delta = least_gain(self.delta, state.sweep.tracks[0].curve)
        return here is not None and here.expected_regret <= SETTLED * delta


class EqualForecast(ConstantCut):
    """Every arm to the same point, as a constant cut, but the highest forecast is chosen."""

    def __init__(self, forecasts: Forecasts | None = None):
        self.forecasts = forecasts or Forecasts()

    def choice(self, state: State) -> int | None:
        """At the end of each round."""
        if not _level(state):
            return None
        here = self.forecasts.standing(state)
        return None if here is None else here.best


def _one_more(state: State, arm: int) -> Step:
    return Step(arm, state.compute_of(arm, min(int(state.points[arm]) + 1, int(state.full[arm]))))


def _hindmost(state: State) -> Step | None:
    """The unfinished arm with the fewest evaluations, one further."""
    open_arms = [arm for arm in range(state.arms) if not state.finished(arm)]
    return _one_more(state, min(open_arms, key=lambda arm: int(state.points[arm]))) if open_arms else None


def _shortest(state: State) -> Step | None:
    """Of the arms that are too short to be forecast the hindmost, one further."""
    short = [arm for arm in range(state.arms) if state.seen(arm) is None and not state.finished(arm)]
    return _one_more(state, min(short, key=lambda arm: int(state.points[arm]))) if short else None


def _level(state: State) -> bool:
    """Whether all unfinished arms have as many evaluations."""
    return len({int(state.points[arm]) for arm in range(state.arms) if not state.finished(arm)}) <= 1


def _highest_last(state: State, arms: range | list[int]) -> int:
    return max(arms, key=state.last)
