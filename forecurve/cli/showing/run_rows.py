"""A run as a row of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from forecurve.digits import as_given
from forecurve.limits import OVER

from .labels import tags_of
from .output import DASH, changes, compute, interval, number, since

RUN_COLUMNS = ["run", "name", "state", "pass rate", "ceiling (90 %)", "advice", "compute", "updated"]
ARM_COLUMNS = ["arm", "change", "state", "pass rate", "ceiling (90 %)", "at budget (90 %)", "advice"]
NUMERIC = ["pass rate", "compute"]
RUN_SPARE = ["updated", "compute", "tags", "advice", "ceiling (90 %)", "pass rate"]
ARM_SPARE = ["change", "advice"]
"""What is left out first where the terminal is narrow."""

_SHOWS = {"pause": ("pausing", "paused"), "stop": ("stopping",), "cancel": ("stopping",)}
"""What was asked of a run to the statuses that say so by themselves."""


def run_table(runs: Sequence[Mapping[str, Any]]) -> tuple[list[str], Callable[[Mapping[str, Any]], list[str]]]:
    """The heads of their table and what makes a row of it; with tags where one of them has any."""
    if not any(run.get("tags") for run in runs):
        return RUN_COLUMNS, run_row
    return [*RUN_COLUMNS, "tags"], lambda run: [*run_row(run), tags_of(run) or DASH]


def run_row(run: Mapping[str, Any]) -> list[str]:
    """Cells of RUN_COLUMNS."""
    spent = compute(run.get("last_compute"))
    budget = run.get("budget_compute")
    used = f"{spent} / {as_given(budget)} {run['compute_unit']}" if budget else f"{spent} {run['compute_unit']}"
    return [
        run["id"],
        run["name"],
        state(run),
        number(run.get("last_reward")),
        ceiling(run),
        advice(run),
        used,
        since(run.get("updated_at")),
    ]


def arm_table(runs: Sequence[Mapping[str, Any]]) -> tuple[list[str], Callable[[Mapping[str, Any]], list[str]]]:
    """The heads of a sweep's table and what makes a row of it; with seeds where an arm has several."""
    if len({_arm(run) for run in runs}) == len(runs):
        return ARM_COLUMNS, arm_row
    first, *others = ARM_COLUMNS
    return [first, "seed", *others], lambda run: [_arm(run), str(run["seed"]), *arm_row(run)[1:]]


def arm_row(run: Mapping[str, Any]) -> list[str]:
    """Cells of ARM_COLUMNS."""
    return [
        _arm(run),
        changes(run.get("changes")),
        state(run),
        number(run.get("last_reward")),
        ceiling(run),
        interval(run.get("at_budget")),
        advice(run),
    ]


def _arm(run: Mapping[str, Any]) -> str:
    return str(run.get("arm") or run["name"])


def state(run: Mapping[str, Any]) -> str:
    """The status, and what was asked of the run when that differs, or that its sweep holds it; of one that is over,
    whether it fell on the way."""
    wanted = run.get("desired_state")
    if run["status"] == "paused" and run.get("allocated"):
        return "paused (held)"
    if wanted in _SHOWS and run["status"] not in (*OVER, *_SHOWS[wanted]):
        return f"{run['status']} ({wanted} asked)"
    fell = " (fell)" if run.get("fell_at") is not None else ""
    return f"{run['status']}{fell}"


def ceiling(run: Mapping[str, Any]) -> str:
    """The newest forecast's; a curve that is no sigmoid has none."""
    return "withheld" if run.get("withheld") else interval(run.get("ceiling"))


def is_forecast(run: Mapping[str, Any]) -> bool:
    """Whether there is a forecast of the run, if only that none can be given."""
    return bool(run.get("ceiling") or run.get("withheld"))


def advice(run: Mapping[str, Any]) -> str:
    return str((run.get("advice") or {}).get("action") or DASH)
