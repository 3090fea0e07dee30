"""Which arms of a sweep to run how far next, with what is left of the compute.

All arms are compared at one compute, the horizon, and one of several seeds by the mean of its runs. While choosing now
is expected to lose too much, the budget buys looks: the run and the compute with the largest knowledge gradient per
unit of compute, each look conditioning the next (their results are not known, their precision is). What is left
finishes a run of the arm that is then chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.digits import as_given

from ..arrays import FloatArray
from ..attribution.seeds import CEILING_SPREAD, SeedSpread
from ..checks import as_float, check_compute, check_difference, check_kind, check_positive, whole_of
from ..curves.alike import check_one_range, check_one_unit
from ..curves.curve import Curve
from ..curves.margins import SETTLED, least_gain
from ..errors import PlanError
from ..fitting.fit import Fit
from ..posterior.prior import Prior
from ..values import estimate_of, jsonable
from .allocating import Room, allocated
from .dominated import dominated, p_within
from .groups import Arms, Grouped, grouped
from .outlook import Allocation, Outlook
from .standing import Standing, enter, standing
from .wording import horizon_text, plan_sentence
from .worth import arms_of_runs, p_best, regret_of, worth_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

FURTHEST = 4.0  # times the present compute: as far ahead as arms are compared unless it is asked for
SEEDS = "give another number for other draws"
NAMES = "name arms as they are named in `arms`"


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What to run next.

    Attributes:
        unit: of every compute.
        budget: further compute over all arms.
        horizon: compute at which arms are compared; said with all its digits where `horizon_given`.
        allocation: in the order of doing; the first one is firm, the others are what is expected to follow it.
        arms: the outlook of each run.
        choice: the run to take if one had to choose now, of the arm with the highest expected end: of its runs that are
            expected to end within delta of the highest, the furthest.
        settled: whether choosing now is expected to lose less than a tenth of delta.
        expected_regret: what choosing now is expected to lose, as far as these runs will tell.
        regret_with_seeds: the same with what a few seeds leave open of their arms.
        value_of_information: how much of that the looks of the plan are expected to save.
        look_again: (arm, compute) after which to plan anew; None when nothing is to be looked at.
        not_run_on: why the choice is not run to the horizon though budget would be left for it; None where it is, is
            there already, or none is left.
        going: computes to which runs are on their way already, and what of the budget that takes is gone.
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
    regret_with_seeds: float
    value_of_information: float
    look_again: tuple[str, float] | None
    not_run_on: str | None
    horizon_given: bool = False
    going: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """What a colleague would say."""
        return plan_sentence(self)

    @property
    def spend(self) -> float:
        """Compute that the plan allocates."""
        return float(sum(each.spend for each in self.allocation))

    @property
    def under_way(self) -> float:
        """Compute that what is on its way takes until it is there."""
        now = {arm.arm: arm.now for arm in self.arms}
        return float(sum(max(to - now[arm], 0.0) for arm, to in self.going.items()))

    @property
    def chosen(self) -> Outlook:
        """The outlook of the choice."""
        return next(arm for arm in self.arms if arm.arm == self.choice)

    @property
    def chosen_arm(self) -> str:
        """The arm of the choice, by which it may be one of several seeds."""
        return self.chosen.called

    @property
    def has_seeds(self) -> bool:
        """Whether an arm has several runs, so that what is said of arms differs from what is said of runs."""
        return any(arm.seed_of is not None for arm in self.arms)

    @property
    def dominated(self) -> tuple[str, ...]:
        """Runs that can be dropped."""
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
                    "chosen_arm": self.chosen_arm,
                    "expected_gain": self.chosen.gain.to_dict(),
                    "settled": self.settled,
                    "expected_regret": self.expected_regret,
                    "regret_with_seeds": self.regret_with_seeds,
                    "value_of_information": self.value_of_information,
                    "look_again": look,
                    "not_run_on": self.not_run_on,
                    "going": dict(self.going),
                    "spend": self.spend,
                    "left": max(self.budget - self.under_way - self.spend, 0.0),
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
    arms: Arms,
    budget: float,
    *,
    horizon: float | None = None,
    delta: float | None = None,
    price: float | None = None,
    prior: str | Prior = "none",
    siblings: bool = True,
    seed: int = 0,
    going: Mapping[str, float] | None = None,
    closed: Collection[str] = (),
    seed_sd: float | SeedSpread | None = None,
) -> Plan:
    """Plan the next compute of a sweep.

    Args:
        arms: unfinished runs, or name -> run: curves of at least 3 evaluations, or their fits; one unit, one range of
            rewards, distinct names. Of an arm with several seeds name -> its runs, a list or by their own names: arms
            are then chosen by the mean of their runs, while runs are what is looked at and taken to its end.
        budget: further compute over all arms together.
        horizon: compute at which the arms are compared, that of a full run. By default what the furthest arm would
            reach with half of the budget (the other half being for choosing; with all of it where there is one arm),
            at most four times its present compute: a forecast is good from a quarter, hardly before.
        delta: the least difference in reward that matters, in the reward's own scale; by default 0.01 of its range.
        price: the least gain in reward per unit of compute that is worth paying for.
        prior: of the curves that have to be fitted.
        siblings: let the arms inform one another (see `pooling`).
        seed: of the joint draws.
        going: name -> compute of runs that are on their way to there just now. What they will show is counted on, and
            what that takes is taken off the budget first.
        closed: names of runs that can go no further, but to where they are going. They may be the choice, and nothing
            is allocated to them.
        seed_sd: the sd between seeds of one arm, as `rank` takes it: what few seeds leave open has its share in
            `p_best`, where an arm has several. No look at these runs tells it, so it is none of what choosing loses.

    Raises:
        CompareError: a seed_sd that cannot be.
        PlanError: no arms, two of one name, mixed units or ranges, a run that is going or closed and is none of these,
            or a budget, horizon, delta, price, seed or compute that cannot be.
    """
    seed = whole_of("seed", seed, PlanError, SEEDS)
    runs = grouped(arms, PlanError, prior)
    fits = runs.fits
    check_arms(fits)
    _check_numbers(fits, budget=budget, delta=delta, horizon=horizon, price=price)
    under_way = _checked(runs, {} if going is None else going, closed)
    now = np.array([each.curve.now for each in fits])
    budget, price = as_float(budget), None if price is None else as_float(price)
    delta = least_gain(delta, fits[0].curve)
    spread = spread_of(seed_sd, fits[0])
    end = default_horizon(now, budget, len(runs.arms)) if horizon is None else as_float(horizon)
    here = standing([enter(each, end) for each in fits], end, siblings=siblings, seed=seed, sizes=runs.sizes)
    worth = worth_draws(here, runs.arms, spread, seed)
    outlooks = outlooks_of(here, delta, runs.seed_of, worth)
    room = Room(budget, delta, price, under_way, frozenset(closed))
    best = here.choice(delta, room.closed)
    found = allocated(here, best, outlooks, room, horizon_text(end, given=horizon is not None))
    return Plan(
        unit=fits[0].unit,
        budget=budget,
        horizon=end,
        delta=delta,
        price=price,
        allocation=found.rows,
        arms=outlooks,
        choice=outlooks[best].arm,
        settled=here.expected_regret <= SETTLED * delta,
        expected_regret=here.expected_regret,
        regret_with_seeds=max(regret_of(worth), here.expected_regret),
        value_of_information=found.value,
        look_again=next(((row.arm, row.stop) for row in found.rows if row.kind == "look"), None),
        not_run_on=found.not_run_on,
        horizon_given=horizon is not None,
        going=under_way,
    )


def default_horizon(now: FloatArray, budget: float, arms: int) -> float:
    """See `plan`. now: compute of each run, (K,)."""
    furthest = float(now.max())
    own = budget if arms == 1 else budget / 2
    return min(furthest + own, FURTHEST * furthest)


def spread_of(seed_sd: float | SeedSpread | None, fit: Fit) -> SeedSpread:
    """Between seeds of one arm, as given or as attribution guesses; the fit is any run's."""
    return SeedSpread.of(seed_sd, CEILING_SPREAD.scaled(fit.curve.width))


def worth_draws(here: Standing, names: Sequence[str], spread: SeedSpread, seed: int = 0) -> FloatArray:
    """Joint draws of what the arms, of these names, are worth, (S, A): as `rank` has them where one has several seeds,
    else the ends of these very runs."""
    if max(here.sizes) == 1:
        return here.ends
    return worth_of(here.ends, here.sizes, names, spread, np.random.default_rng(seed + 2))


def outlooks_of(here: Standing, delta: float, seed_of: Sequence[str | None], worth: FloatArray) -> tuple[Outlook, ...]:
    """Each run among the others.

    Args:
        here: K runs of A arms.
        delta: see `plan`.
        seed_of: of each run the arm that has others as well, (K,).
        worth: `worth_draws`.
    """
    best, within, dropped = p_best(worth), p_within(worth, delta), dominated(worth, delta)
    arms, ends = arms_of_runs(here.sizes), here.told_ends
    return tuple(
        Outlook(
            arm=each.curve.name,
            now=float(here.now[at]),
            end=estimate_of(ends[:, at]),
            gain=estimate_of(here.told_gain(at, here.now[at], max(here.now[at], here.horizon))),
            p_best=float(best[arms[at]]),
            p_within_delta=float(within[arms[at]]),
            dominated=bool(dropped[arms[at]]),
            identified=each.identified["A"],
            misfit=each.misfit,
            seed_of=seed_of[at],
        )
        for at, each in enumerate(here.fits)
    )


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
            check = check_positive if name in ("delta", "price") else check_compute
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


def _checked(runs: Grouped, going: Mapping[str, float], closed: Collection[str]) -> dict[str, float]:
    """Where each run that is going goes to."""
    check_kind("going", going, Mapping, "pass name -> compute", PlanError)
    if isinstance(closed, str):
        raise PlanError("closed", repr(closed), "is one text", "pass a list of names")
    check_kind("closed", closed, Collection, "pass a list of names", PlanError)
    names = [each.curve.name for each in runs.fits]  # no set: what is given may be no name at all, and have no hash
    for argument, given in (("going", going), ("closed", closed)):
        for name in given:
            if name not in names and name in runs.seed_of:
                raise PlanError(argument, repr(name), "is an arm of several runs", "name those of its runs")
            if name not in names:
                raise PlanError(argument, repr(name), "is none of the arms", NAMES)
    way_out, needed = f"compute is in {runs.fits[0].unit}", "a positive number is needed"
    for name, to in going.items():
        check_compute(f"going[{name!r}]", to, PlanError, way_out, needed)
    return {name: as_float(to) for name, to in going.items()}
