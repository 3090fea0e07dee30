"""Which arms of a sweep to run how far next, with what is left of the compute.

All arms are compared at one compute, the horizon. While choosing now is expected to lose too much, the budget buys
looks: the arm and the compute with the largest knowledge gradient per unit of compute, each look conditioning the
next (their results are not known, their precision is). What is left finishes the arm that is then chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.digits import as_given

from ..arrays import FloatArray
from ..checks import as_float, check_compute, check_difference, check_positive, whole_of
from ..curves.alike import check_one_range, check_one_unit
from ..curves.curve import Curve
from ..curves.margins import SETTLED, SURE, least_gain, surely_below
from ..errors import PlanError
from ..fitting.fit import Fit
from ..fitting.given import Runs, fits_of
from ..posterior.prior import Prior
from ..values import estimate_of, jsonable
from ..wording import compute_text, gain_text, share_text
from .belief import Look
from .dominated import dominated, p_within
from .outlook import Allocation, Outlook
from .standing import Standing, enter, standing
from .wording import finish_reason, horizon_text, look_reason, plan_sentence, reaches

if TYPE_CHECKING:
    import plotly.graph_objects as go

FURTHEST = 4.0  # times the present compute: as far ahead as arms are compared unless it is asked for
SEEDS = "give another number for other draws"
_MOST_LOOKS = 60
_LEAST_VALUE = 1e-3  # of delta: a look that is worth less is not worth its line


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What to run next.

    Attributes:
        unit: of every compute.
        budget: further compute over all arms.
        horizon: compute at which arms are compared; said with all its digits where `horizon_given`.
        allocation: in the order of doing; the first one is firm, the others are what is expected to follow it.
        arms: the outlook of each.
        choice: the arm to take if one had to choose now.
        settled: whether choosing now is expected to lose less than a tenth of delta.
        expected_regret: what choosing now is expected to lose.
        value_of_information: how much of that the looks of the plan are expected to save.
        look_again: (arm, compute) after which to plan anew; None when nothing is to be looked at.
        not_run_on: why the choice is not run to the horizon though budget would be left for it; None where it is, is
            there already, or none is left.
    """

    unit: str
    budget: float
    horizon: float
    delta: float
    price: float | None
    allocation: tuple[Allocation, ...]
    arms: tuple[Outlook, ...]
    choice: str
    settled: bool
    expected_regret: float
    value_of_information: float
    look_again: tuple[str, float] | None
    not_run_on: str | None
    horizon_given: bool = False

    @property
    def sentence(self) -> str:
        """What a colleague would say."""
        return plan_sentence(self)

    @property
    def spend(self) -> float:
        """Compute that the plan allocates."""
        return float(sum(each.spend for each in self.allocation))

    @property
    def chosen(self) -> Outlook:
        """The outlook of the choice."""
        return next(arm for arm in self.arms if arm.arm == self.choice)

    @property
    def dominated(self) -> tuple[str, ...]:
        """Arms that can be dropped."""
        return tuple(arm.arm for arm in self.arms if arm.dominated)

    def to_dict(self) -> dict[str, Any]:
        """The object that `forecurve plan --json` prints; JSON-safe."""
        look = None if self.look_again is None else {"arm": self.look_again[0], "compute": self.look_again[1]}
        return dict(
            jsonable(
                {
                    "unit": self.unit,
                    "budget": self.budget,
                    "horizon": self.horizon,
                    "delta": self.delta,
                    "price": self.price,
                    "sentence": self.sentence,
                    "choice": self.choice,
                    "expected_gain": self.chosen.gain.to_dict(),
                    "settled": self.settled,
                    "expected_regret": self.expected_regret,
                    "value_of_information": self.value_of_information,
                    "look_again": look,
                    "not_run_on": self.not_run_on,
                    "spend": self.spend,
                    "left": self.budget - self.spend,
                    "allocation": [each.to_dict() for each in self.allocation],
                    "arms": [arm.to_dict() for arm in self.arms],
                    "dominated": list(self.dominated),
                }
            )
        )

    def plot(self) -> go.Figure:
        """A plotly figure: where each arm ends, and how far it is to be run. Needs plotly."""
        from .plot import plot

        return plot(self)

    def __repr__(self) -> str:
        rows = "; ".join(f"{each.arm} {each.start:,g} to {each.to:,g}" for each in self.allocation)
        return (
            f"Plan(choice {self.choice!r} ({self.chosen.p_best:.0%} best), {rows or 'nothing to run'}: {self.sentence})"
        )


def plan(
    arms: Runs,
    budget: float,
    *,
    horizon: float | None = None,
    delta: float | None = None,
    price: float | None = None,
    prior: str | Prior = "none",
    siblings: bool = True,
    seed: int = 0,
) -> Plan:
    """Plan the next compute of a sweep.

    Args:
        arms: unfinished runs, or name -> run: curves of at least 3 evaluations, or their fits; one unit, one range of
            rewards, distinct names.
        budget: further compute over all arms together.
        horizon: compute at which the arms are compared, that of a full run. By default what the furthest arm would
            reach with half of the budget (the other half being for choosing; with all of it where there is one arm),
            at most four times its present compute: a forecast is good from a quarter, hardly before.
        delta: the least difference in reward that matters, in the reward's own scale; by default 0.01 of its range.
        price: the least gain in reward per unit of compute that is worth paying for.
        prior: of the curves that have to be fitted.
        siblings: let the arms inform one another (see `pooling`).
        seed: of the joint draws.

    Raises:
        PlanError: no arms, two of one name, mixed units or ranges, or a budget, horizon, delta, price or seed that
            cannot be.
    """
    seed = whole_of("seed", seed, PlanError, SEEDS)
    fits = fits_of(arms, PlanError, prior)
    check_arms(fits)
    _check_numbers(fits, budget=budget, delta=delta, horizon=horizon, price=price)
    now = np.array([each.curve.now for each in fits])
    budget, price = as_float(budget), None if price is None else as_float(price)
    delta = least_gain(delta, fits[0].curve)
    end = default_horizon(now, budget) if horizon is None else as_float(horizon)
    here = standing([enter(each, end) for each in fits], end, siblings=siblings, seed=seed)
    looks = _looks(here, budget, delta, price)
    value = min(sum(look.value for look in looks), here.expected_regret)
    outlooks = outlooks_of(here, delta)
    allocation = _merged(here, looks, outlooks)
    where = horizon_text(end, given=horizon is not None)
    finish, not_run_on = _finish(here, allocation, outlooks, budget, delta, price, where)
    allocation = [*allocation, *finish]
    return Plan(
        unit=fits[0].unit,
        budget=budget,
        horizon=end,
        delta=delta,
        price=price,
        allocation=tuple(allocation),
        arms=outlooks,
        choice=outlooks[here.best].arm,
        settled=here.expected_regret <= SETTLED * delta,
        expected_regret=here.expected_regret,
        value_of_information=value,
        look_again=None if not looks else (outlooks[looks[0].arm].arm, here.stop_on_the_way(looks[0])),
        not_run_on=not_run_on,
        horizon_given=horizon is not None,
    )


def default_horizon(now: FloatArray, budget: float) -> float:
    """See `plan`. now: compute of each arm, (K,)."""
    furthest = float(now.max())
    own = budget if len(now) == 1 else budget / 2
    return min(furthest + own, FURTHEST * furthest)


def outlooks_of(here: Standing, delta: float) -> tuple[Outlook, ...]:
    """Each arm among the others."""
    p_best, within, dropped = here.p_best, p_within(here.ends, delta), dominated(here.ends, delta)
    ends = here.told_ends
    return tuple(
        Outlook(
            arm=each.curve.name,
            now=float(here.now[at]),
            end=estimate_of(ends[:, at]),
            gain=estimate_of(here.told_gain(at, here.now[at], max(here.now[at], here.horizon))),
            p_best=float(p_best[at]),
            p_within_delta=float(within[at]),
            dominated=bool(dropped[at]),
            identified=each.identified["A"],
            misfit=each.misfit,
        )
        for at, each in enumerate(here.fits)
    )


def _looks(here: Standing, budget: float, delta: float, price: float | None) -> list[Look]:
    """The looks that the budget buys, in order, until the choice is expected to be settled; their values are their
    shares of what all of them save."""
    belief, best = here.belief(), here.best
    regret, left = here.expected_regret, float(budget)
    # the chosen arm is to be finished: looking at it costs nothing extra, looking at others must leave enough for it
    reserve = float(max(here.horizon - here.now[best], 0.0))
    reserve = reserve if reserve <= left else 0.0
    dropped = dominated(here.ends, delta)
    looks: list[Look] = []
    while regret > SETTLED * delta and len(looks) < _MOST_LOOKS:
        others = [arm for arm in range(belief.size) if arm != best and not dropped[arm]]
        rival = belief.best_look(left - reserve, others)
        own = belief.best_look(left, [best])
        look = max((each for each in (rival, own) if each is not None), key=lambda each: each.rate, default=None)
        if look is None:
            break
        look = replace(look, value=min(look.value, regret))  # more than all that is left to lose no look can save
        if look.value < _LEAST_VALUE * delta or (price is not None and look.rate < price):
            break
        belief.after(look)
        looks.append(look)
        left -= look.spend
        if look.arm == best:
            reserve = max(reserve - look.spend, 0.0)
        regret -= look.value
    each_by_itself = sum(look.value for look in looks)
    share = min(belief.saved() / each_by_itself, 1.0) if each_by_itself > 0 else 1.0
    return [replace(look, value=share * look.value) for look in looks]


def _merged(here: Standing, looks: list[Look], outlooks: tuple[Outlook, ...]) -> list[Allocation]:
    """One allocation for each arm that is looked at, in the order in which they come up."""
    rows: list[Allocation] = []
    for arm in dict.fromkeys(look.arm for look in looks):
        own = [look for look in looks if look.arm == arm]
        value = float(sum(look.value for look in own))
        reason = look_reason(outlooks, arm, here.best, value)
        rows.append(Allocation(outlooks[arm].arm, float(here.now[arm]), own[-1].compute, "look", value, reason))
    return rows


def _finish(
    here: Standing,
    looks: list[Allocation],
    outlooks: tuple[Outlook, ...],
    budget: float,
    delta: float,
    price: float | None,
    where: str,
) -> tuple[list[Allocation], str | None]:
    """The chosen arm to its end, `where` in words, as far as the budget goes; or why it is not run on."""
    best = here.best
    name = outlooks[best].arm
    start = next((row.to for row in looks if row.arm == name), float(here.now[best]))
    to = min(here.horizon, start + budget - sum(row.spend for row in looks))
    if to - start <= 1e-9 * here.horizon:
        return [], None
    if here.fallen[best]:
        return [], "it fell"
    if (little := _gains_little(here, delta)) is not None:
        return [], little
    gain = here.told_gain(best, start, to)
    if price is not None and gain.mean() < price * (to - start):
        asked = compute_text(price * (to - start))
        return [], f"{gain_text(estimate_of(gain))} is too little for its price, which asks for {asked}"
    short = "" if reaches(to, here.horizon) else where
    reason = finish_reason(outlooks[best], estimate_of(gain), start, to, short, here.fits[best].unit)
    return [Allocation(name, start, float(to), "finish", float(gain.mean()), reason)], None


def _gains_little(here: Standing, delta: float) -> str | None:
    """Why nothing is to be had of running the choice on, if so: it is sure to gain less than delta, or its curve is.
    What is told of a gain allows for runs that leave their curves, and by that none would be left where it is; a curve
    that does not describe the run (`shape`) is not asked."""
    best, now = here.best, float(here.now[here.best])
    sure = f"{share_text(SURE)} sure to gain less than {as_given(delta)}"
    if surely_below(here.told_gain(best, now, here.horizon), delta):
        return f"it is {sure}"
    if here.fits[best].misfit is None and surely_below(here.gain(best, now, here.horizon), delta):
        return f"by its curve it is {sure}"
    return None


def check_arms(fits: Sequence[Fit]) -> None:
    """Runs that can be compared: some, of different names, in one unit of compute and one range of rewards."""
    check_alike(fits)
    names = [each.curve.name for each in fits]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PlanError("arms", f"{twice[0]!r} twice", "names must be distinct", "name every run")


def check_alike(fits: Sequence[Fit]) -> None:
    """Some runs, in one unit of compute and one range of rewards."""
    if not fits:
        raise PlanError("arms", "none", "at least one run is needed", "give curves or fits")
    curves = [each.curve for each in fits]
    check_one_unit(curves, PlanError, "arms must share one unit of compute", "convert them first")
    check_one_range(curves, PlanError, "arms must share one range of rewards", "bring them to one scale")


def check_amounts(curve: Curve, **given: float | None) -> None:
    """What is given is positive and finite, compute such as runs can have, and no delta wider than the range of
    rewards; the curve is any arm's."""
    way_out = f"compute is in {curve.unit}, rewards as in the curves"
    for name, value in given.items():
        if value is not None:
            check = check_compute if name in ("budget", "horizon") else check_positive
            check(name, value, PlanError, way_out, needed="a positive number is needed")
    check_difference("delta", given.get("delta"), curve.width, PlanError)


def _check_numbers(fits: Sequence[Fit], *, horizon: float | None, **given: float | None) -> None:
    check_amounts(fits[0].curve, horizon=horizon, **given)
    first = min(fits, key=lambda each: each.curve.now)
    if horizon is not None and horizon < first.curve.now:
        raise PlanError(
            "horizon",
            as_given(as_float(horizon)),
            f"every arm is past it: even {first.curve.name} is at {as_given(first.curve.now)} {first.unit}",
            "give the compute of a full run",
        )
