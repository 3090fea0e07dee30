"""What the demo found: the table, the alert, and whether every part worked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

from forecurve.client.api import Api
from forecurve.client.errors import ApiError

from ..showing.alerts import what
from ..showing.output import interval, number, print_json, print_table
from ..showing.run_rows import advice, ceiling, is_forecast
from .receiver import Delivery, Receiver
from .service import DemoService
from .tracker import RunProgress, Tracker

BELOW_FORECAST = "below_forecast"
COLUMNS = ["arm", "state", "pass rate now", "ceiling (90 %)", "frozen at budget", "forecast at budget", "advice"]


@dataclass(frozen=True)
class Check:
    """One part of the demo: did it work?"""

    part: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """Everything that the demo prints at its end."""

    url: str
    sweep_id: str
    rows: list[dict[str, Any]]
    alert: dict[str, Any] | None
    delivery: Delivery | None
    checks: list[Check]
    timings: dict[str, Any]

    @property
    def succeeded(self) -> bool:
        return all(check.ok for check in self.checks)


def make_report(
    api: Api,
    service: DemoService,
    tracker: Tracker,
    receiver: Receiver,
    sweep: dict[str, Any],
    broken_id: str,
    timings: dict[str, Any],
) -> Report:
    """Read what the table needs, and judge every part."""
    broken = tracker.runs[broken_id]
    arms = [run for run_id, run in tracker.runs.items() if run_id != broken_id]
    rows = [_row(api, run) for run in [*arms, broken]]
    alert = find_alert(tracker, broken_id)
    delivery = delivered(alert, receiver)
    checks = [
        _runs_check("sweep", arms, ("succeeded",)),
        _runs_check("broken run", [broken], ("succeeded", "stopped")),
        _forecasts_check(rows),
        Check("alert", alert is not None, what(alert) if alert else f"{broken.label} raised no ALERT"),
        _delivery_check(delivery, receiver),
        _page_check(service, sweep["id"]),
    ]
    return Report(service.url, sweep["id"], rows, alert, delivery, checks, timings)


def find_alert(tracker: Tracker, broken_id: str) -> dict[str, Any] | None:
    """The alert that the broken run's fall below its own forecast raised, if it did."""
    alerts = tracker.alerts_of(broken_id)
    return next((alert for alert in alerts if alert["kind"] == BELOW_FORECAST and alert["level"] == "ALERT"), None)


def delivered(alert: dict[str, Any] | None, receiver: Receiver) -> Delivery | None:
    """The message about that alert, when it has arrived; a verified one if there are several."""
    about = [sent for sent in receiver.deliveries if alert and alert["id"] in json.dumps(sent.body)]
    return next((sent for sent in about if sent.verified), about[0] if about else None)


def print_report(report: Report, *, as_json: bool) -> None:
    """On stdout: tables for people, one object with --json."""
    if as_json:
        print_json(_as_json(report))
        return
    print()
    print_table(COLUMNS, [_cells(row) for row in report.rows], right=["pass rate now"])
    if report.delivery:
        verified = "signature verified" if report.delivery.verified else "SIGNATURE WRONG"
        print(f"\nDelivered to the receiver, {verified} ({report.delivery.message_id}):\n")
        print("\n".join(f"    {line}" for line in report.delivery.text.splitlines()))
    print()
    for check in report.checks:
        print(f"{'ok    ' if check.ok else 'FAILED'}  {check.part}: {check.detail}")
    known = {name.replace("_", " "): value for name, value in report.timings.items() if isinstance(value, float)}
    print("\n" + ", ".join(f"{name} {value:.1f} s" for name, value in known.items()))


def _row(api: Api, run: RunProgress) -> dict[str, Any]:
    curve = api.curve(run.id)
    view, frozen = curve["run"], curve["frozen"]
    return {
        "arm": run.label,
        "run_id": run.id,
        "status": view["status"],
        "reason": view.get("reason"),
        "evaluations": len(curve["points"]),
        "pass_rate": view["last_reward"],
        "ceiling": view["ceiling"],
        "withheld": view["withheld"],
        "frozen_at_budget": ((frozen or {}).get("at_budget") or {}).get("curve"),
        "at_budget": view["at_budget"],
        "advice": view["advice"],
        "sentence": view["sentence"],
    }


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        row["arm"],
        row["status"],
        number(row["pass_rate"]),
        ceiling(row),
        interval(row["frozen_at_budget"]),
        interval(row["at_budget"]),
        advice(row),
    ]


def _runs_check(part: str, runs: list[RunProgress], wanted: tuple[str, ...]) -> Check:
    wrong = [run for run in runs if run.status not in wanted]
    by_fault: dict[str, list[str]] = {}
    for run in wrong:
        by_fault.setdefault(f"{run.status} ({run.view.get('reason') or 'no reason given'})", []).append(run.label)
    faults = "; ".join(f"{', '.join(labels)}: {fault}" for fault, labels in by_fault.items())
    return Check(part, not wrong, faults or f"{len(runs)} ended as they should")


def _forecasts_check(rows: list[dict[str, Any]]) -> Check:
    without = [row["arm"] for row in rows if not is_forecast(row)]
    points = sum(row["evaluations"] for row in rows)
    return Check(
        "forecasts",
        not without,
        f"none for {', '.join(without)}" if without else f"every run, from {points} evaluations",
    )


def _delivery_check(delivery: Delivery | None, receiver: Receiver) -> Check:
    if delivery is None:
        return Check("delivery", False, f"the alert did not arrive; {len(receiver.deliveries)} other messages did")
    return Check(
        "delivery", delivery.verified, "arrived, signature verified" if delivery.verified else "the signature is wrong"
    )


def _page_check(service: DemoService, sweep_id: str) -> Check:
    """A browser's way: redeem a login link, open the sweep's page."""
    from ..showing.status import login_link

    try:
        with httpx.Client(follow_redirects=True, timeout=30.0, trust_env=False) as browser:
            browser.get(login_link(service.layout.data_dir)).raise_for_status()
            page = browser.get(f"{service.url}/sweeps/{sweep_id}")
    except (httpx.HTTPError, ApiError) as error:
        return Check("page", False, str(error))
    ok = page.status_code == 200 and sweep_id in page.text
    return Check("page", ok, f"{page.url} answered {page.status_code} with {len(page.content)} bytes")


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "succeeded": report.succeeded,
        "url": report.url,
        "sweep_id": report.sweep_id,
        "runs": report.rows,
        "alert": report.alert,
        "delivery": report.delivery.body if report.delivery else None,
        "checks": [vars(check) for check in report.checks],
        "timings": report.timings,
    }
