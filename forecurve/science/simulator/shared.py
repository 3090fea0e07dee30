"""A sweep whose runs share one budget and train side by side, as `next_round` decides: who was chosen, after how long.

All runs are as fast: in one step each of those that train comes to its next evaluation, and the step takes as long as
the longest of these. It is thought over after every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..planning.rounds import Round, Runner, next_round
from .policies import Forecasts
from .replay import State
from .sweeps import Sweep

FIRST = 4  # evaluations, a measured start included, before a run is forecast: as the service has it


@dataclass(frozen=True, eq=False)
class Moment:
    """One time that it was thought over.

    Attributes:
        runners: the arms as they were, by name.
        left: of the budget.
        clock: time since the beginning, in lengths of one full run.
        launches: of arms so far.
        found: what was decided.
    """

    runners: dict[str, Runner]
    left: float
    clock: float
    launches: int
    found: Round


@dataclass(frozen=True)
class SharedReplay:
    """A sweep that is over.

    Attributes:
        chosen: the arm that was taken; None where the budget was spent before one could be forecast.
        regret: the best arm's final value minus that of the chosen one, without one minus their mean.
        compute: spent over all arms.
        launches: how often an arm was let train that did not just before.
        time: from the beginning until it was over, in lengths of one full run.
        reached: how far the chosen arm went, as a share of its length; 1 at its end.
        over: why no run went on, in a few words.
    """

    chosen: int | None
    regret: float
    compute: float
    launches: int
    time: float
    reached: float
    over: str


def rounds_of(sweep: Sweep, budget: float, places: int, forecasts: Forecasts | None = None) -> Iterator[Moment]:
    """Every time that it is thought over, the last one that at which it is over.

    Args:
        sweep: its arms begin at no compute but a measured start.
        budget: compute that all arms share.
        places: how many arms train at once; where more are told to go, the first ones do.
        forecasts: shared fits of this sweep, or none to make its own.
    """
    state, forecasts = State(sweep), forecasts or Forecasts()
    goes_to: dict[str, float] = {}
    clock, launches, trained = 0.0, 0, set[int]()
    while True:
        runners = {track.name: _runner(state, arm, goes_to, forecasts) for arm, track in enumerate(sweep.tracks)}
        left = budget - float(state.spent.sum())
        found = next_round(runners, left, sweep.horizon, places)
        yield Moment(runners, left, clock, launches, found)
        if found.over is not None:
            return
        goes_to = found.go
        told = [arm for arm, track in enumerate(sweep.tracks) if track.name in goes_to][: max(places, 1)]
        launches += len(set(told) - trained)
        trained = set(told)
        clock += _stepped(state, told) / sweep.horizon


def _runner(state: State, arm: int, goes_to: dict[str, float], forecasts: Forecasts) -> Runner:
    fit = forecasts.fit(state, arm) if state.points[arm] >= FIRST else None
    track = state.sweep.tracks[arm]
    return Runner(fit, goes_to.get(track.name), closed=state.finished(arm), arm=track.arm)


def _stepped(state: State, arms: list[int]) -> float:
    """Takes arms to their next evaluations; the compute of the longest step."""
    before = state.spent
    for arm in arms:
        state.advance(arm, 0.0)
    return float((state.spent - before).max())


def replay_shared(sweep: Sweep, budget: float, places: int, forecasts: Forecasts | None = None) -> SharedReplay:
    """How a sweep ends; see `rounds_of`."""
    last = deque(rounds_of(sweep, budget, places, forecasts), maxlen=1).pop()
    finals = np.array([track.final for track in sweep.tracks])
    plan = last.found.plan
    chosen = None if plan is None else list(last.runners).index(plan.choice)
    return SharedReplay(
        chosen=chosen,
        regret=float(sweep.best - (finals.mean() if chosen is None else finals[chosen])),
        compute=budget - last.left,
        launches=last.launches,
        time=last.clock,
        reached=0.0 if plan is None or chosen is None else plan.chosen.now / sweep.tracks[chosen].curve.now,
        over=last.found.over or "",
    )
