"""Runs that MLflow's client creates, goes on with and ends. They are runs of their user's own, as any other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from forecurve.limits import EARLIEST, LATEST
from forecurve.signs import visible
from server.errors import Conflict, Invalid, NotFound
from server.metrics.models import MetricPoint
from server.runs import going_on
from server.runs.archive import change
from server.runs.models import Run
from server.runs.reports import mark_alive, take_outcome
from server.runs.room import Room
from server.runs.schemas import AttemptCreate, Outcome, RunChange
from server.runs.schemas import RunCreate as NewRun
from server.runs.service import create_run, current_attempt, is_over, lock_run
from server.runs.states import Status

from . import experiments
from .curves import note_left_out, rule_in_force, settle
from .models import MlflowExperiment, MlflowRun
from .rule import PREFIX, Rule, Said, rule_of, said_of
from .schemas import RunCreate, RunUpdate, Tag

RUN_NAME = "mlflow.runName"
_LONGEST_NAME = 200
_OUTCOMES = {"FINISHED": "succeeded", "FAILED": "failed", "KILLED": "stopped"}
_STATUSES = ("RUNNING", "SCHEDULED", *_OUTCOMES)
QUIET_S = 600.0
"""Silence that tells nothing of who sends no heartbeats, in seconds, at least."""
_GAPS = 3.0
"""So many times the longest pause between two reports tell nothing either."""
_MOST_KEPT = 2_000
TOO_MANY = f"and words: a run has {_MOST_KEPT:,} parameters and tags at most"


def mine_of(session: Session, run_id: str) -> MlflowRun:
    """What MLflow's client has said of a run.

    Raises:
        NotFound: no such run, or one that is not reported by MLflow's client.
    """
    found = session.get(MlflowRun, run_id)
    if found is None:
        raise NotFound.field("run_id", run_id, "no run that MLflow's client reports has this id")
    return found


def locked(session: Session, run_id: str) -> tuple[Run, MlflowRun]:
    """A run as it is now, held against other writers, and what MLflow's client has said of it. Errors as `mine_of`."""
    run = lock_run(session, run_id)
    return run, mine_of(session, run_id)


def heard(session: Session, run: Run, now: datetime) -> None:
    """The run, which is locked, has reported. A trainer that logs a number every half hour is no suspect after half a
    minute."""
    attempt = current_attempt(session, run)
    last = attempt.last_heartbeat_at if run.status == Status.RUNNING else None  # of others the pause tells nothing
    gap = (now - last).total_seconds() if last else 0.0
    attempt.patience_s = max(attempt.patience_s or QUIET_S, _GAPS * gap)
    mark_alive(session, run, attempt, now)


def create(session: Session, body: RunCreate, *, actor: str, now: datetime) -> MlflowRun:
    """A run, which begins.

    MLflow's client sends this again where no answer came. Nothing in it tells that from a run that began in the same
    millisecond, and two runs in one would be worse than one without a number.

    Raises:
        NotFound: no such experiment.
        Invalid: its tags `forecurve.*` do not hold.
    """
    experiment = experiments.get(session, body.experiment_id)
    tags = {tag.key: tag.value for tag in body.tags}
    said_of(tags)
    new = NewRun(executor="external", name="run", compute_unit=_unit(experiment, tags))
    run = create_run(session, new, Room(), actor=actor, now=now, reports=False).run
    name = body.run_name or tags.get(RUN_NAME) or f"run-{run.id[-6:]}"
    run.name = _full_name(experiment, name)
    heard(session, lock_run(session, run.id), now)
    mine = MlflowRun(
        run_id=run.id,
        experiment_id=experiment.id,
        name=name,
        user=body.user_id,
        started_at=moment(body.start_time, now),
        params={},
        tags=tags,
        left_out=[],
    )
    session.add(mine)
    session.flush()
    settle(session, run, mine, now=now)
    return mine


def _unit(experiment: MlflowExperiment, tags: dict[str, str]) -> str:
    """What a run counts its compute in as it begins. Tags of an experiment are set one by one: a run that begins
    meanwhile says what is missing, and gets its unit with them."""
    try:
        return rule_of(experiment.tags, tags).counts_in
    except Invalid:
        return rule_of(tags).counts_in


def update(session: Session, body: RunUpdate, *, actor: str, now: datetime) -> MlflowRun:
    """Rename a run, go on with it (`RUNNING`), or end it.

    Raises:
        Over: it is to go on and is over.
        Conflict: it is to go on and was asked to stop.
        Invalid: no such status.
    """
    run, mine = locked(session, body.run)
    if body.run_name:
        _rename(session, run, mine, body.run_name, actor, now)
    if body.status is not None and body.status not in _STATUSES:
        raise Invalid.field("status", body.status, f"must be one of {', '.join(_STATUSES)}")
    if body.status == "RUNNING":
        _go_on(session, run, actor, now)
    elif body.status in _OUTCOMES:
        _end(session, run, mine, _OUTCOMES[body.status], now)
    return mine


def _rename(session: Session, run: Run, mine: MlflowRun, name: str, actor: str, now: datetime) -> None:
    mine.name = name
    whole = _full_name(session.get_one(MlflowExperiment, mine.experiment_id), name)
    change(session, run.id, RunChange(name=whole), actor=actor, now=now)


def _go_on(session: Session, run: Run, actor: str, now: datetime) -> None:
    """`mlflow.start_run(run_id=...)`: the run's next attempt, once this one has logged something."""
    logged = exists().where(MetricPoint.run_id == run.id, MetricPoint.attempt == run.attempt)
    before = current_attempt(session, run)
    if is_over(run) or session.scalar(select(logged)) or before.outcome is not None:
        going_on.begin_attempt(session, run.id, AttemptCreate(), actor=actor, now=now, reports=False)
        current_attempt(session, run).patience_s = before.patience_s
    heard(session, run, now)


def _end(session: Session, run: Run, mine: MlflowRun, outcome: str, now: datetime) -> None:
    """The client says it at the end of its process again, whatever it has said before: the first word stands."""
    if is_over(run) or current_attempt(session, run).outcome is not None:
        return  # its last evaluations were made as it ended
    told = Outcome(attempt=run.attempt, outcome=outcome, reason=None)
    take_outcome(session, run.id, told, now=now)
    settle(session, run, mine, now=now)  # of what waited for its compute the last before must do


def set_tags(session: Session, run: Run, mine: MlflowRun, tags: Sequence[Tag], *, actor: str, now: datetime) -> None:
    """Tags of a run, which is locked; that of its name renames it.

    Raises:
        Invalid: a tag `forecurve.*` does not hold.
        Conflict: it would change what the run's evaluations were made by.
    """
    ours = {tag.key: tag.value for tag in tags if tag.key.startswith(PREFIX)}
    said = said_of(ours)
    if ours and mine.rule is not None:
        _check_same(run, said, rule_in_force(session, mine))
    mine.tags = _with(session, run, mine, mine.tags, tags)
    for tag in tags:
        if tag.key == RUN_NAME and tag.value.strip():
            _rename(session, run, mine, tag.value, actor, now)
    if ours:
        settle(session, run, mine, now=now)


def drop_tag(session: Session, run: Run, mine: MlflowRun, key: str) -> None:
    """Conflict where the run's evaluations were made by it."""
    if key.startswith(PREFIX) and mine.rule is not None:
        raise Conflict.field("key", key, f"run {run.id} has evaluations that were made by it; it stays")
    mine.tags = {name: value for name, value in mine.tags.items() if name != key}


def _check_same(run: Run, said: Said, holds: Rule) -> None:
    for name in said.model_fields_set:
        given, has = getattr(said, name), getattr(holds, name)
        if given != has:
            message = f"run {run.id} has evaluations that were made by {has!r}; tag the next run"
            raise Conflict.field(PREFIX + name, given, message)


def set_params(session: Session, run: Run, mine: MlflowRun, params: Sequence[Tag]) -> None:
    """Parameters of a run; one that comes again, as after a resume, takes the place of the one before."""
    mine.params = _with(session, run, mine, mine.params, params)


def _with(session: Session, run: Run, mine: MlflowRun, has: dict[str, Any], more: Sequence[Tag]) -> dict[str, Any]:
    """What there is and what comes; beyond some thousands the first are kept."""
    told = {**has, **{one.key: one.value for one in more}}
    if len(told) > _MOST_KEPT:
        note_left_out(session, run, mine, [TOO_MANY])
    return dict(list(told.items())[:_MOST_KEPT])


def moment(milliseconds: int | None, now: datetime) -> datetime:
    """A time as MLflow says it; `now` where it says none, or its clock is not set."""
    if not milliseconds:
        return now
    try:
        said = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return now
    return said if EARLIEST <= said < LATEST else now


def _full_name(experiment: MlflowExperiment, name: str) -> str:
    """As `forecurve convert` calls a run of MLflow's."""
    whole = name if experiment.name == experiments.DEFAULT else f"{experiment.name}/{name}"
    shown = visible(whole).strip()[:_LONGEST_NAME].strip()
    return shown if any(sign.isprintable() and not sign.isspace() for sign in shown) else "run"
