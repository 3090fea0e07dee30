"""A sweep with the little of each run that its table is ordered by and its curves are chosen by: quick for thousands
of runs, of which a page shows a part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.forecasts.ending import is_withheld
from server.forecasts.models import Forecast
from server.forecasts.remembered import Remembered
from server.runs.models import Run
from server.runs.schemas import Interval


class Said(NamedTuple):
    """What a forecast tells of a run's place; the fields of RunView."""

    ceiling: Interval | None = None
    ceiling_known: bool = False
    withheld: bool = False
    at_budget: Interval | None = None


@dataclass(frozen=True)
class RunOutline:
    """What of a run tells its place among the others of its sweep; named as in RunView, and the same."""

    id: str
    name: str
    arm: str | None
    is_control: bool
    status: str
    reason: str | None
    compute_unit: str
    budget_compute: float | None
    last_reward: float | None
    last_compute: float | None
    ceiling: Interval | None
    ceiling_known: bool
    withheld: bool
    at_budget: Interval | None


_RUN: tuple[Any, ...] = (Run.id, Run.name, Run.arm, Run.is_control, Run.status, Run.reason)
_RUN += (Run.compute_unit, Run.budget_compute, Run.last_reward, Run.last_compute)
_SUMMARY = Forecast.summary
_TOLD = (
    _SUMMARY["A"].label("ceiling"),
    _SUMMARY["ceiling_known"].as_boolean().label("ceiling_known"),
    _SUMMARY["misfit"].as_string().label("misfit"),
    _SUMMARY["at_budget"]["curve"].label("at_budget"),
)
_REMEMBERED: Remembered[str, Said] = Remembered(20_000)
"""By the forecast's id, for a forecast never changes; some 10 MB."""
_AT_ONCE = 10_000
"""A statement takes 65,535 parameters."""


def outlines(session: Session, sweep_id: str) -> list[RunOutline]:
    """Of all runs of a sweep, as they were planned."""
    found = select(*_RUN, Run.forecast_id).where(Run.sweep_id == sweep_id).order_by(Run.id)
    rows = session.execute(found).all()
    said = said_of(session, (row.forecast_id for row in rows if row.forecast_id))
    return [RunOutline(*row[:-1], **said.get(row.forecast_id, Said())._asdict()) for row in rows]


def said_of(session: Session, forecast_ids: Iterable[str]) -> dict[str, Said]:
    """What forecasts tell, by their ids; those that were asked for before are not read again."""
    return _REMEMBERED.of(forecast_ids, lambda ids: _told(session, ids))


def by_arm(runs: Sequence[RunOutline]) -> dict[str, list[RunOutline]]:
    """The runs of each arm; one without an arm is its own."""
    arms: dict[str, list[RunOutline]] = {}
    for run in runs:
        arms.setdefault(run.arm or run.name, []).append(run)
    return arms


def _told(session: Session, ids: Sequence[str]) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for first in range(0, len(ids), _AT_ONCE):
        some = select(Forecast.id, *_TOLD).where(Forecast.id.in_(ids[first : first + _AT_ONCE]))
        for row in session.execute(some):
            withheld = is_withheld({"misfit": row.misfit})
            ceiling = None if withheld else Interval.of(row.ceiling)
            found[row.id] = Said(ceiling, bool(row.ceiling_known), withheld, Interval.of(row.at_budget))
    return found
