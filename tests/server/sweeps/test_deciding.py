"""Which seeds would decide an arm, beside those that count and those that are on their way."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from server.comparisons.find import MOST_RUNS
from server.runs.schemas import Interval
from server.sweeps.deciding import with_further_seeds
from server.sweeps.outline import RunOutline
from server.sweeps.schemas import ArmVerdictView, ComparisonView

CEILING = Interval(median=0.7, lower=0.68, upper=0.72)
OPEN: dict[str, Any] = {
    "arm": "x",
    "seeds": 1,
    "left_out": [],
    "verdict": "undecided",
    "certainty": 0.4,
    "seeds_needed": 2,
    "would_decide": "1 more seed of it",
    "reason": "",
} | dict.fromkeys(("direction", "difference", "simultaneous", "p_same", "multiplier", "run_to", "seed_note"))


def further(runs: Sequence[RunOutline], of_control: dict[str, Any] | None = None, **of_it: Any) -> ArmVerdictView:
    """What is said of arm `x`, which needs two seeds as the control does, with these runs."""
    comparison = {
        "control": "control",
        "control_seeds": 2,
        "control_left_out": [],
        "arms": [OPEN | of_it],
        "rope": 0.02,
        "level": 0.95,
        "unit": "GPU-hours",
        "seed_spread": {"sd": 0.0125, "dof": 6.0, "past": 0},
        "replicates": 0,
        "control_advice": None,
        "sentence": "",
        "compared_at": datetime(2026, 1, 1, tzinfo=UTC),
        "seconds": 0.1,
    } | (of_control or {})
    return with_further_seeds(ComparisonView.model_validate(comparison), runs).arms[0]


def run(arm: str, seed: int, status: str = "succeeded", ceiling: Interval | None = CEILING, **so: Any) -> RunOutline:
    columns = {"id": f"{arm}{seed}", "name": f"{arm} s{seed}", "arm": arm, "is_control": arm == "control"}
    columns |= {"status": status, "reason": None, "compute_unit": "GPU-hours", "budget_compute": 50.0}
    columns |= {"last_reward": 0.6, "last_compute": 50.0, "ceiling": ceiling, "ceiling_known": True}
    return RunOutline(**columns | {"withheld": False, "at_budget": None} | so)  # type: ignore[arg-type]


CONTROLS = [run("control", 0), run("control", 1)]


@pytest.mark.parametrize("status", ["queued", "running", "paused", "lost"])
def test_a_seed_that_may_count_yet_is_on_its_way(status: str) -> None:
    arm = further([*CONTROLS, run("x", 0), run("x", 1, status, None)])
    assert (arm.further, arm.on_their_way) == (None, True)


@pytest.mark.parametrize(
    ("ended", "of_it"),
    [
        (run("x", 1, "failed", None), {}),
        (run("x", 1, withheld=True, ceiling=None), {}),
        (run("x", 1, "stopped"), {"waiting": ["x s1"]}),
        (run("x", 1), {"left_out": [{"series": "x s1", "misfit": "collapse"}]}),
    ],
)
def test_a_run_that_is_over_and_was_not_counted_is_no_seed(ended: RunOutline, of_it: dict[str, Any]) -> None:
    arm = further([*CONTROLS, run("x", 0), ended], **of_it)
    assert arm.further is not None
    assert (arm.further.runs, arm.further.compute, arm.on_their_way) == (1, 50.0, False)
    assert arm.further.request.model_dump() == {"seeds": 1, "arms": ["x"], "control_seeds": 0}


def test_no_seeds_are_asked_for_after_which_a_sweep_would_be_compared_no_more() -> None:
    few = [*CONTROLS, run("x", 0)]
    others = [run("y", seed) for seed in range(MOST_RUNS - len(few))]
    assert further([*few, *others[1:]]).further is not None
    arm = further([*few, *others])
    assert (arm.further, arm.on_their_way) == (None, False)


def test_so_it_is_of_the_control() -> None:
    young = {"control_seeds": 1, "control_waiting": ["control s1"]}
    stopped = run("control", 1, "stopped")
    arm = further([run("control", 0), stopped, run("x", 0), run("x", 1)], young, seeds=2)
    assert arm.further is not None
    assert arm.further.request.model_dump() == {"seeds": 1, "arms": ["control"], "control_seeds": None}
    going = run("control", 1, "running")
    assert further([run("control", 0), going, run("x", 0), run("x", 1)], young, seeds=2).on_their_way
