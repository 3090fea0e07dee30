"""What tests of the worker share: a context on real Postgres and a fake Ray, and short words for runs and reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Alert
from server.checkpoints.schemas import CheckpointCreate
from server.checkpoints.service import add_checkpoint
from server.events.models import Event, OutboxMessage
from server.runs import pausing, reports, service
from server.runs.models import Attempt, Run
from server.runs.schemas import Heartbeat, Outcome
from server.settings import Settings
from tests.worker.fake_ray import TOKEN, FakeRay
from worker import launch, reconcile
from worker.admit import admit
from worker.context import BrokerDown, Context
from worker.dispatch import dispatch
from worker.executors.ray_jobs import RayJobs
from worker.sweep_up import sweep_up


class Bell:
    """Takes rings in place of the broker. `down` makes it refuse them; `after` lets so many through first."""

    def __init__(self) -> None:
        self.rung: list[tuple[str, tuple[Any, ...]]] = []
        self.down = False
        self.after: int | None = None

    def __call__(self, task: str, *args: object, expires_s: float | None = None) -> None:
        if self.down or (self.after is not None and len(self.rung) >= self.after):
            raise BrokerDown("connection refused")
        self.rung.append((task, args))

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        taken, self.rung = self.rung, []
        return taken


@dataclass
class World:
    """The service without processes: time stands still until it is moved, and tasks run when they are told to."""

    sessions: sessionmaker[Session]
    settings: Settings
    ray: FakeRay
    bell: Bell = field(default_factory=Bell)
    now: datetime = field(default_factory=lambda: datetime(2026, 1, 5, 12, 0, tzinfo=UTC))
    api_is_up: bool = True

    def __post_init__(self) -> None:
        executor = RayJobs(self.ray.url, TOKEN, submit_timeout_s=1.0)
        up, clock = lambda: self.api_is_up, lambda: self.now
        self.context = Context(self.sessions, self.settings, executor, self.bell, up, clock)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def add_run(self, **values: Any) -> str:
        with self.sessions.begin() as session:
            usual = {"name": "baseline", "compute_unit": "CPU-seconds", "created_at": self.now}
            run = Run(**usual | values)
            session.add(run)
            session.flush()
            return run.id

    def run(self, run_id: str) -> Run:
        with self.sessions() as session:
            return session.get_one(Run, run_id)

    def attempt(self, run_id: str, number: int = 1) -> Attempt:
        with self.sessions() as session:
            return session.scalars(select(Attempt).where(Attempt.run_id == run_id, Attempt.number == number)).one()

    def statuses(self, run_id: str) -> list[str]:
        """Every status the run has gone to, oldest first."""
        events = select(Event.to_state).where(Event.run_id == run_id, Event.kind == "run.status").order_by(Event.id)
        with self.sessions() as session:
            return [str(status) for status in session.scalars(events)]

    def alerts(self) -> list[Alert]:
        with self.sessions() as session:
            return list(session.scalars(select(Alert)))

    def outbox(self) -> list[tuple[str, list[Any]]]:
        waiting = select(OutboxMessage).where(OutboxMessage.published_at.is_(None)).order_by(OutboxMessage.id)
        with self.sessions() as session:
            return [(row.task, row.args) for row in session.scalars(waiting)]

    def admit(self) -> list[str]:
        with self.sessions.begin() as session:
            return admit(session, self.settings, self.now)

    def launch(self, attempt_id: str) -> None:
        launch.launch(self.context, attempt_id, self.now)

    def reconcile(self, *, after_s: float = 0.0) -> None:
        self.wait(after_s)
        reconcile.reconcile(self.context, self.now)

    def reconcile_for(self, seconds: float, every_s: float = 2.0) -> None:
        """The reconciler goes on for a while, as the scheduler makes it."""
        ends = self.now + timedelta(seconds=seconds)
        while self.now < ends:
            self.reconcile(after_s=every_s)

    def dispatch(self) -> int:
        return dispatch(self.context, self.now)

    def sweep_up(self) -> int:
        return sweep_up(self.context, self.now)

    def beat(self, run_id: str, attempt: int = 1) -> bool:
        """A heartbeat as the API takes it; whether the trainer is told to stop."""
        with self.sessions.begin() as session:
            beat = Heartbeat(attempt=attempt)
            return reports.heartbeat(session, run_id, beat, interval_s=5.0, now=self.now).stop

    def beat_for(self, run_id: str, seconds: float, every_s: float = 2.0) -> None:
        """The trainer goes on reporting, and the reconciler on looking."""
        for _ in range(int(seconds / every_s)):
            self.beat(run_id)
            self.reconcile(after_s=every_s)

    def report(self, run_id: str, outcome: str, reason: str | None = None, attempt: int = 1) -> None:
        with self.sessions.begin() as session:
            body = Outcome(attempt=attempt, outcome=outcome, reason=reason)  # type: ignore[arg-type]
            reports.take_outcome(session, run_id, body, now=self.now)

    def checkpoint(self, run_id: str, step: int, attempt: int = 1) -> None:
        """A checkpoint as the trainer reports it."""
        with self.sessions.begin() as session:
            body = CheckpointCreate(attempt=attempt, step=step, path="/c", digest="a" * 64, size_bytes=1)
            add_checkpoint(session, run_id, body, now=self.now)

    def pause(self, run_id: str, reason: str | None = None) -> None:
        with self.sessions.begin() as session:
            pausing.pause_run(session, run_id, actor="a person", reason=reason, now=self.now)

    def resume(self, run_id: str) -> None:
        with self.sessions.begin() as session:
            pausing.resume_run(session, run_id, actor="a person", now=self.now)

    def ask(self, run_id: str, wanted: str, reason: str | None = None) -> None:
        """A person wants the run to stop or to be cancelled."""
        with self.sessions.begin() as session:
            request = {"stop": service.request_stop, "cancel": service.request_cancel}[wanted]
            request(session, session.get_one(Run, run_id), actor="a person", reason=reason)

    def launched(self, **values: Any) -> str:
        """A run whose job was submitted."""
        run_id = self.add_run(**values)
        (attempt_id,) = self.admit()
        self.launch(attempt_id)
        return run_id

    def running(self, **values: Any) -> str:
        """A run whose trainer has reported."""
        run_id = self.launched(**values)
        self.ray.set(f"{run_id}-a1", "RUNNING")
        self.beat(run_id)
        return run_id


@pytest.fixture
def ray() -> Iterator[FakeRay]:
    fake = FakeRay()
    yield fake
    fake.stop()


@pytest.fixture
def world(sessions: sessionmaker[Session], engine: Engine, ray: FakeRay, tmp_path: Path) -> World:
    settings = Settings(
        DATABASE_URL=engine.url.render_as_string(hide_password=False),
        data_dir=tmp_path,
        ray_url=ray.url,
        ray_token=TOKEN,
        public_url="http://127.0.0.1:8400",
        stop_grace_s=30,
        launch_deadline_s=300,
        suspect_after_s=30,
        lost_after_s=600,
        max_attempts=3,
        max_concurrent_runs=2,
        lease_s=60,
        tick_s=2,
    )
    return World(sessions, settings, ray)
