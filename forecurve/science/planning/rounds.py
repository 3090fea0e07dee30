"""Runs of a sweep that share one budget of compute: which of them train on now, how far, and which are held.

First every run trains until it can be forecast: it has evaluations enough, and has come to a twentieth of the horizon,
before which hardly anything can be known of its end. From then on a plan is made whenever a run has come to where it
was to go: as many of its looks as there are places are taken at once, each counting on those under way. Once no look
is worth its compute, the chosen run goes to the horizon, and the sweep is over. That little is left for a run to gain
is not believed before it is at a quarter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..attribution.seeds import SeedSpread
from ..curves.curve import Curve
from ..departures.misfit import FALLEN
from ..fitting.fit import Fit
from .plan import Plan, plan
from .wording import reaches

UNTIL_FORECAST = 0.0
"""Where a run goes that is to train until it can be forecast."""
SPENT = "the budget is spent"
"""Why no run is to go on, where nothing is left of what they share."""

_FIRST = 0.05  # of the horizon: what little says of an end before it, all runs say alike
_TRUSTED = 0.25  # of the horizon: where forecasts of single runs begin to be good
_LITTLE = 1e-3  # of the horizon: budget that nobody would begin a run for
_NOTHING = 1e-10  # of the horizon: budget that buys nothing, for a plan must have one


@dataclass(frozen=True)
class Runner:
    """One run.

    Attributes:
        fit: its forecast; None while it has too few evaluations.
        goes_to: compute to which it was let go and trains; None where it is held, or was never begun.
        closed: nothing more can be asked of it: it is over, or somebody else says what becomes of it. One that is
            closed and has no forecast is left out.
        bound: compute to which somebody else lets it train; of a closed run only.
        arm: of which it is a seed, by the mean of which it is chosen; by itself where it has none.
    """

    fit: Fit | None
    goes_to: float | None = None
    closed: bool = False
    bound: float | None = None
    arm: str | None = None

    def is_before(self, compute: float) -> bool:
        """Whether it cannot be forecast yet, or has not come to this compute."""
        return self.fit is None or not reaches(self.fit.curve.now, compute)

    @property
    def has_arrived(self) -> bool:
        """Whether it is where it was to go."""
        return self.fit is not None and self.goes_to is not None and reaches(self.fit.curve.now, self.goes_to)


@dataclass(frozen=True)
class Round:
    """What is to happen now; runs by their names.

    Attributes:
        go: where runs go that are to train, those that train already included.
        reasons: why, of those that are told to go on or to begin.
        plan: that all rests on, or of which only the choice counts where nothing is left to allocate; None while a run
            cannot be forecast yet, or where none can be.
        over: why no run is to go on, in a few words; None while one is.
    """

    go: dict[str, float]
    reasons: dict[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    over: str | None = None


def next_round(
    runners: Mapping[str, Runner],
    left: float,
    horizon: float,
    places: int,
    *,
    delta: float | None = None,
    seed_sd: float | SeedSpread | None = None,
) -> Round:
    """Which runs train on now.

    Args:
        runners: by name.
        left: of the compute that the runs share; what they are on their way to is not taken off yet.
        horizon: compute of a full run.
        places: how many runs may train at once; at least one does. Runs that cannot be forecast yet are all told to go:
            whoever lets them train lets them wait for a place.
        delta, seed_sd: see `plan`.

    Raises:
        CompareError, PlanError: see `plan`.
    """
    if is_spent(left, horizon):
        return last_round(runners, horizon, SPENT, delta=delta, seed_sd=seed_sd)
    young = [name for name, one in runners.items() if not one.closed and one.is_before(_FIRST * horizon)]
    if young:
        return Round(_on_the_way(runners) | dict.fromkeys(young, UNTIL_FORECAST))
    fits = _fits(runners)
    if not fits:
        return Round({}, over="no run can be forecast")
    if not any(fit.curve.now < horizon for fit in fits.values()):
        return last_round(runners, horizon, "every run is at its end", delta=delta, seed_sd=seed_sd)
    closed = [name for name in fits if runners[name].closed]
    going = _going(runners, horizon)
    found = plan(
        _by_arm(runners),
        left,
        horizon=horizon,
        delta=delta,
        going=going | _bound(runners),
        closed=closed,
        seed_sd=seed_sd,
    )
    return _round(found, runners, going, places)


def last_round(
    runners: Mapping[str, Runner],
    horizon: float,
    over: str,
    *,
    delta: float | None = None,
    seed_sd: float | SeedSpread | None = None,
) -> Round:
    """How the runs stand where none is to go on, `over` saying why. Runs that all went beyond the horizon, as each does
    by a part of a step, are compared where the first of them is: compute that nobody gave, and that is told in short.
    """
    fits = _fits(runners)
    if not fits:
        return Round({}, over=over)
    end = max(horizon, min(fit.curve.now for fit in fits.values()))
    found = plan(_by_arm(runners), _NOTHING * end, horizon=end, delta=delta, seed_sd=seed_sd)
    return Round({}, plan=replace(found, horizon_given=end == horizon), over=over)


def is_spent(left: float, horizon: float) -> bool:
    """Whether so little is left that nobody would begin a run for it."""
    return left <= _LITTLE * horizon


def _fits(runners: Mapping[str, Runner]) -> dict[str, Fit]:
    return {name: one.fit for name, one in runners.items() if one.fit is not None}


def _by_arm(runners: Mapping[str, Runner]) -> dict[str, dict[str, Curve | Fit]]:
    """Runs that can be forecast, by their names, of each arm."""
    arms: dict[str, dict[str, Curve | Fit]] = {}
    for name, fit in _fits(runners).items():
        arm = runners[name].arm
        arms.setdefault(name if arm is None else arm, {})[name] = fit
    return arms


def _on_the_way(runners: Mapping[str, Runner]) -> dict[str, float]:
    """Where runs go that were let go, and are not there."""
    on = {name: one.goes_to for name, one in runners.items() if not one.closed and not one.has_arrived}
    return {name: to for name, to in on.items() if to is not None}


def _going(runners: Mapping[str, Runner], horizon: float) -> dict[str, float]:
    """Runs on their way to a look. One that is to go to its end is thought over each time."""
    return {name: to for name, to in _on_the_way(runners).items() if not reaches(to, horizon)}


def _bound(runners: Mapping[str, Runner]) -> dict[str, float]:
    """Runs that somebody else lets train on."""
    bound = {name: (one.fit, one.bound) for name, one in runners.items() if one.closed}
    return {name: to for name, (fit, to) in bound.items() if fit and to is not None and not reaches(fit.curve.now, to)}


def _round(found: Plan, runners: Mapping[str, Runner], going: dict[str, float], places: int) -> Round:
    go, reasons = dict(going), {}
    looks = [row for row in found.allocation if row.kind == "look"]
    finish = next((row for row in found.allocation if row.kind == "finish"), None)
    # the choice may be looked at to its end, which leaves nothing to finish
    onward = finish or next((row for row in looks if row.arm == found.choice), None)
    choice = runners[found.choice]
    is_finishing = choice.goes_to is not None and not choice.has_arrived and found.choice not in going
    places = max(places, 1)
    if is_finishing and onward is not None:
        go[onward.arm], reasons[onward.arm] = onward.to, onward.reason
    elif finish is not None and ((found.settled and len(go) < places) or not (looks or found.going)):
        go[finish.arm], reasons[finish.arm] = finish.to, finish.reason
    for row in looks:
        if row.arm not in go and len(go) < places:
            go[row.arm], reasons[row.arm] = row.stop, row.reason
    room = found.budget - found.under_way
    if not go and not choice.closed and room > _LITTLE * found.horizon and _is_given_up_early(found):
        found = replace(found, not_run_on=None)
        go[found.choice] = min(_TRUSTED * found.horizon, found.chosen.now + room)
        reasons[found.choice] = "the choice: how little it gains is hardly known before a quarter"
    return Round(go, reasons, found, None if go or _bound(runners) else _why_over(found))


def _is_given_up_early(found: Plan) -> bool:
    """The choice would not be run on, though it is not where its forecast is to be trusted. What fell is let be."""
    early = not reaches(found.chosen.now, _TRUSTED * found.horizon)
    return found.not_run_on is not None and early and found.chosen.misfit not in FALLEN


def _why_over(found: Plan) -> str:
    if found.not_run_on is not None:
        return f"{found.choice} is not run on, as {found.not_run_on}"
    if reaches(found.chosen.now, found.horizon):
        return f"{found.choice} is at its end"
    return SPENT
