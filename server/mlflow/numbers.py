"""Numbers that MLflow's client logs. None of them is refused: an error would be raised into somebody's training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from forecurve.limits import is_compute
from forecurve.reports import name_fault, step_fault
from server.errors import Invalid
from server.metrics.ingest import store_points
from server.metrics.schemas import Point
from server.runs.fencing import over
from server.runs.models import Run
from server.runs.service import is_over

from .curves import compute_at, note_left_out, rule_in_force, settle
from .models import MlflowRun
from .rule import Rule
from .runs import heard, locked, moment, set_params, set_tags
from .schemas import Batch, Number

OF_THE_MACHINE = "system/"
"""Begins the names of what MLflow measures of the machine by itself."""
OWN_STEPS = "of the machine (`system/...`), which have steps of their own"
NO_NAME = "whose name is longer than 200 characters or has control characters"
NO_STEP = "whose step is below 0 or beyond 2,147,483,647"


def take(session: Session, batch: Batch, *, now: datetime) -> None:
    """What was logged, whole: tags, parameters, numbers. The same again changes nothing.

    Raises:
        NotFound: no such run.
        Over: the run is over.
        Invalid, Conflict: a tag does not hold.
    """
    run, mine = locked(session, batch.run)
    if is_over(run) and batch.metrics:
        raise over(run)
    if batch.params:
        set_params(mine, batch.params)
    if batch.tags:
        set_tags(session, run, mine, batch.tags, now=now)
    if not is_over(run):
        heard(session, run, now)
    if batch.metrics:
        store_points(session, run, run.attempt, _points(session, run, mine, batch.metrics, now), now)
    if batch.metrics or batch.params:
        settle(session, run, mine, now=now)


def _points(session: Session, run: Run, mine: MlflowRun, numbers: Sequence[Number], now: datetime) -> list[Point]:
    """Each of its name and step once, the last; those that cannot be kept are counted."""
    left: Counter[str] = Counter()
    kept: dict[tuple[str, int], Number] = {}
    for number in numbers:
        why = _fault(number)
        if why is None:
            kept[number.key, number.step] = number
        else:
            left[why] += 1
    note_left_out(session, run, mine, {why: mine.left_out.get(why, 0) + count for why, count in left.items()})
    rule = _rule(session, mine)
    spent = {step: number.value for (name, step), number in kept.items() if rule and name == rule.compute}
    return [_point(number, rule, mine, spent.get(number.step), now) for number in kept.values()]


def _fault(number: Number) -> str | None:
    if number.key.startswith(OF_THE_MACHINE):
        return OWN_STEPS
    if name_fault(number.key):
        return NO_NAME
    return NO_STEP if step_fault(number.step) else None


def _rule(session: Session, mine: MlflowRun) -> Rule | None:
    try:
        return rule_in_force(session, mine)
    except Invalid:
        return None


def _point(number: Number, rule: Rule | None, mine: MlflowRun, spent: float | None, now: datetime) -> Point:
    time = moment(number.timestamp, now)
    compute = None if rule is None else compute_at(rule, mine, number.step, time)
    if compute is None and rule is not None and spent is not None:
        compute = spent * (rule.per_step or 1.0)
    known = compute if compute is not None and is_compute(compute) else None
    return Point(metric=number.key, step=number.step, compute=known, value=float(number.value), time=time)
