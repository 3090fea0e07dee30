"""Allocating the compute that runs of a sweep share: who trains on, how far, who is held, and when the sweep is over.

It goes with the sweep's comparison, whose forecasts it rests on (compare.py): read with it, thought over outside any
transaction, applied under the locks of the runs. A run that was changed meanwhile is left for the next time.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.science import Fit, Outlook, SeedSpread
from forecurve.science.planning.rounds import SPENT, UNTIL_FORECAST, Round, Runner, is_spent, last_round, next_round
from forecurve.science.wording import further_text
from server.comparisons.find import Entrant
from server.forecasts.fitted import MIN_POINTS, rising
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.pausing import pause_run, resume_run
from server.runs.service import ALLOCATION, IN_LINE, is_over, request_stops
from server.runs.states import UNASKED, DesiredState, Status
from server.settings import Settings
from server.sweeps.allocation import NONE_OURS, horizon_of, spent_by
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import ALLOCATE, Sweep, SweepComparison

log = logging.getLogger(__name__)

_HELD = "Held by its sweep, as others tell more for their compute."


@dataclass(frozen=True)
class Shared:
    """Runs that share one budget, as they were read. `runs` are not over, or may still be the best; `reasons` say by
    their ids why some were let on before. `over` says why no run goes on, where that was said and stands."""

    sweep_id: str
    budget: float
    left: float
    horizon: float
    places: int
    runs: list[_Seen]
    reasons: dict[str, str]
    over: str | None


@dataclass(frozen=True)
class _Seen:
    """A run; `name` is its own among those of the sweep. `is_over`: it is, or its sweep has asked it to stop."""

    id: str
    name: str
    arm: str
    version: int
    allocated: bool
    trains: bool
    is_over: bool
    goes_to: float | None
    budget: float | None
    has_curve: bool

    @property
    def is_ours(self) -> bool:
        """Whether the sweep said how far it trains."""
        return self.allocated and not self.is_over


def read_shared(
    session: Session, settings: Settings, sweep_id: str, runs: Sequence[Run], entrants: Sequence[Entrant]
) -> Shared | None:
    """What there is to allocate; None where runs share nothing."""
    sweep = session.get_one(Sweep, sweep_id)
    if sweep.policy != ALLOCATE or sweep.budget_compute is None:
        return None
    said = _said_last(session, sweep_id)
    by_id, names = {one.id: one for one in entrants}, _names(runs)
    arms = {by_id[run.id].arm for run in runs if _may_be_chosen(run)}
    # a seed that cannot be chosen still tells how good its arm is
    seen = [_seen(run, names[run.id], by_id[run.id]) for run in runs if by_id[run.id].arm in arms]
    left = sweep.budget_compute - spent_by(runs)
    horizon, places = horizon_of(runs), settings.max_concurrent_runs
    reasons = {one["run_id"]: one["reason"] for one in said["runs"] if one["reason"]}
    over = None if any(map(_is_ours, runs)) else _stands(said["over"] if seen else NONE_OURS, left, horizon)
    return Shared(sweep_id, sweep.budget_compute, left, horizon, places, seen, reasons, over)


def is_waited_for(session: Session, sweep_id: str) -> bool:
    """Whether runs of the sweep train or are held until it says how far: nothing else may come that has it say so."""
    sweep = session.get_one(Sweep, sweep_id)
    mine = select(Run).where(Run.sweep_id == sweep_id, Run.allocated)
    return sweep.policy == ALLOCATE and any(map(_is_ours, session.scalars(mine)))


def _stands(over: str | None, left: float, horizon: float) -> str | None:
    """Why no run goes on, as it was said, where the sweep says nothing of any run by now. A budget that was raised
    after that is spent no more, and begins none that is over."""
    return NONE_OURS if over == SPENT and not is_spent(left, horizon) else over


def _said_last(session: Session, sweep_id: str) -> Mapping[str, Any]:
    row = session.get(SweepComparison, sweep_id)
    return row.allocation if row is not None and row.allocation is not None else {"over": None, "runs": []}


def _is_ours(run: Run) -> bool:
    return run.allocated and not is_over(run) and run.desired_state in UNASKED


def _may_be_chosen(run: Run) -> bool:
    """Not one that failed, or that a person stopped or paused."""
    if is_over(run):
        return run.status == Status.SUCCEEDED or (run.status == Status.STOPPED and run.allocated)
    return run.desired_state == DesiredState.RUN or run.allocated


def _ends(run: Run) -> bool:
    """Whether it is over, or will be: a run that its sweep has asked to stop stands among the others meanwhile, too."""
    return is_over(run) or run.desired_state not in UNASKED


def _names(runs: Sequence[Run]) -> dict[str, str]:
    """By id, a name that no other run of the sweep has, nor another arm of several: people may have given it twice."""
    often, seeds = Counter(run.name for run in runs), Counter(run.arm for run in runs)

    def is_own(run: Run) -> bool:
        return often[run.name] == 1 and (run.name == run.arm or seeds[run.name] < 2)

    return {run.id: run.name if is_own(run) else f"{run.name} ({run.id})" for run in runs}


def _seen(run: Run, name: str, entrant: Entrant) -> _Seen:
    return _Seen(
        id=run.id,
        name=name,
        arm=entrant.arm,
        version=run.version,
        allocated=run.allocated,
        trains=not is_over(run) and run.desired_state == DesiredState.RUN,
        is_over=_ends(run),
        goes_to=run.goes_to,
        budget=run.budget_compute,
        has_curve=len(rising(entrant.points)) >= MIN_POINTS,
    )


def think(shared: Shared, fits: Mapping[str, Fit], seed_sd: SeedSpread | None = None) -> Round | None:
    """What is to happen, by the forecasts of the runs, by their ids, and how far seeds lie apart where that is known;
    None where that failed, as the log says. Where it is over, only how they stand: what they reported as they were
    stopped counts, too."""
    runners = {run.name: _runner(run, fits.get(run.id)) for run in shared.runs}
    try:
        if shared.over is not None:
            return last_round(runners, shared.horizon, shared.over, seed_sd=seed_sd)
        return next_round(runners, shared.left, shared.horizon, shared.places, seed_sd=seed_sd)
    except Exception:
        log.exception("compute of sweep %s could not be allocated", shared.sweep_id)
        return None


def _runner(run: _Seen, fit: Fit | None) -> Runner:
    if run.is_over or (fit is None and run.has_curve):  # what cannot be fitted is held
        return Runner(fit, closed=True, arm=run.arm)
    if not run.allocated:
        return Runner(fit, closed=True, bound=run.budget if run.trains else None, arm=run.arm)
    return Runner(fit, run.goes_to if run.trains else None, arm=run.arm)


def apply(session: Session, shared: Shared, found: Round, now: datetime) -> bool:
    """Let runs train on, hold them, or stop all: those that are as they were read. The caller commits.

    Whether what was found still holds: not with another policy or budget, nor where all were to stop and one is not as
    it was read. What a run is told, of those that are not, is thought over anew.
    """
    mine = select(Run).where(Run.sweep_id == shared.sweep_id).order_by(*IN_LINE)
    locked = session.scalars(mine.with_for_update(key_share=True).execution_options(populate_existing=True)).all()
    sweep = session.get_one(Sweep, shared.sweep_id, populate_existing=True)
    if (sweep.policy, sweep.budget_compute) != (ALLOCATE, shared.budget):
        return False  # whoever changed it has asked for another plan
    read = {run.id: run for run in shared.runs}
    ours = [run for run in locked if _is_ours(run)]
    as_read = [run for run in ours if run.id in read and run.version == read[run.id].version]
    if found.over is None:
        for run in as_read:
            _apply_one(session, run, read[run.id].name, found, now)
    elif as_read == ours:  # whatever came meanwhile, a further run say, may know better
        request_stops(session, ours, actor=ALLOCATION, reason=f"Its sweep is over: {found.over}.")
    if {run.id for run in as_read} != {run.id for run in ours} | {run.id for run in shared.runs if run.is_ours}:
        ask_for_comparison(session, shared.sweep_id, now)  # nothing else may come that has the others thought over
    return found.over is None or as_read == ours


def _apply_one(session: Session, run: Run, name: str, found: Round, now: datetime) -> None:
    to = found.go.get(name)
    if to is None:
        if run.desired_state == DesiredState.RUN:
            pause_run(session, run.id, actor=ALLOCATION, reason=_HELD, now=now)
            run.goes_to = None
    elif run.desired_state == DesiredState.RUN:
        if to != run.goes_to:
            record_of(session, run, "run.allocated", actor=ALLOCATION, reason=_let_on(run, name, to, found), compute=to)
        run.goes_to = to
    elif run.status == Status.PAUSED:  # one on its way there asks again when it is
        resume_run(session, run.id, actor=ALLOCATION, now=now, reason=_let_on(run, name, to, found))
        run.goes_to = to


def _let_on(run: Run, name: str, to: float, found: Round) -> str:
    """How far, and why where that was said just now."""
    goal = f"to {further_text(to, run.last_compute or 0.0)} {run.compute_unit}" if to else "until it can be forecast"
    why = found.reasons.get(name)
    return f"Let on by its sweep {goal}{f': {why}' if why else ''}."


def said(shared: Shared, found: Round, fits: Mapping[str, Fit], now: datetime) -> dict[str, Any]:
    """What people are shown, in JSON; see `AllocationView`."""
    ids = {run.name: run.id for run in shared.runs}
    plan = found.plan
    outlooks = _likeliest_first(plan.arms) if plan else []
    before = {name: shared.reasons.get(ids[name]) for name in found.go}  # of what is on its way: when it was let on
    return {
        "horizon": shared.horizon,
        "choice": ids[plan.choice] if plan else None,
        "settled": plan.settled if plan else False,
        "expected_regret": plan.expected_regret if plan else None,
        "over": found.over,
        "runs": [
            {
                "run_id": ids[arm.arm],
                "end": arm.end.to_dict(),
                "p_best": arm.p_best,
                "dominated": arm.dominated,
                "seed_of": arm.seed_of,
                "reason": found.reasons.get(arm.arm) or before.get(arm.arm),
            }
            for arm in outlooks
        ],
        "sentence": _sentence(shared, found, fits),
        "planned_at": now.isoformat(),
    }


def _likeliest_first(outlooks: Sequence[Outlook]) -> list[Outlook]:
    """The seeds of an arm side by side."""
    highest: dict[str, float] = {}
    for one in outlooks:
        highest[one.called] = max(highest.get(one.called, -math.inf), one.end.median)
    return sorted(outlooks, key=lambda one: (-one.p_best, -highest[one.called], one.called, -one.end.median))


def _sentence(shared: Shared, found: Round, fits: Mapping[str, Fit]) -> str:
    if found.plan is None and found.over is None:
        known = sum(run.id in fits and found.go.get(run.name) != UNTIL_FORECAST for run in shared.runs)
        wanted = sum(run.id in fits or not run.is_over for run in shared.runs)
        return f"Every run trains until it can be forecast: {known} of {wanted} can be."
    told = [found.plan.sentence] if found.plan else []
    if found.over is not None and not (found.plan and found.plan.not_run_on):
        told.append(f"No run goes on: {found.over}.")
    return " ".join(told)
