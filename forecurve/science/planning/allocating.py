"""What of the budget goes to which arm: looks while choosing now would lose too much, the rest to finish the choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from forecurve.digits import as_given

from ..curves.margins import SETTLED, SURE, surely_below
from ..values import estimate_of
from ..wording import compute_text, gain_text, share_text
from .belief import Belief, Look
from .outlook import Allocation, Outlook
from .standing import Standing
from .wording import finish_reason, look_reason, reaches

_MOST_LOOKS = 60
_LEAST_VALUE = 1e-3  # of delta: a look that is worth less is not worth its line
_IS_THERE = 1e-9  # of a compute


@dataclass(frozen=True)
class Room:
    """What may be allocated; see `plan`. `going` and `closed` by the names of arms."""

    budget: float
    delta: float
    price: float | None
    going: Mapping[str, float]
    closed: frozenset[str]


class Allocated(NamedTuple):
    """What is allocated, what its looks are expected to save, and why the choice is not run on, if so."""

    rows: tuple[Allocation, ...]
    value: float
    not_run_on: str | None


class _Start(NamedTuple):
    """Where looks may begin: each arm's compute and the edge it is at once what is on its way is there, (K,) each; and
    what that takes."""

    compute: list[float]
    edge: list[int]
    spend: float


def allocated(here: Standing, best: int, outlooks: tuple[Outlook, ...], room: Room, where: str) -> Allocated:
    """What to run, in the order of doing; `best` is the choice, `where` the horizon in words."""
    belief = here.belief()
    start = _start(here, belief, room)
    coming = belief.saved() if start.spend else 0.0
    looks = _looks(here, best, outlooks, belief, start, room, here.expected_regret - coming)
    value = max(min(belief.saved(), here.expected_regret) - coming, 0.0)
    by_itself = sum(look.value for look in looks)
    share = min(value / by_itself, 1.0) if by_itself > 0 else 1.0
    looks = [replace(look, value=share * look.value) for look in looks]
    rows = _merged(here, best, looks, start, outlooks)
    finish, not_run_on = _finish(here, best, rows, start, outlooks, room, where)
    return Allocated((*rows, *finish), sum(look.value for look in looks), not_run_on)


def _start(here: Standing, belief: Belief, room: Room) -> _Start:
    """Conditions the belief on what is on its way."""
    compute, edge, spend = [float(now) for now in here.now], [0] * belief.size, 0.0
    for arm, fit in enumerate(here.fits):
        to = room.going.get(fit.curve.name, 0.0)
        if to <= compute[arm] * (1 + _IS_THERE):
            continue
        spend += to - compute[arm]
        compute[arm] = to
        edges = here.prospects[arm].edges
        if len(edges):
            last = min(int(np.searchsorted(edges, to * (1 - _IS_THERE))), len(edges) - 1)
            belief.after(belief.look(arm, last))
            belief.now[arm] = to  # it may stop short of that edge, and the next look pays for what lies between
            edge[arm] = last + 1
    return _Start(compute, edge, spend)


def _looks(
    here: Standing,
    best: int,
    outlooks: tuple[Outlook, ...],
    belief: Belief,
    start: _Start,
    room: Room,
    regret: float,
) -> list[Look]:
    """The looks that the budget buys, in order, until a choice that now loses `regret` is settled."""
    left = room.budget - start.spend
    is_open = [fit.curve.name not in room.closed for fit in here.fits]
    # the chosen arm is to be finished: looking at it costs nothing extra, looking at others must leave enough for it
    reserve = max(here.horizon - start.compute[best], 0.0) if is_open[best] else 0.0
    reserve = reserve if reserve <= left else 0.0
    others = [arm for arm, own in enumerate(outlooks) if arm != best and is_open[arm] and not own.dominated]
    looks: list[Look] = []
    while regret > SETTLED * room.delta and len(looks) < _MOST_LOOKS:
        rival = belief.best_look(left - reserve, others)
        own = belief.best_look(left, [best]) if is_open[best] else None
        look = max((each for each in (rival, own) if each is not None), key=lambda each: each.rate, default=None)
        if look is None:
            break
        look = replace(look, value=min(look.value, regret))  # more than all that is left to lose no look can save
        if look.value < _LEAST_VALUE * room.delta or (room.price is not None and look.rate < room.price):
            break
        belief.after(look)
        looks.append(look)
        left -= look.spend
        if look.arm == best:
            reserve = max(reserve - look.spend, 0.0)
        regret -= look.value
    return looks


def _merged(
    here: Standing, best: int, looks: list[Look], start: _Start, outlooks: tuple[Outlook, ...]
) -> list[Allocation]:
    """One allocation for each arm that is looked at, in the order in which they come up."""
    rows: list[Allocation] = []
    for arm in dict.fromkeys(look.arm for look in looks):
        own = [look for look in looks if look.arm == arm]
        value = float(sum(look.value for look in own))
        # a look is worth taking for where it leads, but what it shows on the way may already change the plan
        stop = float(here.prospects[arm].edges[start.edge[arm]])
        reason = look_reason(outlooks, arm, best, value)
        name, begins = outlooks[arm].arm, start.compute[arm]
        rows.append(Allocation(name, begins, own[-1].compute, "look", value, reason, stop))
    return rows


def _finish(
    here: Standing,
    best: int,
    looks: list[Allocation],
    start: _Start,
    outlooks: tuple[Outlook, ...],
    room: Room,
    where: str,
) -> tuple[list[Allocation], str | None]:
    """The chosen arm to its end, `where` in words, as far as the budget goes; or why it is not run on."""
    name = outlooks[best].arm
    begins = next((row.to for row in looks if row.arm == name), start.compute[best])
    to = min(here.horizon, begins + room.budget - start.spend - sum(row.spend for row in looks))
    if to - begins <= _IS_THERE * here.horizon:
        return [], None
    if name in room.closed:
        return [], "it can be run no further"
    if here.fallen[best]:
        return [], "it fell"
    if (little := _gains_little(here, best, room.delta)) is not None:
        return [], little
    gain = here.told_gain(best, begins, to)
    if room.price is not None and gain.mean() < room.price * (to - begins):
        asked = compute_text(room.price * (to - begins))
        return [], f"{gain_text(estimate_of(gain))} is too little for its price, which asks for {asked}"
    short = "" if reaches(to, here.horizon) else where
    reason = finish_reason(outlooks[best], estimate_of(gain), begins, to, short, here.fits[best].unit)
    return [Allocation(name, begins, float(to), "finish", float(gain.mean()), reason, float(to))], None


def _gains_little(here: Standing, best: int, delta: float) -> str | None:
    """Why nothing is to be had of running the choice on, if so: it is sure to gain less than delta, or its curve is.
    What is told of a gain allows for runs that leave their curves, and by that none would be left where it is; a curve
    that does not describe the run (`shape`) is not asked."""
    now = float(here.now[best])
    sure = f"{share_text(SURE)} sure to gain less than {as_given(delta)}"
    if surely_below(here.told_gain(best, now, here.horizon), delta):
        return f"it is {sure}"
    if here.fits[best].misfit is None and surely_below(here.gain(best, now, here.horizon), delta):
        return f"by its curve it is {sure}"
    return None
