"""What a run had spent at each of its numbers, by its rule: charts of metrics are drawn over it too."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, func, literal, select, update
from sqlalchemy.orm import Session, aliased

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE
from server.metrics.models import MetricPoint
from server.runs.models import Run

from .models import MlflowRun
from .rule import RUNTIME, Rule


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
    attempt. (Names are needed to find steps: a long run has many.)"""
    point, spent = MetricPoint, aliased(MetricPoint)
    compute: ColumnElement[Any]
    if rule.compute is None:
        compute = point.step * literal(rule.price)
    elif rule.compute == RUNTIME:
        since = func.extract("epoch", point.time - literal(mine.started_at))
        compute = func.greatest(0.0, since) * literal(rule.price)
    else:
        same = spent.run_id == point.run_id, spent.attempt == point.attempt, spent.step == point.step
        value = select(spent.value).where(*same, spent.metric == rule.compute).scalar_subquery()
        compute = value * literal(rule.price)
    holds = (compute == 0) | compute.between(LEAST_COMPUTE, MOST_COMPUTE)
    numbers = update(point).where(point.run_id == run.id)
    if at is not None:
        names, steps = at
        numbers = numbers.where(point.metric.in_(names), point.attempt == run.attempt, point.step.in_(steps))
    session.execute(numbers.values(compute=case((holds, compute))), execution_options={"synchronize_session": False})
