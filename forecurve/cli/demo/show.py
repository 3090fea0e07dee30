"""The demo from start to end: service, channel, runs, progress, report."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forecurve.client.api import Api
from forecurve.client.errors import ApiError

from ..errors import CliError
from ..showing.alerts import what
from ..showing.run_rows import is_forecast
from . import plan as demo_plan
from .console import DemoConsole
from .receiver import Receiver
from .report import Report, delivered, find_alert, make_report, print_report
from .service import DemoService, start_or_reuse
from .tracker import Seen, Tracker

LOOK_S = 1.0
UNREACHABLE_S = 30.0


@dataclass
class Submitted:
    """What the demo created."""

    sweep: dict[str, Any]
    broken: dict[str, Any]
    channel_id: str
    secret: str
    cursor: int


@dataclass
class Timings:
    """Seconds since the command began; None for what did not happen."""

    pages: float | None = None
    submitted: float | None = None
    first_evaluation: float | None = None
    first_forecast: float | None = None
    runs_over: float | None = None
    end: float | None = None


def run_demo(data_dir: Path, port: int, *, leave: bool, as_json: bool) -> int:
    """Run the demo; the exit code: 0 when every part worked, 1 when one failed."""
    console, timings = DemoConsole(), Timings()
    receiver = Receiver()
    with _stopped_by_sigterm():
        service = start_or_reuse(data_dir, port, console)
        try:
            timings.pages = console.seconds
            report = _on_service(service, receiver, console, timings)
            print_report(report, as_json=as_json)
            if not leave:
                _stay(service, console)
        finally:
            console.end_runs()
            receiver.close()
            if service.is_ours:
                console.line("stopping the service")
            service.stop()
    return 0 if report.succeeded else 1


def _on_service(service: DemoService, receiver: Receiver, console: DemoConsole, timings: Timings) -> Report:
    console.line(f"pages at [bold]{service.url}[/]")
    if service.login_url:
        console.line(f"log in   {service.login_url}")
    with Api(service.url, service.token) as api:
        submitted = _submit(api, receiver)
        try:
            timings.submitted = console.seconds
            tracker = Tracker(api, [submitted.broken, *submitted.sweep["runs"]], submitted.cursor)
            sweep_page = f"{service.url}/sweeps/{submitted.sweep['id']}"
            console.line(f"{len(tracker.runs)} runs queued; the sweep is at {sweep_page}")
            _follow(service, tracker, receiver, submitted, console, timings)
            timings.end = console.seconds
            return make_report(api, service, tracker, receiver, submitted.sweep, submitted.broken["id"], vars(timings))
        finally:
            with suppress(ApiError):  # nobody listens there any more
                api.delete_channel(submitted.channel_id)


def _submit(api: Api, receiver: Receiver) -> Submitted:
    """The channel first, then the run that breaks (its alert needs the time), then the sweep."""
    began = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"  # of one that was killed the channel is still there
    hears = {"name": f"demo receiver {began}", "kind": "slack", "url": receiver.url, "min_level": "ALERT"}
    channel = api.create_channel(hears)
    receiver.secret = channel["secret"]
    broken = api.create_run(demo_plan.broken_body())
    cursor = api.events(run_id=broken["id"], limit=1)["cursor"]  # what happened before is not of these runs
    sweep = api.create_sweep(demo_plan.sweep_body(f"demo {began}"))
    if "runs" not in sweep:
        sweep = api.sweep(sweep["id"])
    return Submitted(sweep, broken, channel["id"], channel["secret"], cursor)


def _follow(
    service: DemoService,
    tracker: Tracker,
    receiver: Receiver,
    submitted: Submitted,
    console: DemoConsole,
    timings: Timings,
) -> None:
    """Show progress until every run is over and the alert has arrived (or its grace is over)."""
    deadline = time.monotonic() + demo_plan.DEADLINE_S
    grace_ends: float | None = None
    console.begin_runs()
    try:
        while time.monotonic() < deadline and not (grace_ends and time.monotonic() > grace_ends):
            seen = _look_patiently(tracker, service)
            _show(seen, tracker, console, timings)
            if tracker.all_over:
                timings.runs_over = timings.runs_over or console.seconds
                grace_ends = grace_ends or time.monotonic() + demo_plan.ALERT_GRACE_S
                if _nothing_to_wait_for(tracker, receiver, submitted.broken["id"]):
                    return
            time.sleep(LOOK_S)
    finally:
        console.end_runs()


def _nothing_to_wait_for(tracker: Tracker, receiver: Receiver, broken_id: str) -> bool:
    """True when every run that could be forecast is, and the alert has arrived (or its run failed)."""
    if not all(is_forecast(run.view) for run in tracker.runs.values() if run.status != "failed"):
        return False
    return tracker.runs[broken_id].status == "failed" or delivered(find_alert(tracker, broken_id), receiver) is not None


def _look_patiently(tracker: Tracker, service: DemoService) -> Seen:
    """One look; a service that is away for a moment is waited for."""
    until = time.monotonic() + UNREACHABLE_S
    while True:
        if service.has_died:
            raise CliError(f"the service ended in the middle of the demo; see {service.layout.logs}")
        try:
            return tracker.look()
        except ApiError as error:
            if time.monotonic() > until or (error.status is not None and error.status < 500):
                raise
            time.sleep(LOOK_S)


def _show(seen: Seen, tracker: Tracker, console: DemoConsole, timings: Timings) -> None:
    for run, before, now in seen.states:
        console.line(f"{run.label:<24}{before} → {now}")
    if timings.first_evaluation is None and any(run.evaluations for run in tracker.runs.values()):
        timings.first_evaluation = console.seconds
    for run in seen.forecasts[:1]:
        if timings.first_forecast is None:
            timings.first_forecast = console.seconds
            console.line(f"{run.label:<24}first forecast")
    for run in seen.frozen:
        console.line(f"{run.label:<24}forecast frozen: later evaluations are judged against it")
    for alert in seen.alerts:
        console.line(f"[bold red]{alert['level']}[/] {what(alert)}")
    console.runs(list(tracker.runs.values()))


def _stay(service: DemoService, console: DemoConsole) -> None:
    console.line(f"the pages stay up at [bold]{service.url}[/] until Ctrl-C")
    while not service.has_died:
        time.sleep(0.5)


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: everything it started is stopped."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
