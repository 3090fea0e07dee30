"""What there is to say of a sweep: how far it is, and what its arms changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from forecurve.science.wording import compute_text, names_text
from server.runs.states import TERMINAL

from .schemas import ArmVerdictView, ComparisonView


def sweep_sentence(statuses: Sequence[str], best: str | None = None, compared: str | None = None) -> str:
    """How far the sweep is, which arm is best, then what its comparison with the control says, or why there is none.

    Args:
        statuses: of the sweep's runs.
        best: of `ranking_sentence`.
        compared: of `forecurve.compare`: which arms moved the ceiling, which only the efficiency, what would decide
            the others.
    """
    if not statuses:
        return "No runs."
    return " ".join(filter(None, [_progress(statuses), best, compared]))


def afterwards(comparison: ComparisonView) -> str:
    """What the comparison says once no run goes on: what its arms changed and what stays open, without a demand."""
    groups: dict[str, list[str]] = {}
    for arm in comparison.arms:
        groups.setdefault(" ".join(filter(None, (arm.verdict, arm.direction))), []).append(_arm(arm))
    found = "; ".join(f"{verdict}: {names_text(arms)}" for verdict, arms in groups.items())
    way_out = " Forks with a larger budget, or more seeds, would tell." if "undecided" in groups else ""
    return f"Against {comparison.control}: {found}.{way_out}"


def _arm(arm: ArmVerdictView) -> str:
    if arm.verdict == "ceiling" and arm.difference is not None:
        return f"{arm.arm} ({arm.difference.median:+.2f})"
    if arm.verdict == "efficiency" and arm.multiplier is not None:
        return f"{arm.arm} ({compute_text(arm.multiplier.median)}x)"
    return arm.arm


def _progress(statuses: Sequence[str]) -> str:
    counts = Counter(statuses)
    over = sum(counts[status] for status in TERMINAL)
    failed = counts["failed"]
    if over == len(statuses):
        return f"{_all_runs(over)} over{f', {failed} failed' if failed else ''}."
    parts = [f"{count:,} {status}" for status, count in counts.items() if status not in TERMINAL]
    return f"{len(statuses):,} runs: {', '.join(parts + ([f'{over:,} over'] if over else []))}."


def _all_runs(count: int) -> str:
    return {1: "The run is", 2: "Both runs are"}.get(count, f"All {count:,} runs are")
