"""The supervisor: starts the parts in order, restarts what crashes, stops everything in reverse order.

postgres, redis ──> migrations ──> bootstrap ──> api ──> worker ──> scheduler
ray (started first, waited for last: the page is up while Ray still boots; stopped before the API, to which its trainers
report to the last)
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType

from . import leftovers
from .console import UpConsole
from .files import tail
from .identity import start_ticks
from .layout import Layout
from .options import CannotStart
from .parts import Part, ProcessPart
from .restarts import RestartPolicy
from .state import PartState, UpState

GRACE_S = {"worker": 12.0, "ray": 20.0, "postgres": 15.0}
"""Seconds from SIGTERM to SIGKILL, by part; 6 for the others."""
STOPPED_S = 180.0
"""What stopping all parts takes at the most: 32 s for the trainers' checkpoints, the graces above (Postgres may need
its own twice), and up to 6 s a part for what it leaves behind."""
READY_S = 90.0
WATCH_S = 0.25


class StopRequested(Exception):
    """A signal, or a part that was given up, asked the supervisor to stop."""


class Supervisor:
    """Holds the parts of one data directory.

    Args:
        policies: makes the restart policy of a part; tests pass a hasty one.
    """

    def __init__(
        self,
        layout: Layout,
        state: UpState,
        console: UpConsole,
        *,
        policies: Callable[[], RestartPolicy] = RestartPolicy,
    ):
        self._layout, self._state, self._console = layout, state, console
        self._policies = policies
        self._parts: list[Part] = []
        self._policy: dict[str, RestartPolicy] = {}
        self._due: dict[str, float] = {}  # part to the monotonic time of its next start
        self._began: dict[str, float] = {}
        self._is_written = True
        self._stop = threading.Event()
        self.why = ""
        self.failed = False

    # signals

    def obey_signals(self) -> None:
        """SIGINT, SIGTERM and SIGHUP stop everything cleanly; a second one hurries nobody.

        A SIGHUP that is ignored from the start stays so: `nohup` means that the service outlives its terminal.
        """
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.request_stop({signal.SIGINT: "Ctrl-C"}.get(signal.Signals(number), signal.Signals(number).name))

    def request_stop(self, why: str) -> None:
        self.why = self.why or why
        self._stop.set()

    def check(self) -> None:
        """Raise StopRequested when somebody asked us to stop."""
        if self._stop.is_set():
            raise StopRequested(self.why)

    # starting

    def launch(self, part: Part) -> None:
        """Start a part without waiting for it to be ready."""
        self.check()
        self._parts.append(part)
        self._policy[part.name] = self._policies()
        self._state.parts[part.name] = PartState(part.name, part.note)
        self._spawn(part)

    def wait_ready(self, *names: str, seconds: float = READY_S) -> None:
        """Wait until these parts are ready. A part that dies meanwhile is restarted as usual."""
        deadline = time.monotonic() + seconds
        while pending := [name for name in names if self._state.parts[name].state != "running"]:
            self.check()
            self.tend()
            if time.monotonic() > deadline:
                part = self._part(pending[0])
                raise CannotStart(
                    f"{part.name} was not ready in {seconds:.0f} s; the end of {part.log}:\n{tail(part.log)}"
                )
            self._stop.wait(0.05)

    def _spawn(self, part: Part) -> None:
        self._began[part.name] = time.monotonic()
        part.start()
        self._note(part, "starting")

    # watching

    def watch(self) -> None:
        """Tend the parts until somebody asks us to stop."""
        while not self._stop.wait(WATCH_S):
            self.tend()

    def tend(self) -> None:
        """One look at every part: note what became ready, restart what is due, schedule what crashed."""
        now = time.monotonic()
        if not self._is_written:
            self._write_state()
        for part in self._parts:
            if part.name in self._due:
                if now >= self._due[part.name]:
                    self._restart(part)
            elif not part.is_alive():
                self._crashed(part, now)
            elif self._state.parts[part.name].state == "starting" and part.is_ready():
                self._became_ready(part, now)
            else:
                part.keep_log_short()
                if isinstance(part, ProcessPart):
                    part.note_family(at_most_every_s=5.0)

    def _became_ready(self, part: Part, now: float) -> None:
        state = self._state.parts[part.name]
        state.seconds = round(now - self._began[part.name], 2)
        self._note(part, "running")
        self._console.ready(part.name, state.seconds, part.note)

    def _crashed(self, part: Part, now: float) -> None:
        pause = self._policy[part.name].crashed(now)
        if pause is None:
            self._note(part, "failed")
            self._console.gave_up(part.name, str(part.log), tail(part.log))
            self.failed = True
            self.request_stop(f"{part.name} does not stay up")
            raise StopRequested(self.why)
        self._due[part.name] = now + pause
        self._note(part, "restarting")
        self._console.crashed(part.name, pause, str(part.log))

    def _restart(self, part: Part) -> None:
        del self._due[part.name]
        self._state.parts[part.name].restarts += 1
        part.stop(1.0)  # what a crashed part left behind
        with suppress(OSError, subprocess.SubprocessError):  # a full disk, say: it has crashed once more
            self._spawn(part)

    # stopping

    def stop_all(self) -> None:
        """Stop one after the other; then end whatever still carries our mark."""
        self._state.phase = "stopping"
        for part in _in_order_of_stopping(self._parts):
            part.stop(GRACE_S.get(part.name, 6.0))
            self._note(part, "stopped")
        leftovers.end(leftovers.find(self._layout.key))
        shutil.rmtree(self._layout.short, ignore_errors=True)  # sockets and Ray's sessions; our logs stay

    def _note(self, part: Part, state: str) -> None:
        entry = self._state.parts[part.name]
        entry.state, entry.pid, entry.since, entry.note = state, part.pid, time.time(), part.note
        entry.start_ticks = start_ticks(part.pid)
        self._write_state()

    def _write_state(self) -> None:
        """A full disk must not leave the parts without us; what it does not take now is written when it does."""
        try:
            self._state.write(self._layout)
            self._is_written = True
        except OSError:
            self._is_written = False

    def _part(self, name: str) -> Part:
        return next(part for part in self._parts if part.name == name)


def _in_order_of_stopping(parts: Sequence[Part]) -> list[Part]:
    """In reverse order of start, but Ray right before the API. By then no worker is left to start a job again."""
    others = [part for part in reversed(parts) if part.name != "ray"]
    place = next((at for at, part in enumerate(others) if part.name == "api"), len(others))
    return [*others[:place], *(part for part in parts if part.name == "ray"), *others[place:]]
