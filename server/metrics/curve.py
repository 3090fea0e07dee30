"""Validation curves as forecasts, charts and people read them: one point a step, of the newest attempt to make it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from .models import Evaluation


@dataclass(frozen=True)
class Point:
    """One evaluation of a curve. `compute` is in the run's unit; `variance` is that of `reward`, None where unknown."""

    step: int
    attempt: int
    compute: float
    reward: float
    prompts: int | None
    samples: int | None
    variance: float | None
    details: dict[str, Any]
    time: datetime


def validation_curve(session: Session, run_id: str) -> list[Point]:
    """The curve of one run, in the order of steps."""
    return validation_curves(session, [run_id])[run_id]


def validation_curves(session: Session, run_ids: Iterable[str]) -> dict[str, list[Point]]:
    """The curves of many runs in one query; a run without evaluations has an empty one.

    An attempt that resumed supersedes what older attempts measured from its first evaluation on, by step and by
    compute: those points belong to a branch of training that was thrown away. So along a curve neither goes backwards.
    """
    curves: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
    if not curves:
        return curves
    newer = aliased(Evaluation)
    first = func.min(newer.step).label("step"), func.min(newer.compute).label("compute")
    resumed = (
        select(newer.run_id, newer.attempt, *first)
        .where(newer.run_id.in_(curves), newer.attempt > 1)
        .group_by(newer.run_id, newer.attempt)
        .cte("resumed")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    superseded = exists().where(
        resumed.c.run_id == Evaluation.run_id,
        resumed.c.attempt > Evaluation.attempt,
        or_(resumed.c.step <= Evaluation.step, resumed.c.compute <= Evaluation.compute),
    )
    columns = (
        Evaluation.step,
        Evaluation.attempt,
        Evaluation.compute,
        Evaluation.reward,
        Evaluation.prompts,
        Evaluation.samples,
        Evaluation.variance,
        Evaluation.details,
        Evaluation.time,
    )
    kept = select(Evaluation.run_id, *columns).where(Evaluation.run_id.in_(curves), ~superseded)
    for run_id, *values in session.execute(kept.order_by(Evaluation.run_id, Evaluation.step)):
        curves[run_id].append(Point(*values))
    return curves
