"""What `forecurve up` prints: one line a part, then where to go. With --json one object a line."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.markup import escape

from forecurve import patient_output

_LEAVE_S = 2.0


class UpConsole:
    """Progress on stderr, the result on stdout. A terminal that is stopped (Ctrl-S) keeps nobody from starting a part
    again, or from stopping them all."""

    def __init__(self, *, as_json: bool):
        self._as_json = as_json
        self._streams = patient_output.patient(sys.stdout), patient_output.patient(sys.stderr)
        self._out = Console(file=self._streams[1], stderr=True, highlight=False, soft_wrap=True)

    def leave(self) -> None:
        """Let what was said be read, and wait for it no longer than a moment."""
        for stream in self._streams:
            patient_output.leave(stream, _LEAVE_S)

    def say(self, event: str, text: str, **fields: Any) -> None:
        """A line for people, or an object for scripts. A terminal that was closed, or a log on a full disk, takes none:
        that must keep nobody from stopping what runs."""
        with suppress(OSError):
            if self._as_json:
                print(json.dumps({"event": event} | fields), file=self._streams[0], flush=True)
            else:
                self._out.print(text)

    def began(self, version: str, data_dir: str) -> None:
        self.say(
            "began", f"[bold]Forecurve {version}[/]  data in {escape(data_dir)}", version=version, data_dir=data_dir
        )

    def ready(self, name: str, seconds: float, note: str = "") -> None:
        self.say(
            "ready",
            f"  [green]✓[/] {name:<11}{seconds:6.1f} s  [dim]{escape(note)}[/]",
            part=name,
            seconds=round(seconds, 2),
        )

    def still_runs(self, name: str, seconds: float, log: str) -> None:
        note = f"still at it, as a large database needs; {escape(log)}"
        text = f"  [dim]…[/] {name:<11}{seconds:6.1f} s  [dim]{note}[/]"
        self.say("still-runs", text, part=name, seconds=round(seconds, 2), log=log)

    def crashed(self, name: str, again_s: float, log: str) -> None:
        text = f"  [yellow]![/] {name} ended unexpectedly; again in {again_s:.1f} s  [dim]{escape(log)}[/]"
        self.say("crashed", text, part=name, again_s=again_s, log=log)

    def gave_up(self, name: str, log: str, tail: str) -> None:
        text = (
            f"  [red]✗[/] {name} ended again and again; stopping everything. The end of {escape(log)}:\n{escape(tail)}"
        )
        self.say("gave-up", text, part=name, log=log, tail=tail)

    def where(self, url: str, login_url: str | None, admin_token: str | None, secrets: str) -> None:
        lines = ["", f"  Pages   [bold]{escape(url)}[/]"]
        if login_url:
            lines.append(f"  Log in  {escape(login_url)}  [dim](good once; `forecurve login` prints another)[/]")
        if admin_token:
            lines.append(f"  Admin token  {escape(admin_token)}  [dim](kept in {escape(secrets)})[/]")
        lines.append("\n  Ctrl-C stops everything.")
        self.say("where", "\n".join(lines), url=url, login_url=login_url, admin_token=admin_token)

    def stopping(self, why: str, note: str = "") -> None:
        self.say("stopping", f"\nStopping ({escape(why)}){escape(note)} …", why=why)

    def stopped(self, seconds: float) -> None:
        self.say("stopped", f"Stopped in {seconds:.1f} s; nothing is left running.", seconds=round(seconds, 2))

    def left(self, names: list[str]) -> None:
        text = f"  [yellow]![/] an earlier service here died; ended what it left running: {', '.join(names)}"
        self.say("leftovers", text, processes=names)
