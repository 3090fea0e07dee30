"""What a delivery of an alert says: in words for Slack and mailboxes, as plain JSON for any other receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forecurve.science import Estimate
from forecurve.science.wording import compute_text, level_text
from server.alerts.models import BACK, DOWN_AGAIN, ENDS, OPENED, RESOLVED, Alert, Delivery
from server.forecasts.ending import ending_of
from server.forecasts.models import Forecast
from server.runs.models import Run

from .forms import Told

_SIGNS = {"WARN": ":warning:", "ALERT": ":rotating_light:"}
_ENDED = ":white_check_mark:"

_BEFORE = {OPENED: "", BACK: "Back: ", DOWN_AGAIN: "Down again: ", RESOLVED: "Resolved: "}
"""What an alert's title is told with."""


@dataclass(frozen=True)
class Notice:
    """All that a message needs of one alert, read in one transaction.

    `event` is what it tells of the alert, and `reason` why, where the alert does not say it. `pass_rate` is the run's
    last evaluation. `expected` is what the frozen forecast said of the moment of the alert (median, lower, upper of the
    90 % interval), `ending` how it will end by the newest forecast, as its page says it.
    """

    level: str
    event: str
    reason: str | None
    alert: dict[str, Any]
    run: dict[str, Any]
    pass_rate: float | None
    expected: dict[str, float] | None
    ending: dict[str, Any] | None
    url: str


def make_notice(delivery: Delivery, alert: Alert, run: Run, forecast: Forecast | None, *, public_url: str) -> Notice:
    """The Notice of `alert` for one of its deliveries; `forecast` is the run's newest."""
    ending = None if forecast is None else ending_of(forecast.summary)
    return Notice(
        level=delivery.level or alert.level,
        event=delivery.event,
        reason=delivery.reason,
        alert={
            "id": alert.id,
            "kind": alert.kind,
            "level": alert.level,
            "title": alert.title,
            "text": alert.text,
            "since_compute": alert.since_compute,
            "at_compute": alert.at_compute,
            "back_since": alert.back_since,
            "opened_at": alert.opened_at.isoformat(),
            "resolved_at": None if alert.resolved_at is None else alert.resolved_at.isoformat(),
            "evidence": alert.evidence,
        },
        run=run_in_short(run),
        pass_rate=run.last_reward,
        expected=alert.evidence.get("expected"),
        ending=None if ending is None else ending.model_dump(),
        url=f"{public_url.rstrip('/')}/runs/{run.id}",
    )


def run_in_short(run: Run) -> dict[str, Any]:
    """What webhooks are told of a run."""
    told = ("id", "name", "arm", "sweep_id", "status", "compute_unit", "budget_compute", "last_compute")
    return {name: getattr(run, name) for name in told}


def webhook_body(notice: Notice, now: datetime) -> dict[str, Any]:
    """The generic message: `type`, `timestamp` and `data`, as Standard Webhooks advises."""
    what = f"alert.{notice.alert['kind']}" if notice.event == OPENED else notice.event
    data = {"alert": notice.alert, "reason": notice.reason, "run": notice.run, "url": notice.url}
    numbers = {"pass_rate": notice.pass_rate, "expected": notice.expected, "ending": notice.ending}
    return {"type": what, "timestamp": now.isoformat(), "data": {**data, **numbers}}


def told_of(notice: Notice) -> Told:
    """The same for people."""
    said = f"{_BEFORE[notice.event]}{notice.alert['title']}"
    return Told(
        title=f"{_ENDED if notice.event in ENDS else _SIGNS.get(notice.level, '')} {said}".strip(),
        short=said if notice.event in ENDS else f"{notice.level}: {said}",
        text=notice.reason or notice.alert["text"],
        link=("Open the run", notice.url),
        about=f"{notice.level} · {notice.alert['id']}",
        thread=notice.alert["id"],
        figures=_figures(notice),
    )


def _figures(notice: Notice) -> list[tuple[str, str]]:
    unit = notice.run["compute_unit"]
    figures = [("Run", notice.run["name"])]
    if notice.run["arm"]:
        figures.append(("Arm", notice.run["arm"]))
    if notice.pass_rate is not None:
        figures.append(("Pass rate", f"{notice.pass_rate:.2f}"))
    if notice.expected is not None and notice.event == OPENED:  # of that moment
        figures.append(("Forecast for now", interval(notice.expected)))
    if notice.ending is not None:
        figures.append(("Expected to end at", interval(notice.ending)))
    if notice.alert["since_compute"] is not None:
        figures.append(("Since", f"{compute_text(notice.alert['since_compute'])} {unit}"))
    return figures


def interval(estimate: Mapping[str, Any]) -> str:
    """`0.73 (90 %: 0.71 to 0.76)`."""
    return level_text(Estimate(estimate["median"], estimate["lower"], estimate["upper"]))
