"""Validation curves as forecasts and charts read them: one point per step, of the newest attempt that made it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from server.metrics.models import Evaluation


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
    time: datetime


def read_curve(session: Session, run_id: str) -> list[Point]:
    """The curve of one run, in the order of steps."""
    return read_curves(session, [run_id])[run_id]


def read_curves(session: Session, run_ids: Iterable[str]) -> dict[str, list[Point]]:
    """The curves of many runs in one query; a run without evaluations has an empty one.

    An attempt that resumed at step s supersedes what older attempts measured at s and beyond: those points
    belong to a branch of training that was thrown away.
    """
    curves: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
    if not curves:
        return curves
    newer = aliased(Evaluation)
    resumed = (
        select(newer.run_id, newer.attempt, func.min(newer.step).label("step"))
        .where(newer.run_id.in_(curves), newer.attempt > 1)
        .group_by(newer.run_id, newer.attempt)
        .cte("resumed")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    superseded = exists().where(
        resumed.c.run_id == Evaluation.run_id,
        resumed.c.attempt > Evaluation.attempt,
        resumed.c.step <= Evaluation.step,
    )
    columns = (
        Evaluation.step,
        Evaluation.attempt,
        Evaluation.compute,
        Evaluation.reward,
        Evaluation.prompts,
        Evaluation.samples,
        Evaluation.variance,
        Evaluation.time,
    )
    kept = select(Evaluation.run_id, *columns).where(Evaluation.run_id.in_(curves), ~superseded)
    for run_id, *values in session.execute(kept.order_by(Evaluation.run_id, Evaluation.step)):
        curves[run_id].append(Point(*values))
    return curves
