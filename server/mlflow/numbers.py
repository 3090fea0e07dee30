"""Numbers that MLflow's client logs. None of them is refused: an error would be raised into somebody's training."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from forecurve.limits import is_compute
from forecurve.reports import name_fault, step_fault
from server.metrics.ingest import store_points
from server.metrics.schemas import Point
from server.metrics.service import metric_names
from server.runs.fencing import over
from server.runs.models import Run
from server.runs.service import is_over

from .curves import NO_RATE, note_left_out, settle
from .models import MlflowRun
from .rule import Rule
from .runs import heard, locked, moment, set_params, set_tags
from .schemas import Batch, Number
from .spending import compute_at, fill_spent

OF_THE_MACHINE = "system/"
"""Begins the names of what MLflow measures of the machine by itself."""
OWN_STEPS = "of the machine (`system/...`), which have steps of their own"
NO_NAME = "whose name is longer than 200 characters or has control characters"
NO_STEP = "whose step is below 0 or beyond 2,147,483,647"


def take(session: Session, batch: Batch, *, actor: str, now: datetime) -> None:
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
        set_params(session, run, mine, batch.params)
    if batch.tags:
        set_tags(session, run, mine, batch.tags, actor=actor, now=now)
    if batch.metrics:  # tags are also what a person says of a run that is silent
        heard(session, run, now)
        _keep(session, run, mine, batch.metrics, now)
    rule, names = _fixed(mine), {number.key for number in batch.metrics}
    news = names if rule is None else names & {rule.metric, rule.compute}
    if news or batch.params:
        settle(session, run, mine, now=now)


def _fixed(mine: MlflowRun) -> Rule | None:
    """By what the run's evaluations are made, where it has any."""
    return None if mine.rule is None else Rule.model_validate(mine.rule)


def _keep(session: Session, run: Run, mine: MlflowRun, numbers: Sequence[Number], now: datetime) -> None:
    """Each of its name and step once, the last. What they had cost is written beside them once it is known how."""
    kept: dict[tuple[str, int], Number] = {}
    left = set()
    rule = _fixed(mine)
    for number in numbers:
        why = _fault(number)
        if why is None:
            kept[number.key, number.step] = number
        if rule is not None and number.key == rule.metric and not 0 <= rule.share(number.value) <= 1:
            why = NO_RATE
        left |= {why} if why else set()
    note_left_out(session, run, mine, left)
    points = [_point(number, rule, mine, now) for number in kept.values()]
    store_points(session, run, run.attempt, points, now)
    if rule is not None and rule.is_by_number:
        logged = {name for name, _ in kept}
        names = metric_names(session, run.id) if rule.compute in logged else logged
        fill_spent(session, run, mine, rule, at=(names, {step for _, step in kept}))


def _fault(number: Number) -> str | None:
    if number.key.startswith(OF_THE_MACHINE):
        return OWN_STEPS
    if name_fault(number.key):
        return NO_NAME
    return NO_STEP if step_fault(number.step) else None


def _point(number: Number, rule: Rule | None, mine: MlflowRun, now: datetime) -> Point:
    time = moment(number.timestamp, now)
    compute = None if rule is None else compute_at(rule, mine, number.step, time)
    known = compute if compute is not None and is_compute(compute) else None
    return Point(metric=number.key, step=number.step, compute=known, value=float(number.value), time=time)
