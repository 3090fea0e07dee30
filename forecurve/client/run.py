"""A run, seen from its training loop."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from forecurve.limits import is_compute
from forecurve.reports import MAX_NAME, as_json_number, name_fault, step_fault

from .beginning import Reached
from .checks import Checks, restart_doubt
from .earlier import Earlier
from .errors import ClientError
from .heart import Heart
from .leaving import at_exit
from .left_out import LeftOut
from .once import Once
from .outbox import Left, Outbox
from .patience import retried
from .pending import Pending
from .spool import Spool
from .transport import Transport
from .values import Unreadable, as_number, flatten, mapping, number, plain, plain_evaluation, reports, utc_now, whole

log = logging.getLogger("forecurve")

FINISH_S = 30.0
"""How long `finish` waits for the service to take the last reports."""

OUTCOMES = ("succeeded", "stopped", "failed", "lost")
"""What `finish` takes; `lost` when a worker or its machine died and another attempt may go better."""

MAX_REASON, MAX_MESSAGE = 4000, 1000
"""Characters that the service takes; a longer text is cut, for with it the whole report would be refused."""


class Run:
    """Reports one attempt of one run. No method waits for the service but `recipe`, `flush` and `finish`, and none
    raises but `recipe`, which is for the start.

    Made by `forecurve.init` (a run of yours) or `forecurve.client.attach` (a run that Forecurve launched).

    Args:
        spool: None makes a disabled run: every report is dropped.
        transport: None keeps every report on disk (offline).
        earlier: what earlier attempts of the run could not send.
        sync_later: the command that sends what is left at the end; None for a launched attempt: the next hands it in.
        reached: how far the run had come, of one that goes on.
    """

    def __init__(
        self,
        run_id: str | None,
        attempt: int,
        *,
        spool: Spool | None,
        transport: Transport | None = None,
        flush_s: float = 1.0,
        heartbeat_s: float = 5.0,
        earlier: Earlier | None = None,
        sync_later: str | None = None,
        reached: Reached | None = None,
    ):
        self.id = run_id
        self.attempt = attempt
        self._transport = transport
        self._spool = spool
        self._pid = os.getpid()
        self._ending = threading.Lock()  # taken once and for good, by the finish that counts
        self._stop_reason: str | None = None
        self._held: frozenset[int] = frozenset()
        self._reached = reached
        self._checks = Checks()
        self._finished = False
        self._sync_later = sync_later
        self._once = Once()
        self._left_out = LeftOut(spool, self._once)
        self._pending = Pending()
        self._outbox = (
            Outbox(self._pending, spool, transport, once=self._once, on_over=self._ask_to_stop, flush_s=flush_s)
            if spool
            else None
        )
        self._heart = Heart(transport, self._ask_to_stop, self._hold, heartbeat_s) if transport else None
        if self._heart and sync_later is None:
            self._heart.stop_when_denied()
        self._earlier = earlier
        if self._earlier:
            self._earlier.start()
        if self._outbox:
            self._outbox.start()
        if self._heart:
            self._heart.start()
        if spool:
            at_exit(self._leave, lambda: self._finished)

    def __repr__(self) -> str:
        kept = f"kept in {self.directory}" if self._spool else "disabled"
        where = kept if self._transport is None else f"{self._transport.url}/runs/{self.id}"
        return f"Run(attempt {self.attempt}{', finished' * self._finished}: {where})"

    @property
    def directory(self) -> Path | None:
        """Where this attempt's reports are spooled; None for a disabled run."""
        return self._spool.directory if self._spool else None

    @property
    def finished(self) -> bool:
        """True once an outcome was given; nothing is reported after it."""
        return self._finished

    @property
    def is_of_this_process(self) -> bool:
        """False in a process that was forked from the one that reports."""
        return os.getpid() == self._pid

    @property
    def resumed(self) -> bool:
        """True for a run that goes on: attempts before this one have reported for it."""
        return self.attempt > 1 or (self._transport is None and self.id is not None)  # only a service gives ids

    @property
    def reached(self) -> Reached | None:
        """Of a run that goes on, the newest evaluation (step, compute, reward) that the service had when it did."""
        return self._reached

    # start-up

    def recipe(self, deadline_s: float = 60.0) -> dict[str, Any]:
        """The run's resolved recipe. Waits for a service that is away; the one method that may raise.

        Raises:
            ApiError: the service refused, or did not answer within the deadline.
        """
        if self._transport is None:
            raise ClientError(
                "this run is offline or disabled, so no recipe can be read; pass the recipe to the trainer as a file"
            )
        return retried(self._transport.recipe, deadline_s)

    # reports

    def log(self, metrics: Mapping[str, Any], *, step: int, compute: float | None = None) -> None:
        """Report metric values of an optimiser step. Nested mappings are joined with `/`; NaN and infinities stay.

        The last value logged for a step counts, whether or not an earlier one was sent already.
        """
        self._guard("log", lambda: self._log(metrics, step, compute))

    def log_evaluation(
        self,
        *,
        step: int,
        compute: float,
        counts: Sequence[int] | None = None,
        reward: float | None = None,
        prompts: int | None = None,
        samples: int | None = None,
        details: Mapping[str, float] | None = None,
    ) -> None:
        """Report a validation point: what the curve is fitted to.

        Args:
            step: optimiser steps done.
            compute: spent so far, in the run's unit; never goes backwards within an attempt.
            counts: successes of every held-out prompt, in a fixed order; gives the best noise estimate.
            reward: pass rate in [0, 1]; may be left out when `counts` is given.
            prompts, samples: held-out prompts, and generations per prompt.
            details: further numbers, such as the mean response length.
        """
        evaluation: dict[str, Any] = {"step": step, "compute": compute, "prompts": prompts, "samples": samples}
        evaluation |= {"counts": counts, "reward": reward, "details": details or {}}
        self._guard("log_evaluation", lambda: self._log_evaluation(evaluation))

    def log_checkpoint(self, *, step: int, compute: float, path: str | Path, digest: str, size_bytes: int) -> None:
        """Report a checkpoint that is complete on disk; `digest` is a sha256 in hexadecimal, of it or its manifest."""
        self._guard("log_checkpoint", lambda: self._log_checkpoint(step, compute, path, digest, size_bytes))

    def heartbeat(self, *, step: int, compute: float, message: str | None = None) -> None:
        """Set what the next background heartbeat says. Cheap; call it as often as you like."""
        self._guard("heartbeat", lambda: self._note_progress(step, compute, message))

    # control

    @property
    def should_stop(self) -> bool:
        """True once the service asked the run to stop: finish the step, evaluate, write a checkpoint, exit."""
        return self._stop_reason is not None

    @property
    def stop_reason(self) -> str | None:
        """Why the run should stop, in words."""
        return self._stop_reason

    @property
    def held_steps(self) -> frozenset[int]:
        """Steps of this run's checkpoints that forks have yet to begin from: leave them on disk."""
        return self._held

    @property
    def unsent(self) -> int:
        """Reports that the service has not taken yet, in memory or on disk, those of earlier attempts among them."""
        own = self._outbox.unsent if self._outbox else 0
        return own + (self._earlier.waiting if self._earlier else 0)

    def finish(self, outcome: str = "succeeded", reason: str | None = None, *, deadline_s: float = FINISH_S) -> None:
        """Report the outcome (succeeded, stopped, failed or lost) and send what is left, within the deadline.

        Another word is refused with a warning, and the run goes on until it is finished by one of these. What was
        logged is put on disk in any case, which a slow disk may take some seconds more for. What the service does not
        take in time stays there, and a warning says where and how it is sent later.
        """
        self._guard("finish", lambda: self._finish(outcome, reason, deadline_s))

    def flush(self, deadline_s: float = 10.0) -> None:
        """Wait until the service took everything logged so far, of an offline run the disk; at most `deadline_s`."""
        self._guard("flush", lambda: self._flush(deadline_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.finish()
        elif isinstance(error, KeyboardInterrupt):
            self.finish("stopped", "interrupted from the keyboard")
        else:
            self.finish("failed", f"{type(error).__name__}: {error}")

    # inside

    def _log(self, metrics: Mapping[str, Any], step: int, compute: float | None) -> None:
        now, at = utc_now(), whole("step", step)
        if fault := step_fault(at):
            self._once.say("step", f"the metrics at step {at} are left out: step {fault}")
            return
        spent = self._compute_of_points(at, compute)
        points = []
        for name, value in flatten(mapping("metrics", metrics)):
            told = as_number(value)
            fault = name_fault(name) if told is not None else f"{type(value).__name__} is no number"
            if told is None or fault:
                self._once.say(f"metric-{name}", f"metric `{name[:MAX_NAME]}` is left out: {fault}")
                continue
            points.append({"metric": name, "step": at, "compute": spent, "value": as_json_number(told), "time": now})
        self._pending.add_points(points)
        if self._pending.is_much and self._outbox:
            self._outbox.sealer.wake()

    def _compute_of_points(self, step: int, compute: float | None) -> float | None:
        """The compute, or None with a warning: a metric's value is worth keeping without it."""
        if compute is None:
            return None
        spent = as_number(compute)
        fault = f"compute is {compute!r}, no number" if spent is None else self._checks.point_compute_fault(step, spent)
        if fault:
            self._once.say("compute", f"the metrics at step {step} are sent without their compute: {fault}")
        return None if fault else spent

    def _log_evaluation(self, evaluation: dict[str, Any]) -> None:
        try:
            body = plain_evaluation(evaluation)
        except Unreadable as error:
            self._left_out.add(evaluation, str(error))
            return
        fault = self._checks.evaluation_fault(body)
        if fault:
            self._left_out.add(body, fault)
            return
        if self._reached and (doubt := restart_doubt(self._reached, body["step"], body["compute"])):
            self._once.say("restart", doubt)
        body["details"] = {name: as_json_number(value) for name, value in body["details"].items()}
        self._pending.add_evaluation({key: value for key, value in body.items() if value is not None})
        if self._outbox:
            self._outbox.sealer.wake()

    def _log_checkpoint(self, step: int, compute: float, path: str | Path, digest: str, size_bytes: int) -> None:
        body: dict[str, Any] = {"step": whole("step", step), "size_bytes": whole("size_bytes", size_bytes)}
        body |= {"path": plain(path), "digest": plain(digest)}
        spent = number("compute", compute)
        if is_compute(spent):
            body["compute"] = spent
        self._pending.add_other("checkpoint", body)

    def _note_progress(self, step: int, compute: float, message: str | None) -> None:
        progress: dict[str, Any] = {"step": whole("step", step)}
        progress |= {"message": plain(message)[:MAX_MESSAGE]} if message else {}
        spent = number("compute", compute)
        if is_compute(spent):
            progress["compute"] = spent
        if self._heart:
            self._heart.note(progress)

    def _finish(self, outcome: str, reason: str | None, deadline_s: float) -> None:
        if outcome not in OUTCOMES:
            log.warning(
                "forecurve: finish was left out: outcome is %r; it is one of %s. The run still counts as going on",
                outcome,
                ", ".join(OUTCOMES),
            )
            return
        text = None if reason is None else plain(reason)[:MAX_REASON]
        patience_s = self._seconds(deadline_s)
        if not self._ending.acquire(blocking=False):
            return
        self._finished = True
        if self._heart:
            self._heart.close()
        if self._outbox is None:
            return
        deadline = time.monotonic() + patience_s
        if self._earlier:
            self._earlier.close(patience_s / 2)  # before the outcome: the run may be over with it
        self._pending.add_other("outcome", {"outcome": outcome, "reason": text})
        self._say_left(self._outbox.close(deadline - time.monotonic()))
        if self._transport:
            self._transport.close()

    def _seconds(self, deadline_s: Any) -> float:
        """How long to wait at the end: whatever was given for it, the end is reported."""
        seconds = as_number(deadline_s)
        if seconds is None or math.isnan(seconds):
            self._once.say(
                "deadline", f"deadline_s is {deadline_s!r}, which is no number of seconds: {FINISH_S:g} count"
            )
            return FINISH_S
        return min(seconds, threading.TIMEOUT_MAX)

    def _say_left(self, left: Left) -> None:
        self._left_out.say_all()
        if left.on_disk and self._transport:
            later = f"send them later: {self._sync_later}" if self._sync_later else "the next attempt hands them in"
            kept = f"they are kept in {self.directory}; {later}"
            self._once.say("left", f"{reports(left.on_disk, 'were')} not taken in time; {kept}")
        if left.refused and self._spool:
            fate = f"they are in no curve, and no sync sends them again: {self._spool.rejected} keeps them"
            self._once.say("refused-in-all", f"{reports(left.refused, 'were')} refused ({left.refusal}); {fate}")
        if left.in_memory:
            fate = "they are lost unless the disk takes them before this process ends"
            self._once.say("unsealed", f"{reports(left.in_memory)} not on disk in {self.directory} yet; {fate}")

    def _flush(self, deadline_s: float) -> None:
        deadline = time.monotonic() + deadline_s
        if self._outbox is None:
            return
        sealer = self._outbox.sealer
        sealer.wake()
        while self._pending or sealer.is_sealing or (self._transport and self.unsent):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)

    def _leave(self, deadline_s: float) -> None:
        """The process ends and the run goes on: what was logged last is not to be lost."""
        self._guard("exit", lambda: self._flush(deadline_s))
        if self.is_of_this_process and not self._finished and self._outbox:
            self._say_left(self._outbox.left)

    def _ask_to_stop(self, reason: str) -> None:
        if self._stop_reason is None:
            log.warning("forecurve: the run is asked to stop: %s", reason)
            self._stop_reason = reason

    def _hold(self, steps: frozenset[int]) -> None:
        self._held = steps

    def _guard(self, what: str, work: Callable[[], None]) -> None:
        """Run `work`; whatever goes wrong is logged once and never reaches the training loop."""
        if self._spool is None and what != "finish":
            return
        if not self.is_of_this_process:
            self._say_forked(what)
            return
        if self._finished and what != "finish":
            if what.startswith("log"):  # nothing else that comes now is lost
                self._once.say(f"{what}-over", f"{what} was left out: the run is finished; log before finish()")
            return
        try:
            work()
        except Unreadable as error:
            self._once.say(f"{what}-{error.field}", f"{what} was left out: {error}")
        except Exception as error:  # noqa: BLE001 - the promise of this class
            self._once.say(f"{what}-{type(error).__name__}", f"{what} was left out: {type(error).__name__}: {error}")

    def _say_forked(self, what: str) -> None:
        """A forked process has none of the threads that report. One that only ends has nothing to say."""
        if what != "exit":
            told = f"process {os.getpid()} was forked from {self._pid}, which reports this run; report from there"
            self._once.say("forked", f"{what} was left out: {told}, or begin a run here with forecurve.init(...)")
