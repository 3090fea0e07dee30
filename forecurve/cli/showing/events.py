"""The events of a run as a table, or one by one as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from forecurve.limits import OVER

from ..asking.patience import patiently, wait
from .output import compute, line_of, moment, print_newest

if TYPE_CHECKING:
    from forecurve.client.api import Api

PLAIN_BELOW = 10_000  # four digits have no exponent


def print_events(found: Mapping[str, Any]) -> None:
    """The table of `forecurve run events`."""
    print_newest(found, ["when", "what", "state", "by", "why"], _cells, spare=["by"])


def follow_events(api: Api, run_id: str, *, every_s: float, as_json: bool) -> None:
    """Print a line an event, oldest first, until the run is over and all of it is told."""
    run, cursor = api.run(run_id), 0
    while True:
        page = patiently(lambda: api.events(cursor, run_id=run_id), every_s)  # noqa: B023 - called at once
        for event in page["items"]:
            print(json.dumps(event) if as_json else _line(event), flush=True)
        cursor = page["cursor"]
        if page["items"]:
            continue
        if run["status"] in OVER:  # was so before this look, which found nothing more
            return
        wait(every_s)
        run = patiently(lambda: api.run(run_id), every_s)


def _cells(event: Mapping[str, Any]) -> list[str]:
    return [moment(event["created_at"]), event["kind"], _change(event), _who(event), _why(event)]


def _line(event: Mapping[str, Any]) -> str:
    return line_of("  ".join(cell for cell in _cells(event) if cell))


def _who(event: Mapping[str, Any]) -> str:
    return str(event.get("actor_name") or event["actor"])


def _change(event: Mapping[str, Any]) -> str:
    before, after = event["from_state"], event["to_state"]
    return f"{before} to {after}" if before and after else after or ""


def _why(event: Mapping[str, Any]) -> str:
    """The reason, or else what the event rests on."""
    return event["reason"] or ", ".join(f"{name}={_figure(value)}" for name, value in event["evidence"].items())


def _figure(value: Any) -> str:
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=False)
    return f"{value:.4g}" if abs(value) < PLAIN_BELOW else compute(value)
