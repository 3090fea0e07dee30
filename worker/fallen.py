"""The alert of a run that fell below its own forecast: its words, and the evidence behind them."""

from __future__ import annotations

from typing import Any

from forecurve.science import Watch
from forecurve.science.watching.watch import ALERT_THRESHOLD, OTHERS, WARN_THRESHOLD
from forecurve.science.wording import compute_text, level_text

WAY_OUT = "Its training metrics since then may tell why; the checkpoint before is the way back."


def words(name: str, verdict: Watch) -> tuple[str, str]:
    """Title and text of the alert: what happened; and its figures, since when, and what can be done."""
    fell = "fell below its forecast" if verdict.level == "ALERT" else "may be falling below its forecast"
    here, unit = compute_text(float(verdict.compute[-1])), verdict.unit
    figures = f"{verdict.actual:.2f} at {here} {unit}, where {level_text(verdict.predicted)} was forecast"
    since = f"since {compute_text(verdict.since_compute)} {unit}" if verdict.since_compute is not None else ""
    said = f"{figures}. {verdict.fall} {unit}." if verdict.fall is not None else f"{figures}; below it {since}."
    what_to_do = WAY_OUT if verdict.level == "ALERT" else "It may be chance, or pass: the next evaluations tell."
    return f"{name} {fell}", f"{said} {verdict.doubt or what_to_do}"


def evidence(verdict: Watch, steps: dict[float, int]) -> dict[str, Any]:
    """What a person can check: the evidence against the forecast, and each evaluation beside what was expected.

    `e_value` passes `thresholds.WARN` for a warning, unless `fall` says what the fit found; for an alert
    `e_value_robust` passes `thresholds.ALERT` and `e_value_others` `thresholds.OTHERS`; `z` are the whitened
    innovations. `expected` is the 90 % interval of the last evaluation, `points` has those of all.

    Args:
        verdict: of the watch.
        steps: the training step at each compute; evaluations that stand for several have none.
    """
    columns = (verdict.compute, verdict.reward, verdict.expected, verdict.lower, verdict.upper, verdict.z)
    names = ("compute", "reward", "median", "lower", "upper", "z")
    return {
        "e_value": verdict.e_value,
        "e_value_robust": verdict.e_value_robust,
        "e_value_others": verdict.e_value_others,
        "thresholds": {"WARN": WARN_THRESHOLD, "ALERT": ALERT_THRESHOLD, "OTHERS": OTHERS},
        "fall": verdict.fall,
        "shortfall": verdict.shortfall,
        "actual": verdict.actual,
        "expected": verdict.predicted.to_dict(),
        "points": [
            {"step": steps.get(float(row[0])), **dict(zip(names, (float(value) for value in row), strict=True))}
            for row in zip(*columns, strict=True)
        ],
    }
