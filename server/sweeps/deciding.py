"""What to add to a sweep so that an undecided arm is decided: seeds, as its comparison asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from server.runs.schemas import RunView
from server.runs.states import TERMINAL

from .outline import RunOutline
from .schemas import MOST_FURTHER, ArmVerdictView, ComparisonView, FurtherSeeds, MoreSeeds

AnyRun = RunView | RunOutline


def with_further_seeds(comparison: ComparisonView, runs: Sequence[AnyRun]) -> ComparisonView:
    """The comparison with the further seeds that would decide each arm, beside those that are on their way."""
    counted = Counter(_arm(run) for run in runs if _may_count(run))
    budgets = {_arm(run): run.budget_compute for run in runs}
    arms = [_with_further(arm, comparison.control, counted, budgets) for arm in comparison.arms]
    return comparison.model_copy(update={"arms": arms})


def _arm(run: AnyRun) -> str:
    return run.arm or run.name


def _may_count(run: AnyRun) -> bool:
    """It is compared, or may be yet."""
    return run.status not in TERMINAL or (run.ceiling is not None and not run.withheld)


def _with_further(
    arm: ArmVerdictView, control: str, counted: Mapping[str, int], budgets: Mapping[str, float | None]
) -> ArmVerdictView:
    if arm.verdict != "undecided" or arm.seeds_needed is None:
        return arm
    lacking = {name: max(arm.seeds_needed - counted[name], 0) for name in (control, arm.arm)}
    if not any(lacking.values()):
        return arm.model_copy(update={"on_their_way": True})
    if max(lacking.values()) > MOST_FURTHER:
        return arm
    spent = [count * (budgets[name] or 0) for name, count in lacking.items() if count]
    further = FurtherSeeds(
        request=_request(arm.arm, lacking[arm.arm], control, lacking[control]),
        runs=sum(lacking.values()),
        compute=sum(spent) if all(spent) else None,
    )
    return arm.model_copy(update={"further": further})


def _request(arm: str, of_it: int, control: str, of_control: int) -> MoreSeeds:
    if not of_it:
        return MoreSeeds(seeds=of_control, arms=[control])
    return MoreSeeds(seeds=of_it, arms=[arm], control_seeds=of_control)
