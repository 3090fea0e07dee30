"""From the numbers that a run has logged to its curve: an evaluation for each of those that its rule names.

Numbers are kept as they come, and evaluations are made of those that are there: so which number is the curve may be
said before the run, while it goes on, or after it. Once there are evaluations, what they were made by is fixed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, false, func, null, or_, select
from sqlalchemy.orm import Session, aliased

from forecurve.limits import is_compute
from forecurve.reports import order_fault
from server.errors import Invalid
from server.metrics.ingest import store_evaluations
from server.metrics.models import Evaluation, MetricPoint
from server.metrics.schemas import EvaluationIn
from server.metrics.service import metric_names
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.reports import TRAINER
from server.runs.service import current_attempt, is_over, lock_run

from .guess import only_likely, undecided
from .models import MlflowExperiment, MlflowRun
from .rule import Rule, rule_of
from .spending import compute_at, fill_spent

_WAITING = 200
"""Runs that a new tag of their experiment gives a curve at once, the newest; others get it when they log again."""

NO_RATE = "that are no pass rate within `forecurve.range`"
NO_SPENT = "that are pass rates before any compute was logged"
NO_COMPUTE = "whose compute is none"
BACKWARDS = "whose compute goes backwards"


class _Logged(NamedTuple):
    """A number that is to be an evaluation; `spent` is what was logged as its compute."""

    attempt: int
    step: int
    value: float
    time: datetime
    spent: float | None


def settle_waiting(session: Session, experiment: MlflowExperiment, *, now: datetime) -> None:
    """Give the runs of an experiment that have no curve yet theirs, as far as its rule tells."""
    waiting = select(MlflowRun.run_id).where(MlflowRun.experiment_id == experiment.id, MlflowRun.rule.is_(None))
    newest = session.scalars(waiting.order_by(MlflowRun.run_id.desc()).limit(_WAITING)).all()
    for run_id in sorted(newest):
        settle(session, lock_run(session, run_id), session.get_one(MlflowRun, run_id), now=now)


def settle_ended(session: Session, run: Run, *, now: datetime) -> None:
    """Make the last evaluations of a run that is over, which is locked: what waited for its compute waits no more."""
    mine = session.get(MlflowRun, run.id)
    if mine is not None:
        settle(session, run, mine, now=now)


def settle(session: Session, run: Run, mine: MlflowRun, *, now: datetime) -> None:
    """Make evaluations of what the run, which is locked, has logged since the last time; where nothing is taken as its
    curve, the run says why."""
    try:
        rule = rule_in_force(session, mine)
    except Invalid as error:
        run.unfitted = f"Its tags do not say what its curve is: {error.detail}"
        return
    tell(session, run, mine, rule)
    metric = rule.metric or only_likely(session, run, rule.compute)
    if metric is None:
        run.unfitted = undecided([name for name in metric_names(session, run.id) if name != rule.compute])
        return
    rule = rule.model_copy(update={"metric": metric})
    found = list(_evaluations(session, run, mine, rule))
    if found and mine.rule is None:
        mine.rule = rule.model_dump(mode="json", exclude_defaults=True)
        run.unfitted = None
        fill_spent(session, run, mine, rule)
    elif mine.rule is None:
        run.unfitted = _nothing(session, run, rule)
    for attempt in sorted({one.attempt for one, _ in found}):
        store_evaluations(session, run, attempt, [what for one, what in found if one.attempt == attempt], now)


def rule_in_force(session: Session, mine: MlflowRun) -> Rule:
    """The rule that the run's evaluations are made by, or will be.

    Raises:
        Invalid: tags of the run and of its experiment do not hold beside one another.
    """
    if mine.rule is not None:
        return Rule.model_validate(mine.rule)
    return rule_of(session.get_one(MlflowExperiment, mine.experiment_id).tags, mine.tags)


def tell(session: Session, run: Run, mine: MlflowRun, rule: Rule) -> None:
    """Give the run what its rule says of it: its unit, budget and task while it has no evaluation, its seed and arm
    also later, where it has none."""
    if mine.rule is None:
        run.compute_unit, run.budget_compute, run.task = rule.counts_in, rule.budget, rule.task or run.task
    if run.seed is None or mine.rule is None:
        run.seed = rule.seed if rule.seed is not None else _seed(mine)
    run.arm = rule.arm if run.task is not None and run.seed is not None else None
    session.flush()


def note_left_out(session: Session, run: Run, mine: MlflowRun, reasons: Iterable[str]) -> None:
    """Say of each reason once, by an event of the run, that numbers are left out for it."""
    for why in sorted(set(reasons).difference(mine.left_out)):
        record_of(session, run, "numbers.left_out", actor=TRAINER, reason=f"Left out: numbers {why}.")
        mine.left_out = [*mine.left_out, why]


def _seed(mine: MlflowRun) -> int | None:
    said = str(mine.params.get("seed", "")).strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def _in_range(rule: Rule) -> ColumnElement[bool]:
    """Of NaN it is false: to Postgres that is greater than all."""
    return MetricPoint.value.between(*rule.range)


def _evaluations(session: Session, run: Run, mine: MlflowRun, rule: Rule) -> Iterator[tuple[_Logged, EvaluationIn]]:
    """Those of which an evaluation can be made; of the others a person is told why not."""
    logged = _waiting(session, run, rule)
    known = {attempt: _known(session, run, attempt) for attempt in {one.attempt for one in logged}}
    left = set()
    for one in logged:
        compute = compute_at(rule, mine, one.step, one.time)
        if compute is None and one.spent is not None:
            compute = one.spent * rule.price
        if compute is None and one.step == 0:
            compute = 0.0  # nothing was trained yet
        if compute is None:
            left.add(NO_SPENT)
            continue
        if not is_compute(compute):
            left.add(NO_COMPUTE)
            continue
        if order_fault(known[one.attempt], one.step, compute):
            left.add(BACKWARDS)
            continue
        insort(known[one.attempt], (one.step, compute))
        told = {"step": one.step, "compute": compute, "reward": rule.share(one.value), "time": one.time}
        yield one, EvaluationIn(**told, prompts=rule.prompts, samples=rule.samples)
    note_left_out(session, run, mine, left)


def _waiting(session: Session, run: Run, rule: Rule) -> list[_Logged]:
    """Pass rates of which no evaluation has been made, by attempt and step; with their compute, where numbers that
    were logged tell it: the last by then of the attempt, or of those before it."""
    point, made, spent = MetricPoint, Evaluation, aliased(MetricPoint)
    last_spent = (
        select(spent.value)
        .where(spent.run_id == point.run_id, spent.metric == rule.compute)
        .where(spent.attempt <= point.attempt, spent.step <= point.step)
        .order_by(spent.attempt.desc(), spent.step.desc())
        .limit(1)
        .scalar_subquery()
    )
    same = and_(made.run_id == point.run_id, made.attempt == point.attempt, made.step == point.step)
    rows = (
        select(point.attempt, point.step, point.value, point.time, *([last_spent] if rule.is_by_number else [null()]))
        .outerjoin(made, same)
        .where(point.run_id == run.id, point.metric == rule.metric, made.step.is_(None))
        .where(_in_range(rule))
    )
    if rule.is_by_number:
        rows = rows.where(_is_counted(session, run, rule))
    return [_Logged(*row) for row in session.execute(rows.order_by(point.attempt, point.step))]


def _is_counted(session: Session, run: Run, rule: Rule) -> ColumnElement[bool]:
    """Whether a number's compute is there: logged at its step or at a later one, for compute may be logged after the
    pass rate. Of an attempt that is over what was logged last before must do."""
    point = MetricPoint
    mine = select(point.attempt, func.max(point.step)).where(point.run_id == run.id, point.metric == rule.compute)
    last = session.execute(mine.group_by(point.attempt)).all()
    goes_on = None if is_over(run) or current_attempt(session, run).outcome is not None else run.attempt
    there = [
        and_(point.attempt == attempt, point.step <= step) if attempt == goes_on else point.attempt == attempt
        for attempt, step in last
    ]
    return or_(false(), *there)


def _known(session: Session, run: Run, attempt: int) -> list[tuple[int, float]]:
    made = select(Evaluation.step, Evaluation.compute).where(Evaluation.run_id == run.id, Evaluation.attempt == attempt)
    return [(step, compute) for step, compute in session.execute(made.order_by(Evaluation.step))]


def _nothing(session: Session, run: Run, rule: Rule) -> str:
    """Why no evaluation is made though it is known of which number."""
    logged = exists().where(MetricPoint.run_id == run.id, MetricPoint.metric == rule.metric)
    if not session.scalar(select(logged)):
        return f"nothing is logged as {rule.metric} yet"
    if not session.scalar(select(logged.where(_in_range(rule)))):
        return f"no value of {rule.metric} is a pass rate from {rule.range[0]:g} to {rule.range[1]:g}"
    return f"its compute is {rule.compute}, and for no {rule.metric} that is logged yet, by its step and since"
