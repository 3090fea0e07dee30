"""Where a run says what it does: files in its directory always, the service too when it runs under one."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from trainer.checkpoint import Checkpoint
from trainer.types import EvaluationResult


class Reporter(Protocol):
    """What the controller tells, and the one thing it asks: whether to stop."""

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """Metrics of one step."""

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """One validation point; `compute` is that of the weights it judges."""

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """A checkpoint is in place."""

    def message(self, text: str, step: int, compute: float) -> None:
        """What the run is doing, for a person."""

    def finish(self, outcome: str, reason: str | None) -> None:
        """The end: `succeeded`, `stopped` or `failed`."""

    @property
    def stop_reason(self) -> str | None:
        """Why the run should stop, once somebody wants it to."""


class RunClient(Protocol):
    """The part of `forecurve.client`'s run that a trainer uses. Nothing in it raises or blocks."""

    attempt: int

    @property
    def should_stop(self) -> bool: ...
    @property
    def stop_reason(self) -> str | None: ...
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


class DirectoryReporter:
    """`metrics.jsonl` and `evaluations.jsonl` in the run's directory, and a line of progress on stderr.

    A resumed run first drops lines of steps it will do again, so that no step stands twice.
    """

    stop_reason: str | None = None

    def __init__(self, directory: Path, attempt: int, progress: bool = True):
        directory.mkdir(parents=True, exist_ok=True)
        self._attempt = attempt
        self._metrics, self._evaluations = directory / "metrics.jsonl", directory / "evaluations.jsonl"
        self._outcome = directory / "outcome.json"
        self._progress = Progress() if progress else None

    def supersede(self, resumed_step: int) -> None:
        """Drop metrics after the resumed step, and evaluations from it on (it is evaluated again)."""
        _keep_lines(self._metrics, lambda line: line["step"] <= resumed_step)
        _keep_lines(self._evaluations, lambda line: line["step"] < resumed_step)
        self._outcome.unlink(missing_ok=True)

    def last_compute(self) -> float:
        """Compute of the newest line of metrics; 0 without one."""
        lines = _lines(self._metrics)
        return float(lines[-1]["compute"]) if lines else 0.0

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """See `Reporter`."""
        self._append(self._metrics, step, compute, {"metrics": {name: _plain(v) for name, v in metrics.items()}})

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """See `Reporter`."""
        reward = sum(result.counts) / (len(result.counts) * result.samples)
        body = {
            "reward": reward,
            "prompts": len(result.counts),
            "samples": result.samples,
            "counts": list(result.counts),
            "details": {name: _plain(value) for name, value in result.details.items()},
        }
        self._append(self._evaluations, result.step, compute, body)
        if self._progress:
            self._progress.evaluation(result.step, compute, reward)

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """See `Reporter`. The checkpoint's own directory says all there is."""

    def message(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        if self._progress:
            self._progress.show(text, step, compute)

    def finish(self, outcome: str, reason: str | None) -> None:
        """See `Reporter`."""
        self._outcome.write_text(json.dumps({"outcome": outcome, "reason": reason, "attempt": self._attempt}) + "\n")
        if self._progress:
            self._progress.end(f"{outcome}: {reason}" if reason else outcome)

    def _append(self, path: Path, step: int, compute: float, body: Mapping[str, Any]) -> None:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = {"step": step, "compute": compute, "attempt": self._attempt, "time": moment, **body}
        with path.open("a") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")


class ClientReporter:
    """The service, through `forecurve.client`."""

    def __init__(self, run: RunClient):
        self._run = run

    @property
    def stop_reason(self) -> str | None:
        """See `Reporter`."""
        return (self._run.stop_reason or "stop requested") if self._run.should_stop else None

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

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.log(metrics, step, compute)

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.evaluation(result, compute)

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.checkpoint(checkpoint, compute)

    def message(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.message(text, step, compute)

    def finish(self, outcome: str, reason: str | None) -> None:
        """See `Reporter`."""
        for reporter in self._reporters:
            reporter.finish(outcome, reason)


class Progress:
    """One line on stderr that is rewritten on a terminal; elsewhere a line per evaluation."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._started = time.monotonic()

    def show(self, text: str, step: int, compute: float) -> None:
        """What is going on now; only a terminal sees it."""
        if self._live:
            print(f"\r\033[Kstep {step}  compute {compute:.1f}  {text}", end="", file=sys.stderr, flush=True)

    def evaluation(self, step: int, compute: float, reward: float) -> None:
        """A validation point, for good."""
        passed = time.monotonic() - self._started
        self._line(f"step {step:5d}  compute {compute:8.1f}  pass rate {reward:.3f}  wall {passed:6.1f} s")

    def end(self, text: str) -> None:
        """The last line."""
        self._line(text)

    def _line(self, text: str) -> None:
        print(f"\r\033[K{text}" if self._live else text, file=sys.stderr, flush=True)


def _plain(value: float) -> float | str:
    """Numbers that JSON has; the others by name."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _lines(path: Path) -> list[dict[str, Any]]:
    """Whole lines of a JSONL file; a last one that was cut off is none."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text().splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            break
    return found


def _keep_lines(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    kept = [line for line in _lines(path) if keep(line)]
    partial = path.with_name(path.name + ".tmp")
    partial.write_text("".join(json.dumps(line) + "\n" for line in kept))
    partial.replace(path)
