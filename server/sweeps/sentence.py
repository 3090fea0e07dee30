"""What there is to say of a sweep in one or two sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from forecurve.science.fitting import IDENTIFIED
from server.runs.schemas import RunView
from server.runs.states import TERMINAL


def sweep_sentence(runs: Sequence[RunView]) -> str:
    """How far the sweep is, and which arms' ceilings lie wholly below or above the control's.

    Single runs are compared by their own 90 % intervals, seed by seed: no spread between seeds and no correction for
    the number of arms. It points to where to look; attribution decides.
    """
    if not runs:
        return "No runs."
    return " ".join([_progress(runs), *_apart(runs)])


def _progress(runs: Sequence[RunView]) -> str:
    over = [run for run in runs if run.status in TERMINAL]
    failed = sum(run.status == "failed" for run in over)
    if len(over) == len(runs):
        return f"All {len(runs)} runs are over{f', {failed} failed' if failed else ''}."
    counts = Counter(run.status for run in runs if run.status not in TERMINAL)
    parts = [f"{count} {status}" for status, count in counts.items()] + ([f"{len(over)} over"] if over else [])
    return f"{len(runs)} runs: {', '.join(parts)}."


def _apart(runs: Sequence[RunView]) -> list[str]:
    controls = {run.seed: run for run in runs if run.is_control and _comparable(run)}
    below, above = [], []
    for run in runs:
        control = controls.get(run.seed)
        if run.is_control or control is None or not _comparable(run):
            continue
        assert run.ceiling is not None
        assert control.ceiling is not None
        if run.ceiling.upper < control.ceiling.lower:
            below.append(run)
        if run.ceiling.lower > control.ceiling.upper:
            above.append(run)
    return [
        f"Ceiling {side} the control's: {_named(arms)}." for side, arms in (("below", below), ("above", above)) if arms
    ]


def _comparable(run: RunView) -> bool:
    return run.ceiling is not None and run.misfit is None and (run.identified or 0) >= IDENTIFIED


def _named(runs: Sequence[RunView]) -> str:
    return ", ".join(
        f"`{run.name}` ({run.ceiling.median:.2f}, 90 %: {run.ceiling.lower:.2f} to {run.ceiling.upper:.2f})"
        for run in runs
        if run.ceiling is not None
    )
