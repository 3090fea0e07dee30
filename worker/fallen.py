"""The alert of a run that fell below its own forecast: its words, and the evidence behind them."""

from __future__ import annotations

from typing import Any

from forecurve.science import Watch
from forecurve.science.watching.watch import ALERT_THRESHOLD, OTHERS, WARN_THRESHOLD
from forecurve.science.wording import apart_texts, beside_text, level_text

WAY_OUT = "Its training metrics since then may tell why; the checkpoint before is the way back."


def words(name: str, verdict: Watch) -> tuple[str, str]:
    """Title and text of the alert: what happened; and its figures, since when, and what can be done.

    Since when it is back, where it is, comes after that (`open_alert`).
    """
    (_, here), unit = _computes(verdict), verdict.unit
    actual = beside_text(verdict.actual, verdict.predicted)
    figures = f"{actual} at {here} {unit}, where {level_text(verdict.predicted)} was forecast"
    said = f"{figures}. {verdict.fall} {unit}." if verdict.fall is not None else f"{figures}; {_since(verdict)}."
    fell, what_to_do = _fell(verdict)
    return f"{name} {fell}", f"{said} {verdict.doubt or what_to_do}"


def _computes(verdict: Watch) -> list[str]:
    """Since when it is below, and the last evaluation's: told apart."""
    now = float(verdict.compute[-1])
    return apart_texts(now if verdict.since_compute is None else verdict.since_compute, now)


def _since(verdict: Watch) -> str:
    if verdict.since_compute is None:
        return "below it"
    since = f"{_computes(verdict)[0]} {verdict.unit}"
    return f"below it since {since}" if verdict.back_since is None else f"below it from {since} on"


def _fell(verdict: Watch) -> tuple[str, str]:
    """What it did, and what can be done about that."""
    if verdict.back_since is not None:
        return "was below its forecast", "Its training metrics of that time may tell why."
    if verdict.level == "ALERT":
        return "fell below its forecast", WAY_OUT
    return "may be falling below its forecast", "It may be chance, or pass: the next evaluations tell."


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
