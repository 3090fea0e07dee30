"""A run in its situation, and what can be decided of it: the words in which the rules of `decide` speak. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from server.clocks import was_set_back
from server.runs.models import Attempt, Run
from server.runs.states import DesiredState, Status
from server.settings import Settings
from worker.executors.base import Observation, State


@dataclass(frozen=True)
class Decision:
    """What to do. `path` are the statuses to go through, in order; all else is what goes along with it."""

    path: tuple[Status, ...] = ()
    reason: str | None = None
    adopt: bool = False  # the job exists though its submission was never recorded
    ask_stop: bool = False  # the cooperative stop begins: from now on heartbeats are answered with stop
    force_stop: bool = False  # tell the executor to end the job
    retry_in_s: float | None = None  # with a path to queued
    excused: bool = False  # with a path to queued or paused: the attempt is not one of those that the run may have

    @property
    def to(self) -> Status | None:
        """The status the run ends up in; None when it stays."""
        return self.path[-1] if self.path else None


WAIT = Decision()


@dataclass(frozen=True)
class Case:
    """A run and all that bears on it. `seen` is None when no executor was asked."""

    run: Run
    attempt: Attempt | None
    seen: Observation | None
    now: datetime
    settings: Settings
    healthy_since: datetime

    @property
    def status(self) -> Status:
        return Status(self.run.status)

    @property
    def is_external(self) -> bool:
        return self.run.executor == "external"

    @property
    def is_to_end(self) -> bool:
        return self.run.desired_state in (DesiredState.STOP, DesiredState.CANCEL)

    @property
    def is_cancelled(self) -> bool:
        return self.run.desired_state == DesiredState.CANCEL

    @property
    def is_to_pause(self) -> bool:
        return self.run.desired_state == DesiredState.PAUSE and not self.is_external

    @property
    def current(self) -> Attempt:
        assert self.attempt is not None
        return self.attempt

    @property
    def state(self) -> State | None:
        return self.seen.state if self.seen is not None else None

    def elapsed(self, *moments: datetime | None) -> float:
        """Seconds since the latest of `moments` in which the service was well all the time."""
        latest = max((self.dated(moment) for moment in moments if moment is not None), default=self.healthy_since)
        return (self.now - max(latest, self.healthy_since)).total_seconds()

    def dated(self, moment: datetime) -> datetime:
        """What was written before the clock was set back was at the latest when the service noticed."""
        return self.healthy_since if was_set_back(moment, self.now) else moment

    def is_of_before(self, moment: datetime) -> bool:
        """Whether it lies before the service itself was last away."""
        return moment < self.healthy_since or was_set_back(moment, self.now)

    @property
    def silence_s(self) -> float:
        """Seconds without a sign of life; what never gave one is measured from when it could have."""
        attempt = self.current
        return self.elapsed(attempt.last_heartbeat_at, attempt.started_at, attempt.submitted_at, attempt.created_at)

    @property
    def patience_s(self) -> float:
        """Seconds of silence that tell nothing yet."""
        return max(self.settings.suspect_after_s, self.current.patience_s or 0.0)
