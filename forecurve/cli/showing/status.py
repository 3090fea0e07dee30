"""What `forecurve status` finds out and shows."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from forecurve.client.errors import ApiError

from ..asking.connection import connect
from ..errors import CliError
from ..supervisor.identity import same_process
from ..supervisor.layout import Layout, apps_dir
from ..supervisor.lock import is_held
from ..supervisor.options import CannotStart
from ..supervisor.services import bootstrap, keep_admin_token
from ..supervisor.state import read_state
from .output import DASH, duration, print_table


def read_status(data_dir: Path) -> dict[str, Any]:
    """Everything as JSON: running, phase, url, parts, runs by state, a fresh login link, faults met on the way."""
    layout = Layout.of(data_dir)
    state = read_state(layout)
    running = is_held(layout.lock)
    report: dict[str, Any] = {
        "running": running,
        "data_dir": str(layout.data_dir),
        "parts": [],
        "runs": None,
        "faults": [],
    }
    if not state:
        return report | {"phase": "starting" if running else "stopped"}
    now = time.time()
    report |= {"phase": state["phase"] if running else "dead", "url": state["public_url"], "pid": state["pid"]}
    report["uptime_s"] = round(now - state["started_at"], 1)
    report["parts"] = [_part(part, now) for part in state["parts"].values()]
    if same_process(state) is None or state["phase"] != "running":
        return report
    report["runs"] = _attempt(report, lambda: _runs_by_state(data_dir))
    report["login_url"] = _attempt(report, lambda: login_link(data_dir))
    return report


def login_link(data_dir: Path) -> str:
    """A fresh login link; CliError when there is no service to log in to. Where no admin token was good any more, the
    one that was minted is kept as that of `forecurve up` is."""
    layout = Layout.of(data_dir)
    env = read_state(layout).get("env")
    if not env and not os.environ.get("DATABASE_URL"):
        raise CliError(f"no service is running on {layout.data_dir}; start one with `forecurve up`")
    inherited = {name: value for name, value in os.environ.items() if name != "FORECURVE_TOKEN"}
    try:
        minted = bootstrap(inherited | (env or {}), apps_dir(), _log(layout))
    except CannotStart as error:
        raise CliError(str(error)) from None
    keep_admin_token(layout, minted.get("admin_token"))
    return str(minted["login_url"])


def print_status(report: dict[str, Any]) -> None:
    """The report for people."""
    if not report["running"]:
        dead = "its supervisor died; `forecurve down` ends what it left, `forecurve up` starts anew"
        idle = "start it with `forecurve up`"
        print(f"Not running on {report['data_dir']}: {dead if report['phase'] == 'dead' else idle}.")
        return
    print(f"{report['phase']}, pid {report.get('pid', DASH)}, data in {report['data_dir']}\n")
    rows = [
        (
            part["name"],
            part["state"],
            part["pid"] or DASH,
            duration(part["since_s"]),
            part["restarts"] or "",
            part["note"],
        )
        for part in report["parts"]
    ]
    print_table(["part", "state", "pid", "since", "restarts", ""], rows, right=["pid", "restarts"])
    if report["runs"] is not None:
        counts = ", ".join(f"{count} {status}" for status, count in report["runs"].items()) or "none yet"
        print(f"\nRuns    {counts}")
    if report.get("url"):
        print(f"Pages   {report['url']}")
    if report.get("login_url"):
        print(f"Log in  {report['login_url']}")
    for fault in report["faults"]:
        print(f"!  {fault}")


def _part(part: dict[str, Any], now: float) -> dict[str, Any]:
    kept = {key: part[key] for key in ("name", "state", "pid", "restarts", "note")}
    return kept | {"since_s": round(now - part["since"], 1)}


def _runs_by_state(data_dir: Path) -> dict[str, int]:
    with connect(None, None, data_dir) as api:
        return api.count_runs()


def _attempt(report: dict[str, Any], work: Any) -> Any:
    """A part of the report that may fail without taking the rest with it."""
    try:
        return work()
    except (CliError, ApiError) as error:
        report["faults"].append(str(error))
        return None


def _log(layout: Layout) -> Path:
    return layout.logs / "bootstrap.log" if layout.logs.is_dir() else Path(os.devnull)
