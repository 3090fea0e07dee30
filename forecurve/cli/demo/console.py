"""What the demo shows while it runs: a live table where a person looks, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from forecurve.limits import OVER

from ..showing.output import DASH, compute, interval, number
from ..showing.run_rows import ceiling
from .tracker import RunProgress

LINE_EVERY_S = 10.0


class DemoConsole:
    """Progress on stderr."""

    def __init__(self) -> None:
        self._out = Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._began = time.monotonic()
        self._last_line: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._began

    def line(self, text: str) -> None:
        """A line that stays, with its time."""
        self._out.print(f"[dim]{self.seconds:6.1f} s[/]  {text}")

    def part(self, event: Mapping[str, Any]) -> None:
        """An event of `forecurve up --json`."""
        kind = event.get("event")
        if kind == "ready":
            self.line(f"[green]✓[/] {event['part']}  [dim]{event['seconds']:.1f} s[/]")
        elif kind == "crashed":
            self.line(f"[yellow]![/] {event['part']} ended unexpectedly; again in {event['again_s']:.1f} s")
        elif kind == "gave-up":
            self.line(f"[red]✗[/] {event['part']} does not stay up\n{escape(event['tail'])}")

    def begin_runs(self) -> None:
        """From now on the table is drawn where a person looks."""
        if sys.stderr.isatty():
            self._live = Live(console=self._out, refresh_per_second=4, transient=True)
            self._live.start()

    def runs(self, runs: list[RunProgress]) -> None:
        """The runs as they are now."""
        if self._live is not None:
            self._live.update(_table(runs, self.seconds))
            return
        for run in runs:
            self._say(run)

    def end_runs(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _say(self, run: RunProgress) -> None:
        """A line at most every ten seconds a run, and only when there is something new."""
        last = self._last_line.get(run.id, -LINE_EVERY_S)
        if not run.take_news() or (self.seconds - last < LINE_EVERY_S and run.status not in OVER):
            return
        self._last_line[run.id] = self.seconds
        view = run.view
        parts = [
            f"{run.label:<24}",
            f"{run.status:<9}",
            f"{run.evaluations:>3} evaluations",
            f"pass rate {number(view.get('last_reward'))}",
        ]
        self.line(escape("  ".join([*parts, f"ceiling {ceiling(view)}"])))


def _table(runs: list[RunProgress], seconds: float) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        header_style="bold",
        padding=(0, 2, 0, 0),
        title=f"{seconds:.0f} s",
        title_justify="left",
    )
    for column, side in (
        ("run", "left"),
        ("state", "left"),
        ("evaluations", "right"),
        ("compute", "right"),
        ("pass rate", "right"),
        ("ceiling (90 %)", "left"),
        ("at budget (90 %)", "left"),
        ("alerts", "right"),
    ):
        table.add_column(column, justify="right" if side == "right" else "left")
    for run in runs:
        view = run.view
        spent = f"{compute(view.get('last_compute'))} / {compute(view.get('budget_compute'))}"
        table.add_row(
            escape(run.label),
            _coloured(run.status),
            str(run.evaluations),
            spent,
            number(view.get("last_reward")),
            ceiling(view),
            interval(view.get("at_budget")),
            str(run.alerts or DASH),
        )
    return table


def _coloured(status: str) -> str:
    colour = {"running": "cyan", "succeeded": "green", "failed": "red", "suspect": "yellow"}.get(status, "default")
    return f"[{colour}]{status}[/]"
