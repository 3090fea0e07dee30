"""What an executor is: it starts jobs, says how they are, stops them, and hands out their logs. It is never the truth.

An executor is unreliable by assumption: it forgets jobs, says nothing for minutes, and takes a submission whose answer
never reaches us. Hence two rules for every implementation: `submit` is idempotent by the reference, and `observe` never
raises but says `unreachable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from .job_log import JobLog


class State(StrEnum):
    """What an executor can say about a job."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    GONE = "gone"  # it answers, and knows no such job
    UNREACHABLE = "unreachable"  # it does not answer; nothing follows for the job


ALIVE = frozenset({State.PENDING, State.RUNNING})
OVER = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED, State.GONE})


@dataclass(frozen=True)
class Observation:
    """One look at a job. `retryable`: another attempt may well go better (only of use when it failed)."""

    state: State
    retryable: bool = False
    exit_code: int | None = None
    reason: str | None = None
    log_tail: str | None = None  # of a job that is over, where the executor sends it along
    token_id: str | None = None  # of the ingest token that the job was submitted with, where the executor tells


@dataclass(frozen=True)
class JobSpec:
    """A job to submit. `environment` holds a secret (the ingest token), so it is never shown in a repr or a log."""

    reference: str
    command: str
    environment: Mapping[str, str] = field(repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Submitted:
    """The job exists. `created` is false when it was there before this call (an earlier try had got through)."""

    reference: str
    created: bool
    token_id: str | None


class SubmitError(Exception):
    """The job does not exist, as far as can be told. `retryable` is false when the executor refused the job itself."""

    def __init__(self, reason: str, *, retryable: bool):
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable


class Away(Exception):
    """The executor cannot be reached: no other question to it would be answered now."""


class Executor(Protocol):
    """The doors of an executor. Every call ends within a few seconds, `log` within those that it is given."""

    def submit(self, job: JobSpec) -> Submitted:
        """Start the job unless one with this reference exists. Raises SubmitError."""
        ...

    def observe(self, references: Iterable[str]) -> dict[str, Observation]:
        """How these jobs are, in one batched look; every reference gets an answer."""
        ...

    def stop(self, reference: str) -> bool:
        """Tell the executor to end the job. True when it took the order or knows no such job; never raises."""
        ...

    def log(self, reference: str, within_s: float = 25.0) -> JobLog | None:
        """What the job printed so far; nothing where no such job is known, None when this log cannot be had now.

        Raises:
            Away: nobody answers.
        """
        ...


def reference_of(run_id: str, attempt: int) -> str:
    """The executor's name of an attempt: the idempotency key of its submission."""
    return f"{run_id}-a{attempt}"
