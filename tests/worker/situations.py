"""Situations of a run, in the words of the tests of the reconciler's policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from server.runs.models import Attempt, Run
from server.settings import Settings
from worker.case import Decision
from worker.decide import decide
from worker.executors.base import Observation, State

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
SETTINGS = Settings(
    DATABASE_URL="postgresql://unused",
    stop_grace_s=30,
    launch_deadline_s=300,
    heartbeat_interval_s=4,
    suspect_after_s=20,
    lost_after_s=600,
    external_lost_after_s=15_000,
    max_attempts=3,
)


def ago(seconds: float | None) -> datetime | None:
    return None if seconds is None else NOW - timedelta(seconds=seconds)


def a_run(status: str = "running", desired: str = "run", **values: Any) -> Run:
    usual = {"id": "run_1", "status": status, "desired_state": desired, "executor": "ray", "attempt": 1}
    return Run(**usual | {"excused_attempts": 0} | values)


def an_attempt(beat: float | None = 1, **values: Any) -> Attempt:
    """An attempt that was submitted 100 s ago and last heard of `beat` seconds ago."""
    usual = {"id": "att_1", "run_id": "run_1", "number": 1, "external_ref": "run_1-a1"}
    usual |= {"created_at": ago(101), "submitted_at": ago(100), "last_heartbeat_at": ago(beat)}
    return Attempt(**usual | values)


def seen(state: str, **values: Any) -> Observation:
    return Observation(State(state), **values)


def outcome_of(
    run: Run,
    attempt: Attempt | None,
    look: Observation | None,
    well_since: datetime = LONG_AGO,
    settings: Settings = SETTINGS,
) -> Decision:
    return decide(run, attempt, look, NOW, settings, well_since)
