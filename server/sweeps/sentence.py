"""What there is to say of a sweep: how far it is, and what its arms changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import Protocol

from forecurve.science.attribution.wording import left_out_of_control, no_control, shift_text
from forecurve.science.wording import compute_text, names_text
from server.runs.sentence import brief
from server.runs.states import TERMINAL, Status

from .schemas import ArmVerdictView, ComparisonView

_WAITING = Status.QUEUED, Status.LAUNCHING

_LONGEST_REASON = 160  # characters; the run's own page has it whole


class Standing(Protocol):
    """How far a run is, and why its status is what it is, where there is a reason."""

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str | None: ...


def sweep_sentence(runs: Sequence[Standing], best: str | None = None, compared: str | None = None) -> str:
    """How far the sweep is, which arm is best, then what its comparison with the control says, or why there is none.

    Args:
        runs: of the sweep.
        best: of `ranking_sentence`.
        compared: of `forecurve.compare`: which arms moved the ceiling, which only the efficiency, what would decide
            the others.
    """
    if not runs:
        return "No runs."
    return " ".join(filter(None, [_progress(runs), best, compared]))


def afterwards(comparison: ComparisonView) -> str:
    """What the comparison says once no run goes on: what its arms changed and what stays open, without a demand."""
    control_out = [(one.series, one.misfit) for one in comparison.control_left_out]
    if not comparison.control_seeds:
        return no_control(comparison.control, control_out)
    groups: dict[str, list[str]] = {}
    for arm in comparison.arms:
        groups.setdefault(" ".join(filter(None, (arm.verdict, arm.direction))), []).append(_arm(arm))
    found = "; ".join(f"{verdict}: {names_text(arms)}" for verdict, arms in groups.items())
    return f"Against {comparison.control}: {found}.{left_out_of_control(control_out)}{_way_out(comparison)}"


def _way_out(comparison: ComparisonView) -> str:
    """What would decide the rest, as far as anything would."""
    undecided = [arm for arm in comparison.arms if arm.verdict == "undecided"]
    if not undecided:
        return ""
    if not any(arm.seeds for arm in undecided):
        return " More seeds of them would tell."
    return " Forks with a larger budget, or more seeds, would tell."


def _arm(arm: ArmVerdictView) -> str:
    if not arm.seeds and arm.left_out:
        return f"{arm.arm} ({names_text(sorted({one.misfit for one in arm.left_out}))})"
    if arm.verdict == "ceiling" and arm.difference is not None:
        found = arm.difference
        return f"{arm.arm} ({shift_text(found.median, found.lower, found.upper)})"
    if arm.verdict == "efficiency" and arm.multiplier is not None:
        return f"{arm.arm} ({compute_text(arm.multiplier.median)}x)"
    return arm.arm


def _progress(runs: Sequence[Standing]) -> str:
    counts = Counter(run.status for run in runs)
    over = sum(counts[status] for status in TERMINAL)
    failed = _because("failed", [run for run in runs if run.status == Status.FAILED])
    if over == len(runs):
        return f"{_all_runs(over)} over{f', {failed}' if failed else ''}."
    parts = [f"{count:,} {status}" for status, count in counts.items() if status not in TERMINAL]
    parts += [f"{over:,} over"] if over else []
    held = [run for run in runs if run.status in _WAITING and run.reason]
    held_up = _because("waits" if len(held) == 1 else "wait", held)
    return " ".join(f"{said}." for said in (f"{len(runs):,} runs: {', '.join(parts)}", held_up, failed) if said)


def _because(what: str, runs: Sequence[Standing]) -> str | None:
    """How many runs this is true of, and the reason that most of them have."""
    if not runs:
        return None
    said = f"{len(runs):,} {what}"
    reasons = Counter(brief(run.reason) for run in runs if run.reason).most_common(1)
    if not reasons:
        return said
    [(reason, count)] = reasons
    some = "" if count == len(runs) else f", {count:,} of them"
    return f"{said}{some}: {shorten(reason, _LONGEST_REASON, placeholder=' …')}"


def _all_runs(count: int) -> str:
    return {1: "The run is", 2: "Both runs are"}.get(count, f"All {count:,} runs are")
