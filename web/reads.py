"""What pages read that no service offers in this form. Reading only: every change goes through the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import Session

from server.access.models import Token
from server.access.service import living
from server.alerts.models import ALERTS, TEST, Alert, Channel, Delivery
from server.alerts.service import IN_SIGHT
from server.errors import Invalid
from server.events.models import OFF_THE_CHART, Event
from server.forecasts.ending import is_withheld
from server.forecasts.models import Forecast, Recommendation
from server.labels.service import tags_of
from server.metrics.curve import Outline, Point, end_of_curve, outlines
from server.metrics.models import Evaluation
from server.metrics.variance import standard_error
from server.mlflow.models import MlflowRun
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.runs.schemas import RunView
from server.runs.service import is_tagged
from server.runs.states import TERMINAL, Status
from server.sweeps.models import Sweep, SweepComparison

from .drawings import MOST_DOTS, Spark

Row = TypeVar("Row")

STATES = ("active", *(str(status) for status in Status), "alerting", "archived")
"""What the runs page filters by: every status, `active` for all that are not over, `alerting` for an open alert. Only
`archived` shows the runs that were put away."""

_TOLD = ("step", "attempt", "compute", "reward", "prompts", "samples", "variance", "time")  # what every Point has
_OVER = [str(status) for status in TERMINAL]
_DECIDED = ("accepted", "dismissed")


@dataclass(frozen=True)
class RunFilter:
    """The filters of the runs page, as they stand in its URL."""

    state: str | None = None
    sweep: str | None = None
    text: str | None = None
    tag: str | None = None

    def __bool__(self) -> bool:
        return any((self.state, self.sweep, self.text, self.tag))


def filtered_runs(chosen: RunFilter) -> Select[Any]:
    """The runs that pass the filters."""
    query = _in_state(select(Run).where(_put_away(chosen)), chosen.state)
    if chosen.sweep:
        query = query.where(Run.sweep_id == chosen.sweep)
    if chosen.tag:
        query = query.where(is_tagged(chosen.tag))
    if chosen.text:
        wanted = chosen.text.strip()
        named = (column.icontains(wanted, autoescape=True) for column in (Run.name, Run.arm, Run.task))
        query = query.where(or_(*named, Run.id == wanted))
    return query


def _put_away(chosen: RunFilter) -> ColumnElement[bool]:
    return Run.archived_at.is_not(None) if chosen.state == "archived" else Run.archived_at.is_(None)


def tags_to_choose(session: Session, chosen: RunFilter) -> list[str]:
    """The tags of all runs that are listed, or of all archived ones, those that most have first; those of their sweeps;
    and the one that is chosen already."""
    runs = select(Run).where(_put_away(chosen))
    of_sweeps = select(Sweep).where(Sweep.id.in_(runs.with_only_columns(Run.sweep_id)))
    offered = [*tags_of(session, runs, Run), *tags_of(session, of_sweeps, Sweep), *([chosen.tag] if chosen.tag else [])]
    return list(dict.fromkeys(offered))


def there_are(session: Session, run_ids: Sequence[str]) -> list[str]:
    """Those of the ids that are of runs, each once, in their order."""
    known = set(session.scalars(select(Run.id).where(Run.id.in_(run_ids)))) if run_ids else set()
    return [run_id for run_id in dict.fromkeys(run_ids) if run_id in known]


def runs_by_id(session: Session, run_ids: Sequence[str]) -> list[Run]:
    """The runs of these ids, in their order; one that is gone is left out."""
    found = {run.id: run for run in session.scalars(select(Run).where(Run.id.in_(run_ids)))} if run_ids else {}
    return [found[run_id] for run_id in run_ids if run_id in found]


def count_of(session: Session, query: Select[Any]) -> int:
    """How many rows a query has."""
    return session.scalar(select(func.count()).select_from(query.subquery())) or 0


def _in_state(query: Select[Any], state: str | None) -> Select[Any]:
    if not state or state == "archived":
        return query
    if state not in STATES:
        raise Invalid.field("state", state, f"there is no such state; choose one of {', '.join(STATES)}")
    if state == "active":
        return query.where(Run.status.not_in(_OVER))
    if state == "alerting":
        return query.where(exists().where(Alert.run_id == Run.id, Alert.resolved_at.is_(None)))
    return query.where(Run.status == state)


def sparks_of(session: Session, runs: Sequence[Run]) -> dict[str, Spark]:
    """What the runs' sparklines show, by run: two queries, however many runs."""
    curves = outlines(session, [run.id for run in runs], MOST_DOTS)
    newest = [run.forecast_id for run in runs if run.forecast_id]
    misfit = Forecast.summary["misfit"].label("misfit")
    rows = session.execute(select(Forecast.run_id, Forecast.band, misfit).where(Forecast.id.in_(newest)))
    bands = {row.run_id: row.band for row in rows if not is_withheld({"misfit": row.misfit})}
    shown = {run.id: curves.get(run.id, Outline([], 0)) for run in runs}
    return {
        run.id: Spark(shown[run.id].points, bands.get(run.id), run.budget_compute, shown[run.id].count) for run in runs
    }


def errors_of(session: Session, runs: Sequence[RunView | Run]) -> dict[str, float | None]:
    """The standard error of each run's newest evaluation, None where nobody knows it; without one a run is left out."""
    last = Evaluation.run_id == Run.id, Evaluation.step == Run.last_step
    columns = [getattr(Evaluation, name) for name in _TOLD]
    query = select(Evaluation.run_id, *columns).join(Run, and_(*last)).where(Run.id.in_([run.id for run in runs]))
    rows = session.execute(query.order_by(Evaluation.attempt))  # of a step that was taken twice, the newest
    return {run_id: standard_error(Point(*told)) for run_id, *told in rows}


@dataclass(frozen=True)
class Sweeps:
    """What a filter offers: ids and names, the newest first, and how many it leaves out."""

    offered: Sequence[tuple[str, str]]
    others: int


def sweeps_to_choose(session: Session, chosen: Sweep | None, limit: int = 100) -> Sweeps:
    """The newest sweeps, and the one that is chosen already, which may be older."""
    listed = Sweep.archived_at.is_(None)
    rows = session.execute(select(Sweep.id, Sweep.name).where(listed).order_by(Sweep.id.desc()).limit(limit))
    offered = [(row.id, row.name) for row in rows]
    if chosen and chosen.id not in dict(offered):
        offered.append((chosen.id, chosen.name))
    count = len(offered) if len(offered) < limit else count_of(session, select(Sweep.id).where(listed))
    return Sweeps(offered, count - len(offered))


def there_is_an_archived_sweep(session: Session) -> bool:
    return session.scalar(select(exists().where(Sweep.archived_at.is_not(None)))) or False


def open_alerts_by_sweep(session: Session, sweep_ids: Sequence[str]) -> Mapping[str, int]:
    """How many alerts are open among each sweep's runs; sweeps without one are left out."""
    joined = select(Run.sweep_id, func.count().label("alerts")).join(Alert, Alert.run_id == Run.id)
    mine = Run.sweep_id.in_(sweep_ids), Run.archived_at.is_(None), Alert.resolved_at.is_(None)
    return {row.sweep_id: row.alerts for row in session.execute(joined.where(*mine).group_by(Run.sweep_id))}


def best_of_sweeps(session: Session, sweep_ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The arm of each sweep that is the best most likely, as its ranking has it; none of what is not ranked yet."""
    first = SweepComparison.result["ranking"]["arms"][0].label("first")
    rows = session.execute(select(SweepComparison.sweep_id, first).where(SweepComparison.sweep_id.in_(sweep_ids)))
    return {row.sweep_id: row.first for row in rows if row.first}


def recipe_body(session: Session, recipe_id: str | None) -> dict[str, Any] | None:
    """The resolved recipe, None for a run without one."""
    row = session.get(RecipeRow, recipe_id) if recipe_id else None
    return row.body if row else None


def parameters_of(session: Session, run_id: str) -> dict[str, Any]:
    """What a run that MLflow's client reports was given; empty for any other."""
    reported = session.get(MlflowRun, run_id)
    return reported.params if reported else {}


def open_recommendation(session: Session, run_id: str) -> Recommendation | None:
    mine = Recommendation.run_id == run_id, Recommendation.status == "open"
    return session.scalar(select(Recommendation).where(*mine))


@dataclass(frozen=True)
class Newest(Generic[Row]):
    """The first of a longer list, newest first, and how many there are of them."""

    rows: Sequence[Row]
    count: int

    @property
    def is_cut(self) -> bool:
        return self.count > len(self.rows)


def newest(session: Session, page: tuple[Sequence[Row], str | None], whose: ColumnElement[bool]) -> Newest[Row]:
    """The first page of a list; `whose` holds of all that is in it, which is counted only where there is more."""
    rows, following = page
    return Newest(rows, (session.scalar(select(func.count()).where(whose)) or 0) if following else len(rows))


def _newest_of(session: Session, query: Select[Row], order: Any, limit: int) -> Newest[Row]:
    rows = session.scalars(query.order_by(order.desc()).limit(limit + 1)).all()
    return Newest(rows[:limit], count_of(session, query) if len(rows) > limit else len(rows))


def evaluations_of(session: Session, run_id: str, limit: int) -> Newest[Point]:
    """The end of a run's curve, the newest first."""
    return Newest(*end_of_curve(session, run_id, limit))


def decisions_of(session: Session, run_id: str, limit: int) -> Newest[Recommendation]:
    """Advice that a person decided about, the newest decision first."""
    decided = Recommendation.run_id == run_id, Recommendation.status.in_(_DECIDED)
    return _newest_of(session, select(Recommendation).where(*decided), Recommendation.decided_at, limit)


def events_of(session: Session, run_id: str, limit: int) -> Newest[Event]:
    """The newest events of a run that the chart and the advice do not show; of advice, what a person decided."""
    told = or_(Event.kind != "recommendation", Event.to_state.in_(_DECIDED))
    query = select(Event).where(Event.run_id == run_id, OFF_THE_CHART, told)
    return _newest_of(session, query, Event.id, limit)


@dataclass(frozen=True)
class AlertLine:
    """An alert with the name of its run and what became of its deliveries."""

    alert: Alert
    run_name: str
    deliveries: Sequence[tuple[Delivery, str]]


def with_deliveries(session: Session, alerts: Sequence[Alert]) -> list[AlertLine]:
    """Alerts as pages show them: two queries, however many alerts."""
    names = select(Run.id, Run.name).where(Run.id.in_({alert.run_id for alert in alerts}))
    name_of = {row.id: row.name for row in session.execute(names)}
    sent: dict[str | None, list[tuple[Delivery, str]]] = {alert.id: [] for alert in alerts}
    joined = select(Delivery, Channel.name).join(Channel, Channel.id == Delivery.channel_id)
    for delivery, channel in session.execute(joined.where(Delivery.alert_id.in_(sent)).order_by(Delivery.id)):
        sent[delivery.alert_id].append((delivery, channel))
    return [AlertLine(alert, name_of[alert.run_id], sent[alert.id]) for alert in alerts]


def last_tests(session: Session, channels: Sequence[Channel]) -> Mapping[str, Delivery]:
    """The newest test message of each channel that was ever sent one."""
    tests = Delivery.event == TEST, Delivery.channel_id.in_([channel.id for channel in channels])
    newest = select(func.max(Delivery.id)).where(*tests).group_by(Delivery.channel_id)
    found = session.scalars(select(Delivery).where(Delivery.id.in_(newest)))
    return {delivery.channel_id: delivery for delivery in found}


def there_is_a_channel(session: Session) -> bool:
    return session.scalar(select(exists().where(Channel.enabled, Channel.hears.contains([ALERTS])))) or False


def unseen_alerts(session: Session) -> int:
    """Alerts that still hold and that nobody has acknowledged."""
    unseen = Alert.resolved_at.is_(None), Alert.acknowledged_at.is_(None), IN_SIGHT
    return session.scalar(select(func.count()).select_from(Alert).where(*unseen)) or 0


def resolved_alerts(session: Session, run: Run | None) -> int:
    """Alerts that no longer hold: of one run, or of all that are not archived."""
    whose = IN_SIGHT if run is None else Alert.run_id == run.id
    return count_of(session, select(Alert.id).where(Alert.resolved_at.is_not(None), whose))


def living_tokens(session: Session, now: datetime) -> Sequence[Token]:
    """API tokens and browser sessions that open something still; login links and the trainers' own are left out."""
    query = select(Token).where(Token.kind.in_(("api", "session")), living(now))
    return session.scalars(query.order_by(Token.id.desc())).all()
