"""Where a run says what it does: files in its directory always, the service too when it runs under one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.records.checkpoint import Checkpoint
from trainer.types import EvaluationResult


class Reporter(Protocol):
    """What the controller tells, and what it asks: whether to stop, which checkpoints to leave on disk."""

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """Metrics of one step."""

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """One validation point; `compute` is that of the weights it judges."""

    def rollouts(self, lines: Sequence[Mapping[str, Any]], step: int, compute: float) -> None:
        """Samples of what was generated for one step, for reading."""

    def offsets(self) -> dict[str, int]:
        """Lengths of what was written so far, by file, all of it on disk: for the checkpoint."""

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """A checkpoint is in place."""

    def message(self, text: str, step: int, compute: float) -> None:
        """What the run is doing, for a person who looks now."""

    def notice(self, text: str, step: int, compute: float) -> None:
        """Something that a person should know, also later."""

    def finish(self, outcome: str, reason: str | None) -> None:
        """The end: `succeeded`, `stopped`, `failed`, or `lost` when another attempt may go better."""

    @property
    def stop_reason(self) -> str | None:
        """Why the run should stop, once somebody wants it to."""

    @property
    def held_steps(self) -> frozenset[int]:
        """Steps of the run's checkpoints that forks have yet to begin from."""


class RunClient(Protocol):
    """The part of `forecurve.client`'s run that a trainer uses. Nothing in it raises or blocks."""

    attempt: int

    @property
    def should_stop(self) -> bool: ...
    @property
    def stop_reason(self) -> str | None: ...
    @property
    def held_steps(self) -> frozenset[int]: ...
    def recipe(self) -> dict[str, Any]: ...
    def log(self, metrics: Mapping[str, float], *, step: int, compute: float) -> None: ...
    def log_evaluation(
        self,
        *,
        step: int,
        compute: float,
        counts: Sequence[int],
        samples: int,
        details: Mapping[str, float],
    ) -> None: ...
    def log_checkpoint(self, *, step: int, compute: float, path: str, digest: str, size_bytes: int) -> None: ...
    def heartbeat(self, *, step: int, compute: float, message: str) -> None: ...
    def finish(self, outcome: str, reason: str | None = None) -> None: ...


class ClientReporter:
    """The service, through `forecurve.client`."""

    def __init__(self, run: RunClient):
        self._run = run

    @property
    def stop_reason(self) -> str | None:
        """See `Reporter`."""
        return (self._run.stop_reason or "stop requested") if self._run.should_stop else None

    @property
    def held_steps(self) -> frozenset[int]:
        """See `Reporter`."""
        return self._run.held_steps

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """See `Reporter`."""
        self._run.log(metrics, step=step, compute=compute)

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """See `Reporter`."""
        self._run.log_evaluation(
            step=result.step,
            compute=compute,
            counts=list(result.counts),
            samples=result.samples,
            details=dict(result.details),
        )

    def rollouts(self, lines: Sequence[Mapping[str, Any]], step: int, compute: float) -> None:
        """See `Reporter`. They stay in the run's directory."""

    def offsets(self) -> dict[str, int]:
        """See `Reporter`. The service marks what a new attempt does again by itself."""
        return {}

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """See `Reporter`."""
        self._run.log_checkpoint(
            step=checkpoint.step,
            compute=compute,
            path=str(checkpoint.path),
            digest=checkpoint.digest,
            size_bytes=checkpoint.size_bytes,
        )

    def message(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        self._run.heartbeat(step=step, compute=compute, message=text)

    def notice(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        self.message(text, step, compute)

    def finish(self, outcome: str, reason: str | None) -> None:
        """See `Reporter`."""
        self._run.finish(outcome, reason)


class Reporters:
    """Several reporters as one."""

    def __init__(self, *reporters: Reporter):
        self._reporters = reporters

    @property
    def stop_reason(self) -> str | None:
        """The first reason that any of them has."""
        return next((reason for reporter in self._reporters if (reason := reporter.stop_reason)), None)

    @property
    def held_steps(self) -> frozenset[int]:
        """Those that any of them names."""
        return frozenset().union(*(reporter.held_steps for reporter in self._reporters))

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.log(metrics, step, compute)

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.evaluation(result, compute)

    def rollouts(self, lines: Sequence[Mapping[str, Any]], step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.rollouts(lines, step, compute)

    def offsets(self) -> dict[str, int]:
        """See `Reporter`."""
        return {name: size for reporter in self._reporters for name, size in reporter.offsets().items()}

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.checkpoint(checkpoint, compute)

    def message(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.message(text, step, compute)

    def notice(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.notice(text, step, compute)

    def finish(self, outcome: str, reason: str | None) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.finish(outcome, reason)
