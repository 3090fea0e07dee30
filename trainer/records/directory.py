"""The run's directory: `metrics.jsonl`, `evaluations.jsonl`, `rollouts.jsonl`, `outcome.json`, and progress on stderr.

A resumed run first cuts the files to the lengths that its checkpoint names, so that no step stands twice. What the
lines that are cut off had cost is kept in `attempts.jsonl`, which has one line an attempt and loses none.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forecurve.reports import as_json_number, pass_rate
from trainer.measuring.ledger import spent_in
from trainer.records.checkpoint import Checkpoint
from trainer.records.json_lines import JsonLines
from trainer.records.progress import Progress
from trainer.terminal import say
from trainer.types import EvaluationResult

ROLLOUTS_LIMIT = 64 * 2**20
"""Bytes of `rollouts.jsonl` beyond which no more samples are kept."""

NAMES = ("metrics.jsonl", "evaluations.jsonl", "rollouts.jsonl")


def holds_lines(directory: Path) -> bool:
    """Whether a run has written here."""
    return any((directory / name).is_file() and (directory / name).stat().st_size for name in NAMES)


class DirectoryReporter:
    """See `Reporter`."""

    stop_reason: str | None = None
    held_steps: frozenset[int] = frozenset()

    def __init__(self, directory: Path, attempt: int | None = None, progress: Progress | None = None):
        self._metrics, self._evaluations, self._rollouts = (JsonLines(directory / name) for name in NAMES)
        self._attempts = JsonLines(directory / "attempts.jsonl")
        self._last_attempt = self._attempts.last() or {"attempt": 0, "spent": 0.0}
        self._attempt = int(self._last_attempt["attempt"]) + 1 if attempt is None else attempt
        self._outcome = directory / "outcome.json"
        self._before = _read(self._outcome)
        self._progress = progress
        self._begun = False

    def begin(self, step: int, offsets: Mapping[str, int]) -> float:
        """An attempt begins at `step`: drop what was written beyond `offsets`, for it is done again (files not named
        are emptied). Device-seconds that all attempts before it have spent, as far as their lines say."""
        spent = max(float(self._last_attempt["spent"]), self._spent())
        # A lost machine may have left half a line, which ours would be glued to.
        self._attempts.cut(self._attempts.size)
        self._attempts.append({"attempt": self._attempt, "step": step, "spent": spent, "time": _now()})
        self._attempts.sync()
        for file in self._files():
            file.cut(offsets.get(file.path.name, 0))
        self._outcome.unlink(missing_ok=True)
        self._begun = True
        if self._progress:
            place = f"on {socket.gethostname()}, in {self._outcome.parent.resolve()}"
            self._progress.note(f"{_now()}  attempt {self._attempt} begins at step {step}, {place}")
        return spent

    def _spent(self) -> float:
        """What the newest step says. The closing line of an attempt is none: what it calls waste may be trained on by
        the next."""
        last = self._metrics.last(lambda line: "train/reward" in line["metrics"])
        return spent_in(last["metrics"]) if last else 0.0

    def lost(self, reason: str) -> str:
        """The reason for which this attempt is lost, with its place and how many in a row were lost there."""
        losses, step = self._losses(), self._last_step()
        place = f"{reason.rstrip('.')}. Lost after step {step}"
        if losses == 1:
            return place
        before = "was the attempt" if losses == 2 else f"were the {losses - 1} attempts"
        return (
            f"{place}, as {before} before: look at what step {step + 1} asks for, such as "
            "more memory than there is (batch.micro_tokens, generation.max_tokens, resources)"
        )

    def log(self, metrics: Mapping[str, float], step: int, compute: float) -> None:
        """See `Reporter`."""
        self._append(
            self._metrics, step, compute, {"metrics": {name: as_json_number(v) for name, v in metrics.items()}}
        )

    def evaluation(self, result: EvaluationResult, compute: float) -> None:
        """See `Reporter`."""
        reward = pass_rate(result.counts, result.samples)
        body = {
            "reward": reward,
            "prompts": len(result.counts),
            "samples": result.samples,
            "counts": list(result.counts),
            "details": {name: as_json_number(value) for name, value in result.details.items()},
        }
        self._append(self._evaluations, result.step, compute, body)
        if self._progress:
            self._progress.evaluation(result.step, compute, reward)

    def rollouts(self, lines: Sequence[Mapping[str, Any]], step: int, compute: float) -> None:
        """See `Reporter`. The file stays below a bound."""
        if self._rollouts.size < ROLLOUTS_LIMIT:
            for line in lines:
                self._append(self._rollouts, step, compute, line)

    def offsets(self) -> dict[str, int]:
        """See `Reporter`."""
        return {file.path.name: file.sync() for file in self._files()}

    def checkpoint(self, checkpoint: Checkpoint, compute: float) -> None:
        """See `Reporter`. The checkpoint's own directory says all there is."""
        if self._progress:
            self._progress.note(f"step {checkpoint.step:5d}  checkpoint in {checkpoint.path.name}")

    def message(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        if self._progress:
            self._progress.show(text, step, compute)

    def notice(self, text: str, step: int, compute: float) -> None:
        """See `Reporter`."""
        if self._progress:
            self._progress.note(text)

    def settle(self) -> None:
        """Write what waits for the disk.

        Raises:
            TrainerError: it still refuses, and these lines would be lost.
        """
        for file in (*self._files(), self._attempts):
            file.settle()

    def finish(self, outcome: str, reason: str | None) -> None:
        """See `Reporter`. What failed before it began has written nothing, and leaves what the run was before."""
        if self._begun or outcome == "lost":
            self._write_outcome(outcome, reason)
        if self._progress:
            self._progress.note(f"{outcome}: {reason}" if reason else outcome)

    def _write_outcome(self, outcome: str, reason: str | None) -> None:
        body = {"outcome": outcome, "reason": reason, "attempt": self._attempt}
        if outcome == "lost":
            body |= {"step": self._last_step(), "losses": self._losses()}
        partial = self._outcome.with_name(self._outcome.name + ".tmp")
        try:
            partial.write_text(json.dumps(body) + "\n")
            partial.replace(self._outcome)
        except OSError as error:
            say(f"{self._outcome} cannot be written ({error}): {outcome}, {reason}", sys.stderr)

    def _last_step(self) -> int:
        last = self._metrics.last()
        return int(last["step"]) if last else 0

    def _losses(self) -> int:
        """Attempts in a row that were lost after the same step, this one among them."""
        again = self._before.get("outcome") == "lost" and self._before.get("step") == self._last_step()
        return 1 + (int(self._before.get("losses", 1)) if again else 0)

    def _files(self) -> tuple[JsonLines, ...]:
        return self._metrics, self._evaluations, self._rollouts

    def _append(self, file: JsonLines, step: int, compute: float, body: Mapping[str, Any]) -> None:
        file.append({"step": step, "compute": compute, "attempt": self._attempt, "time": _now(), **body})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _read(outcome: Path) -> dict[str, Any]:
    """How the attempt before ended; empty when it did not say."""
    try:
        return dict(json.loads(outcome.read_text()))
    except (OSError, ValueError, TypeError):
        return {}
