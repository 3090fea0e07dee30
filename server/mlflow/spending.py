"""What a run had spent at each of its numbers, by its rule: charts of metrics are drawn over it too."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Float, case, cast, func, literal, select, update
from sqlalchemy.orm import Session, aliased

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE
from server.metrics.models import MetricPoint
from server.runs.models import Run

from .models import MlflowRun
from .rule import RUNTIME, Rule

_MOST_FILLED = 200_000
"""Numbers, some two seconds' worth."""


def compute_at(rule: Rule, mine: MlflowRun, step: int, time: datetime) -> float | None:
    """What had been spent at a step, where steps or time tell; None where a number that was logged does."""
    if rule.compute is None:
        return step * rule.price
    return max(0.0, (time - mine.started_at).total_seconds()) * rule.price if rule.compute == RUNTIME else None


def fill_spent(
    session: Session,
    run: Run,
    mine: MlflowRun,
    rule: Rule,
    *,
    at: tuple[Collection[str], Collection[int]] | None = None,
) -> None:
    """Write it beside the numbers that are there: beside all, or beside those of some names and steps of the newest
    attempt. (Names are needed to find steps: a long run has many.) Where they are very many none gets it, and charts
    of them are drawn over steps: somebody waits for the answer."""
    if _is_long(session, run) if at is None else len(at[0]) * len(at[1]) > _MOST_FILLED:
        return
    point, spent = MetricPoint, aliased(MetricPoint)
    numbers = update(point).where(point.run_id == run.id)
    if at is not None:
        names, steps = at
        numbers = numbers.where(point.metric.in_(names), point.attempt == run.attempt, point.step.in_(steps))
    counted: Any = spent.value
    if rule.is_by_number:
        same = spent.run_id == point.run_id, spent.attempt == point.attempt, spent.step == point.step
        numbers = numbers.where(*same, spent.metric == rule.compute)
    elif rule.compute == RUNTIME:
        counted = func.greatest(0.0, func.extract("epoch", point.time - literal(mine.started_at)))
    else:
        counted = cast(point.step, Float)
    # what is out of bounds is found before it is multiplied, by which it would leave what a number can hold
    least, most = LEAST_COMPUTE / rule.price, MOST_COMPUTE / rule.price
    holds = (counted == 0) | counted.between(least, most)
    numbers = numbers.values(compute=case((holds, counted * literal(rule.price))))
    session.execute(numbers, execution_options={"synchronize_session": False})


def _is_long(session: Session, run: Run) -> bool:
    some = select(MetricPoint.step).where(MetricPoint.run_id == run.id).limit(_MOST_FILLED + 1).subquery()
    return (session.scalar(select(func.count()).select_from(some)) or 0) > _MOST_FILLED
