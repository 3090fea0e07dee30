"""From the numbers that a run has logged to its curve: an evaluation for each of those that its rule names.

Numbers are kept as they come, and evaluations are made of those that are there: so which number is the curve may be
said before the run, while it goes on, or after it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from forecurve.importers.choosing import likely_rewards
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
from server.runs.service import lock_run

from .models import MlflowExperiment, MlflowRun
from .rule import RUNTIME, Rule, rule_of

_NAMED = 6  # numbers that a sentence names
_ALIKE = 3  # reports at which two numbers are the same, and not all one value, before they are taken for one
_WAITING = 1_000  # runs that a new tag of their experiment gives a curve at once

NO_RATE = "that are no pass rate within `forecurve.range`"
NO_COMPUTE = "whose compute is none"
BACKWARDS = "whose compute goes backwards"


class _Logged(NamedTuple):
    """A number that the rule names, and that is no evaluation yet."""

    attempt: int
    step: int
    value: float
    time: datetime


def settle_waiting(session: Session, experiment: MlflowExperiment, *, now: datetime) -> None:
    """Give the runs of an experiment that have no curve yet theirs, as far as its rule tells."""
    waiting = select(MlflowRun.run_id).where(MlflowRun.experiment_id == experiment.id, MlflowRun.rule.is_(None))
    for run_id in session.scalars(waiting.order_by(MlflowRun.run_id.desc()).limit(_WAITING)).all():
        settle(session, lock_run(session, run_id), session.get_one(MlflowRun, run_id), now=now)


def settle(session: Session, run: Run, mine: MlflowRun, *, now: datetime) -> None:
    """Make evaluations of what the run, which is locked, has logged since the last time; where nothing is taken as its
    curve, the run says why."""
    try:
        rule = rule_in_force(session, mine)
    except Invalid as error:
        run.unfitted = f"Its tags do not say what its curve is: {error.detail}"
        return
    if mine.rule is None:
        tell(session, run, mine, rule)
    metric = rule.metric or _only_likely(session, run)
    if metric is None:
        run.unfitted = _undecided(metric_names(session, run.id))
        return
    logged = _waiting(session, run, metric)
    found = list(_evaluations(session, run, mine, rule, logged))
    if not found and mine.rule is None:
        run.unfitted = _nothing(rule, metric, logged)
    if not found:
        return
    if mine.rule is None:
        mine.rule = rule.model_copy(update={"metric": metric}).model_dump(mode="json", exclude_defaults=True)
        run.unfitted = None
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
    """Give the run, which has no evaluation yet, the unit, budget and task of its rule."""
    seed = rule.seed if rule.seed is not None else _seed(mine)
    known = rule.task is not None and seed is not None  # of an arm both are needed
    told = {
        "compute_unit": rule.counts_in,
        "budget_compute": rule.budget,
        "task": rule.task or run.task,
        "arm": rule.arm if known else None,
        "seed": seed,
    }
    for field, value in told.items():
        if getattr(run, field) != value:
            setattr(run, field, value)
    session.flush()


def _seed(mine: MlflowRun) -> int | None:
    said = str(mine.params.get("seed", "")).strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def compute_at(rule: Rule, mine: MlflowRun, step: int, time: datetime) -> float | None:
    """What had been spent at a step, where steps or time tell; None where a number that was logged does."""
    price = rule.per_step or 1.0
    if rule.compute is None:
        return step * price
    return max(0.0, (time - mine.started_at).total_seconds()) * price if rule.compute == RUNTIME else None


def _only_likely(session: Session, run: Run) -> str | None:
    """The only number that looks like a pass rate on held-out prompts; those that are the same at every report are
    one."""
    likely = likely_rewards(metric_names(session, run.id))
    if len(likely) < 2:
        return likely[0] if likely else None
    point = MetricPoint
    rows = select(point.metric, point.attempt, point.step, point.value).where(point.run_id == run.id)
    series: dict[str, dict[tuple[int, int], float]] = {name: {} for name in likely}
    for name, attempt, step, value in session.execute(rows.where(point.metric.in_(likely))):
        series[name][attempt, step] = value
    first = series[likely[0]]
    tells = len(first) >= _ALIKE and len(set(first.values())) > 1  # two numbers may well both begin at 0
    return likely[0] if tells and all(other == first for other in series.values()) else None


def _waiting(session: Session, run: Run, metric: str) -> list[_Logged]:
    """Numbers of that name of which no evaluation has been made."""
    point, made = MetricPoint, Evaluation
    same = and_(made.run_id == point.run_id, made.attempt == point.attempt, made.step == point.step)
    rows = (
        select(point.attempt, point.step, point.value, point.time)
        .outerjoin(made, same)
        .where(point.run_id == run.id, point.metric == metric, made.step.is_(None))
    )
    return [_Logged(*row) for row in session.execute(rows.order_by(point.attempt, point.step))]


def _evaluations(
    session: Session, run: Run, mine: MlflowRun, rule: Rule, logged: Sequence[_Logged]
) -> Iterator[tuple[_Logged, EvaluationIn]]:
    """Those of which an evaluation can be made; of the others it is counted why not, once for each."""
    left: Counter[str] = Counter()
    known = {attempt: _known(session, run, attempt) for attempt in {one.attempt for one in logged}}
    for one in logged:
        compute = compute_at(rule, mine, one.step, one.time)
        if compute is None:
            compute = _last_spent(session, run, rule, one)
        if compute is None:
            continue  # it waits until that is logged
        reward = rule.share(one.value)
        why = _fault(reward, compute, one, known[one.attempt])
        if why is not None:
            left[why] += 1
            continue
        known[one.attempt] = sorted([*known[one.attempt], (one.step, compute)])
        told = {"step": one.step, "compute": compute, "reward": reward, "time": one.time}
        yield one, EvaluationIn(**told, prompts=rule.prompts, samples=rule.samples)
    _note_left_out(session, run, mine, left)


def _fault(reward: float, compute: float, one: _Logged, known: Sequence[tuple[int, float]]) -> str | None:
    if not (math.isfinite(reward) and 0 <= reward <= 1):
        return NO_RATE
    if not is_compute(compute):
        return NO_COMPUTE
    return BACKWARDS if order_fault(known, one.step, compute) else None


def _known(session: Session, run: Run, attempt: int) -> list[tuple[int, float]]:
    made = select(Evaluation.step, Evaluation.compute).where(Evaluation.run_id == run.id, Evaluation.attempt == attempt)
    return [(step, compute) for step, compute in session.execute(made.order_by(Evaluation.step))]


def _last_spent(session: Session, run: Run, rule: Rule, one: _Logged) -> float | None:
    """The compute that was logged at its step, else last before; None where there is none yet."""
    point = MetricPoint
    spent = select(point.value).where(
        point.run_id == run.id, point.metric == rule.compute, point.attempt == one.attempt, point.step <= one.step
    )
    value = session.scalar(spent.order_by(point.step.desc()).limit(1))
    return None if value is None else value * (rule.per_step or 1.0)


def _note_left_out(session: Session, run: Run, mine: MlflowRun, left: Counter[str]) -> None:
    """Numbers of which no evaluation is made are looked at again each time, so only a new most is news."""
    note_left_out(session, run, mine, {why: count for why, count in left.items() if count > mine.left_out.get(why, 0)})


def note_left_out(session: Session, run: Run, mine: MlflowRun, counts: dict[str, int]) -> None:
    """Keep how many numbers are left out by why; of each why the first time is an event of the run."""
    for why in counts:
        if why not in mine.left_out:
            record_of(session, run, "numbers.left_out", actor=TRAINER, reason=f"Left out: numbers {why}.")
    if counts:
        mine.left_out = {**mine.left_out, **counts}


def _undecided(names: Sequence[str]) -> str:
    if not names:
        return "nothing is logged yet"
    likely = likely_rewards(names)
    fault = (
        "several numbers could be its pass rate" if likely else "no number looks like a pass rate on held-out prompts"
    )
    shown = likely or list(names)
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return f"{fault}, and tag `forecurve.metric` names none; there are {', '.join(shown[:_NAMED])}{more}"


def _nothing(rule: Rule, metric: str, logged: Sequence[Any]) -> str:
    if not logged:
        return f"nothing is logged as {metric} yet"
    if rule.compute not in (None, RUNTIME):
        return f"nothing is logged as {rule.compute} yet, which is its compute"
    return f"no value of {metric} is a pass rate from {rule.range[0]:g} to {rule.range[1]:g}"
