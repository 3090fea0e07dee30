"""Runs and experiments as MLflow's clients read them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, String, cast, func, select, true
from sqlalchemy.orm import Session, aliased

from forecurve.reports import as_json_number
from server.metrics.models import MetricPoint
from server.metrics.service import metric_names
from server.runs.models import Run
from server.runs.service import current_attempt, get_run, is_over
from server.runs.states import DesiredState, Status

from .models import MlflowExperiment, MlflowRun
from .rule import PREFIX
from .runs import RUN_NAME

STOP = f"{PREFIX}stop"
"""The tag by which a trainer that asks for its run learns that it is to stop: MLflow has no other way to say it."""
_OUTCOMES = {"succeeded": "FINISHED", "failed": "FAILED", "stopped": "KILLED", "lost": "FAILED"}
_STATUSES = {
    Status.QUEUED: "SCHEDULED",
    Status.SUCCEEDED: "FINISHED",
    Status.FAILED: "FAILED",
    Status.LOST: "FAILED",
    Status.STOPPED: "KILLED",
}


def experiment(row: MlflowExperiment) -> dict[str, Any]:
    return {
        "experiment_id": row.id,
        "name": row.name,
        "artifact_location": _artifacts(row),
        "lifecycle_stage": "active",
        "creation_time": _milliseconds(row.created_at),
        "last_update_time": _milliseconds(row.updated_at),
        "tags": _tags(row.tags),
    }


def run(session: Session, mine: MlflowRun) -> dict[str, Any]:
    """The run with the newest value of each of its numbers."""
    row = get_run(session, mine.run_id)
    tags = {**mine.tags, RUN_NAME: mine.name}
    if row.desired_state != DesiredState.RUN:
        tags[STOP] = row.desired_reason or "asked for"
    newest = [number(one) for one in _newest(session, row)]
    data = {"metrics": newest, "params": _tags(mine.params), "tags": _tags(tags)}
    return {"info": info(session, mine), "data": data}


def info(session: Session, mine: MlflowRun) -> dict[str, Any]:
    row = get_run(session, mine.run_id)
    home = session.get_one(MlflowExperiment, mine.experiment_id)
    said = {
        "run_id": row.id,
        "run_uuid": row.id,
        "run_name": mine.name,
        "experiment_id": mine.experiment_id,
        "user_id": mine.user or "",
        "status": _status(session, row),
        "start_time": _milliseconds(mine.started_at),
        "artifact_uri": f"{_artifacts(home)}/{row.id}/artifacts",
        "lifecycle_stage": "active",
    }
    return said if row.finished_at is None else said | {"end_time": _milliseconds(row.finished_at)}


def _status(session: Session, row: Run) -> str:
    """What its client has said stands at once, before the service has ended the run."""
    said = None if is_over(row) else current_attempt(session, row).outcome
    return _OUTCOMES[said] if said else _STATUSES.get(Status(row.status), "RUNNING")


def number(point: MetricPoint) -> dict[str, Any]:
    """A number that was logged, as MLflow says it."""
    value, time = as_json_number(point.value), _milliseconds(point.time)
    return {"key": point.metric, "value": value, "timestamp": time, "step": point.step}


def _newest(session: Session, row: Run) -> list[MetricPoint]:
    listed = cast(metric_names(session, row.id), ARRAY(String))
    names = func.unnest(listed).table_valued("metric").render_derived()
    mine = select(MetricPoint).where(MetricPoint.run_id == row.id, MetricPoint.metric == names.c.metric)
    last = mine.order_by(MetricPoint.attempt.desc(), MetricPoint.step.desc()).limit(1).lateral()
    newest = aliased(MetricPoint, last)
    return list(session.scalars(select(newest).select_from(names).join(newest, true()).order_by(newest.metric)))


def _artifacts(home: MlflowExperiment) -> str:
    """Artifacts are not kept here: a client writes them where its process runs, as to MLflow's own default."""
    return home.artifact_location or f"mlruns/{home.id}"


def _tags(told: dict[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in told.items()]


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
