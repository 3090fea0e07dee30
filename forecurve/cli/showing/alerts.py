"""Alerts and their deliveries in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forecurve.signs import visible

from .output import DASH, compute, moment, since

ALERT_COLUMNS = ["alert", "level", "state", "run", "opened", "what"]
_FEW = 3  # things of a list that are written on one line
_WHOLE = 1e15  # whole numbers below it are counts, and are written with all their digits
_ABOUT = ("alert_id", "recommendation_id", "run_id", "sweep_id")
DELIVERY_COLUMNS = ["about", "channel", "level", "tells", "state", "tries", "made", "answer"]


def alert_row(alert: Mapping[str, Any]) -> list[str]:
    """Cells of ALERT_COLUMNS."""
    return [alert["id"], alert["level"], state(alert), alert["run_id"], since(alert["opened_at"]), what(alert)]


def what(alert: Mapping[str, Any]) -> str:
    """What happened to which run, and its figures, in one paragraph."""
    return f"{alert['title']}. {alert['text']}"


def delivery_row(delivery: Mapping[str, Any]) -> list[Any]:
    """Cells of DELIVERY_COLUMNS."""
    made = since(delivery["created_at"])
    return [
        _about(delivery),
        delivery["channel_id"],
        delivery["level"] or DASH,
        tells(delivery),
        delivery["status"],
        delivery["tries"],
        made,
        answer(delivery),
    ]


def _about(delivery: Mapping[str, Any]) -> str:
    return next((str(delivery[name]) for name in _ABOUT if delivery.get(name)), "a test")


def describe(alert: Mapping[str, Any], unit: str) -> list[str]:
    """The lines of `forecurve alert show`; `unit` is that of its run's compute."""
    evidence, logs = _evidence(alert)
    facts = {
        "state": state(alert),
        "run": alert["run_id"],
        "kind": alert["kind"],
        "opened": moment(alert["opened_at"]),
        "since": _at(alert["since_compute"], unit),
        "back since": _at(alert["back_since"], unit),
        "seen": _at(alert["at_compute"], unit),
        **evidence,
    }
    width = max(len(name) for name in facts) + 2
    lines = [f"{alert['level']}  {alert['title']}  {alert['id']}"]
    lines += [f"  {name:<{width}}{value}" for name, value in facts.items() if value is not None]
    lines += ["", alert["text"], *logs]
    sent = [f"  {one['channel_id']}  {tells(one)}  {one['status']}  {answer(one)}" for one in alert["deliveries"]]
    lines += ["", "Sent to", *sent] if sent else []
    return [visible(line) for line in lines]


def tells(delivery: Mapping[str, Any]) -> str:
    """Of an alert: opened, back, down again, resolved; advice, that something is over, or that it is a test."""
    event: str = delivery["event"]
    return "opened" if event == "alert" else event.rpartition(".")[2].replace("_", " ")


def state(alert: Mapping[str, Any]) -> str:
    """Open until it is resolved; who has seen it does not close it."""
    if alert["resolved_at"]:
        return "resolved"
    return "acknowledged" if alert["acknowledged_at"] else "open"


def _at(spent: float | None, unit: str) -> str | None:
    return None if spent is None else compute(spent, unit)


def _evidence(alert: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Facts of one line each; and the lines of what has several, such as the end of a log."""
    facts: dict[str, str] = {}
    logs: list[str] = []
    for name, value in alert["evidence"].items():
        if isinstance(value, str) and "\n" in value:
            logs += ["", name, *(f"  {line}" for line in value.splitlines())]
        elif value not in (None, ""):
            facts[name] = _short(value)
    return facts, logs


def _short(value: Any) -> str:
    """A piece of evidence on a line: figures with the digits that a person reads."""
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= _WHOLE):  # as the database gives 1e+24
        return f"{value:.4g}"
    if isinstance(value, list) and len(value) > _FEW:
        return f"{len(value)}, which --json shows"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def answer(delivery: Mapping[str, Any]) -> str:
    """What the channel answered; before that, when it is tried."""
    if delivery["status"] == "pending":
        return f"next try {moment(delivery['not_before'])}"
    told = [str(delivery[name]) for name in ("response_status", "response_text") if delivery[name]]
    return " ".join(told) or DASH
