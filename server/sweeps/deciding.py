"""What to add to a sweep so that an undecided arm is decided: seeds, as its comparison asks for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set

from server.comparisons.find import too_many
from server.runs.schemas import RunView
from server.runs.states import TERMINAL

from .outline import RunOutline
from .schemas import MOST_FURTHER, ArmVerdictView, ComparisonView, FurtherSeeds, MoreSeeds

AnyRun = RunView | RunOutline


def with_further_seeds(comparison: ComparisonView, runs: Sequence[AnyRun]) -> ComparisonView:
    """The comparison with the further seeds that would decide each arm, beside those that are on their way."""
    missed = _missed(comparison)
    counted = Counter(_arm(run) for run in runs if _may_count(run, missed))
    budgets = {_arm(run): run.budget_compute for run in runs}
    further = [_with_further(arm, comparison.control, counted, budgets) for arm in comparison.arms]
    arms = [_within_bounds(arm, len(runs)) for arm in further]
    return comparison.model_copy(update={"arms": arms})


def _arm(run: AnyRun) -> str:
    return run.arm or run.name


def _missed(comparison: ComparisonView) -> set[tuple[str, str]]:
    """Arm and name of each run that the comparison does not count: it has no ceiling, or is too young."""
    control = comparison.control, comparison.control_left_out, comparison.control_waiting
    of_arms = [control, *((arm.arm, arm.left_out, arm.waiting) for arm in comparison.arms)]
    return {(arm, name) for arm, out, young in of_arms for name in (*(one.series for one in out), *young)}


def _may_count(run: AnyRun, missed: Set[tuple[str, str]]) -> bool:
    """It is compared, or may be yet; one that is over and was not counted never will be."""
    if run.status not in TERMINAL:
        return True
    return run.ceiling is not None and not run.withheld and (_arm(run), run.name) not in missed


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


def _within_bounds(arm: ArmVerdictView, there: int) -> ArmVerdictView:
    """Without the seeds after which the sweep would be compared no more."""
    ends_it = arm.further is not None and too_many(there + arm.further.runs)
    return arm.model_copy(update={"further": None}) if ends_it else arm


def _request(arm: str, of_it: int, control: str, of_control: int) -> MoreSeeds:
    if not of_it:
        return MoreSeeds(seeds=of_control, arms=[control])
    return MoreSeeds(seeds=of_it, arms=[arm], control_seeds=of_control)
