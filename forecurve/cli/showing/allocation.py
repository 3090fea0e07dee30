"""How the compute of a sweep is shared among its runs, at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecurve.allocated import TOLD_BY, becomes
from forecurve.digits import as_given
from forecurve.signs import visible

from .output import DASH, compute, interval, print_table


def becomes_of(run: Mapping[str, Any]) -> str:
    """What becomes of one of its runs."""
    return becomes(lambda amount: compute(amount, run["compute_unit"]), **{name: run[name] for name in TOLD_BY})


def print_allocation(sweep: Mapping[str, Any]) -> None:
    """What is spent, what there is to say, and what becomes of each run: the likeliest best first."""
    shared = sweep["allocation"]
    outlooks = {one["run_id"]: one for one in shared["runs"]}
    compared = [run for one in outlooks for run in sweep["runs"] if run["id"] == one]
    others = [run for run in sweep["runs"] if run["id"] not in outlooks]
    end = f"at {compute(shared['horizon'], shared['unit'])} (90 %)"
    best = "P(best arm)" if any(one.get("seed_of") for one in shared["runs"]) else "P(best)"
    columns = ["run", "now", end, best, "because"]
    rows = [_row(run, outlooks.get(run["id"])) for run in [*compared, *others]]
    print(f"\nShared compute: {compute(shared['spent'])} of {as_given(shared['budget'])} {shared['unit']} spent.")
    print(visible(shared["sentence"]))
    print_table(columns, rows, right=[best], spare=["because"])


def _row(run: Mapping[str, Any], outlook: Mapping[str, Any] | None) -> list[str]:
    from forecurve.science.wording import share_text  # imports numpy, which no other list needs

    if outlook is None:
        return [run["name"], becomes_of(run), DASH, DASH, "not compared"]
    because = outlook["reason"] or ("can be dropped" if outlook["dominated"] else DASH)
    return [run["name"], becomes_of(run), interval(outlook["end"]), share_text(outlook["p_best"]), because]
