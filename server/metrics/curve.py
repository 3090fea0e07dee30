"""Validation curves as forecasts, charts and people read them: one point a step, of the newest attempt to make it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, func, insert, literal, or_, select
from sqlalchemy.orm import Session, aliased

from .models import Evaluation

_TOKENS = Evaluation.details["tokens"].as_float()

PASS_RATES = (0.0, 1.0)
"""What the rewards of evaluations lie in."""

INHERITED = 0
"""The attempt by which a fork's curve holds its parent's evaluations; its own attempts count from 1."""


@dataclass(frozen=True)
class Point:
    """One evaluation of a curve. `compute` is in the run's unit; `variance` is the known one of `reward`, by counts.

    `attempt` is `INHERITED` for what a fork that goes on as its parent did has of its parent's curve.
    """

    step: int
    attempt: int
    compute: float
    reward: float
    prompts: int | None
    samples: int | None
    variance: float | None
    time: datetime
    tokens: float | None = None  # `details.tokens`, where whoever trained says them
    details: dict[str, Any] = field(default_factory=dict, hash=False)  # only where it was asked for


def validation_curve(session: Session, run_id: str, *, details: bool = False) -> list[Point]:
    """The curve of one run, in the order of steps."""
    return validation_curves(session, [run_id], details=details)[run_id]


def validation_curves(session: Session, run_ids: Iterable[str], *, details: bool = False) -> dict[str, list[Point]]:
    """The curves of many runs in one query; a run without evaluations has an empty one.

    An attempt that resumed supersedes what older attempts measured from its first evaluation on, by step and by
    compute: those points belong to a branch of training that was thrown away. So along a curve neither goes backwards.
    """
    curves: dict[str, list[Point]] = {run_id: [] for run_id in run_ids}
    if not curves:
        return curves
    kept = select(Evaluation.run_id, *_columns(details)).where(*in_curves(list(curves)))
    for run_id, *values in session.execute(kept.order_by(Evaluation.run_id, Evaluation.step)):
        curves[run_id].append(Point(*values))
    return curves


def end_of_curve(session: Session, run_id: str, most: int) -> tuple[list[Point], int]:
    """The last points of one run's curve, the newest first, and how many it has: pages are read often, and a curve may
    have thousands."""
    whole = select(*_columns(details=False), func.count().over()).where(*in_curves([run_id]))
    rows = session.execute(whole.order_by(Evaluation.step.desc()).limit(most)).all()
    return [Point(*row[:-1]) for row in rows], rows[0][-1] if rows else 0


def _columns(details: bool) -> list[Any]:
    """What a Point has, in its order."""
    wanted = [each.name for each in fields(Point) if details or each.name != "details"]
    return [_TOKENS if name == "tokens" else getattr(Evaluation, name) for name in wanted]


@dataclass(frozen=True)
class Outline:
    """A curve in few points, (compute, reward): the first, the last and some between; `count` is how many it has."""

    points: Sequence[tuple[float, float]]
    count: int


def outlines(session: Session, run_ids: Sequence[str], most: int) -> dict[str, Outline]:
    """The curves of many runs, each in at most so many points, evenly chosen by the database: lists are read often, and
    a curve may have thousands. A run without evaluations is left out."""
    place = func.row_number().over(partition_by=Evaluation.run_id, order_by=Evaluation.step).label("place")
    count = func.count().over(partition_by=Evaluation.run_id).label("count")
    columns = Evaluation.run_id, Evaluation.compute, Evaluation.reward
    each = select(*columns, place, count).where(*in_curves(run_ids)).subquery()
    apart = func.greatest(1, (each.c.count + most - 3) // (most - 1))
    kept = or_(each.c.place == 1, (each.c.count - each.c.place) % apart == 0)
    found: dict[str, list[tuple[float, float]]] = {}
    counts: dict[str, int] = {}
    for run_id, compute, reward, _, counts[run_id] in session.execute(select(each).where(kept).order_by(each.c.place)):
        found.setdefault(run_id, []).append((compute, reward))
    return {run_id: Outline(points, counts[run_id]) for run_id, points in found.items()}


def inherit(session: Session, run_id: str, *, parent_id: str, attempt: int, step: int) -> Point | None:
    """Begin the curve of a run with its parent's up to a checkpoint, that of `step` which `attempt` wrote.

    Answers the last point that was taken over, None where the parent was not evaluated before.
    """
    branch = *in_curves([parent_id], attempt), Evaluation.step <= step
    columns = [column.key for column in Evaluation.__table__.columns if column.key not in ("run_id", "attempt")]
    theirs = select(literal(run_id), literal(INHERITED), *(getattr(Evaluation, name) for name in columns))
    session.execute(insert(Evaluation).from_select(["run_id", "attempt", *columns], theirs.where(*branch)))
    taken = validation_curve(session, run_id)
    return taken[-1] if taken else None


def in_curves(wanted: Sequence[str], last_attempt: int | None = None) -> tuple[ColumnElement[bool], ...]:
    """Conditions for the evaluations that are on the curves of runs; by what was known in `last_attempt` when given."""
    newer = aliased(Evaluation)
    ours: list[ColumnElement[bool]] = [Evaluation.run_id.in_(wanted)]
    theirs: list[ColumnElement[bool]] = [newer.run_id.in_(wanted), newer.attempt > INHERITED]
    if last_attempt is not None:
        ours.append(Evaluation.attempt <= last_attempt)
        theirs.append(newer.attempt <= last_attempt)
    first = func.min(newer.step).label("step"), func.min(newer.compute).label("compute")
    resumed = (
        select(newer.run_id, newer.attempt, *first)
        .where(*theirs)
        .group_by(newer.run_id, newer.attempt)
        .cte("resumed")
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    superseded = exists().where(
        resumed.c.run_id == Evaluation.run_id,
        resumed.c.attempt > Evaluation.attempt,
        or_(resumed.c.step <= Evaluation.step, resumed.c.compute <= Evaluation.compute),
    )
    return *ours, ~superseded
