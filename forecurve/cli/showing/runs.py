"""A run in words, and a run followed until it is over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from forecurve.client.api import Api
from forecurve.digits import as_given
from forecurve.limits import OVER
from forecurve.signs import visible

from ..asking.patience import patiently, wait
from .allocation import becomes_of
from .labels import note_lines, tags_of
from .output import compute, interval, left, number, since
from .run_rows import ceiling, state


def describe(run: Mapping[str, Any]) -> list[str]:
    """The lines of `forecurve run show`."""
    unit = run["compute_unit"]
    facts = {
        "state": state(run) + (f": {run['reason']}" if run.get("reason") else ""),
        "log": f"forecurve run logs {run['id']}" if _has_log_to_see(run) else None,
        "sweep": f"{run['sweep_id']}, which shares its compute: {becomes_of(run)}" if _is_allocated(run) else None,
        "archived": since(run["archived_at"]) if run.get("archived_at") else None,
        "forked from": f"{parent['run_id']} at step {parent['step']}" if (parent := run.get("parent")) else None,
        "task": run.get("task"),
        "tags": tags_of(run),
        "note": "\n".join(note_lines(run)) or None,
        "attempt": run.get("attempt"),
        "pass rate": _rate(run),
        "budget": _budget(run),
        "ceiling": ceiling(run),
        "at budget": f"{interval(run.get('at_budget'))} at {as_given(run['budget_compute'])} {unit}"
        if run.get("budget_compute") and run.get("at_budget") and not run.get("withheld")
        else None,
        "ending": _ending(run),
        "open alerts": run.get("open_alerts"),
    }
    lines = [f"{run['name']}  {run['id']}"]
    if advice := run.get("advice"):
        facts["advice"] = f"{advice['action']}: {advice['reason']}"
    lines += [line for name, value in facts.items() if value is not None for line in _fact(name, str(value))]
    if sentence := run.get("sentence"):
        lines += ["", *sentence.splitlines()]
    return [visible(line) for line in lines]


def _has_log_to_see(run: Mapping[str, Any]) -> bool:
    """Of a run that was launched by the service and failed, why is best told by what it printed."""
    return bool(run["status"] == "failed" and run.get("executor") == "ray" and run.get("attempt"))


def _is_allocated(run: Mapping[str, Any]) -> bool:
    """Whether its sweep says how far it trains."""
    return bool(run.get("allocated") and run["status"] not in OVER)


def _fact(name: str, value: str) -> list[str]:
    """A line, or several where the value has them: a run may fail with a traceback."""
    first, *more = value.splitlines() or [""]
    return [f"  {name:<12}{first}", *(f"  {'':<12}{line}" for line in more)]


def _rate(run: Mapping[str, Any]) -> str:
    if run.get("last_reward") is None:
        return "no evaluation yet" if run["status"] not in OVER else "no evaluation"
    spent = compute(run.get("last_compute"), run["compute_unit"])
    return f"{number(run['last_reward'])} at {spent}, step {run.get('last_step')}"


def _budget(run: Mapping[str, Any]) -> str | None:
    """What it may spend, and how long that takes at its pace."""
    if not run.get("budget_compute"):
        return None
    given = f"{as_given(run['budget_compute'])} {run['compute_unit']}"
    tells_left = run.get("budget_spent_at") and not run.get("allocated")  # it goes no further than its sweep lets it
    return f"{given}, {left(run['budget_spent_at'])}" if tells_left else given


def _ending(run: Mapping[str, Any]) -> str | None:
    """How it will end, and what the interval rests on."""
    if run.get("withheld"):
        return f"withheld: {run['misfit']}"
    ending = run.get("ending")
    return f"{interval(ending)}, {ending['calibration']}" if ending else None


def follow(api: Api, run_id: str, *, every_s: float, as_json: bool) -> str:
    """Print what is new until the run is over; its last status. A service that is away for a moment is waited for."""
    seen: tuple[Any, ...] = ()
    while True:
        run = patiently(lambda: api.run(run_id), every_s) if seen else api.run(run_id)  # no wrong address is waited for
        known = run.get("withheld") or (run.get("ceiling") or {}).get("median")
        now = (run["status"], run.get("last_step"), known, run.get("open_alerts"))
        if now != seen:
            seen = now
            print(json.dumps(run) if as_json else _line(run), flush=True)
        if run["status"] in OVER:
            return str(run["status"])
        wait(every_s)


def _line(run: Mapping[str, Any]) -> str:
    parts = [
        f"{state(run):<10}",
        f"step {run.get('last_step') or 0:>5}",
        f"{compute(run.get('last_compute'), run['compute_unit']):>16}",
        f"pass rate {number(run.get('last_reward'), 3)}",
        f"ceiling {ceiling(run)}",
    ]
    if run.get("budget_spent_at") and not run.get("allocated"):
        parts.append(left(run["budget_spent_at"]))
    if run.get("open_alerts"):
        parts.append(f"{run['open_alerts']} open alerts")
    return "  ".join(parts)
