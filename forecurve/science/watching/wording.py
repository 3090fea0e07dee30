"""What a watch says: how the run stands to its frozen forecast, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wording import apart_texts, beside_text, compute_text, level_text

if TYPE_CHECKING:
    from .watch import Watch


def watch_sentence(watch: Watch) -> str:
    """The run, its last evaluation beside what was forecast of it, and since when it has been below."""
    said = _stands(watch)
    return said if watch.doubt is None else f"{said} {watch.doubt}"


def _stands(watch: Watch) -> str:
    unit, below = watch.unit, watch.actual < watch.predicted.lower
    if watch.fall is not None and watch.level is None:
        left = "has hardly left" if below else "has not left"
        return f"{watch.name} {left} its forecast, but has fallen by its own fit: {_here(watch)}. {watch.fall} {unit}."
    if watch.fall is not None:
        return f"{watch.name} may be falling below its own forecast: {_here(watch)}. {watch.fall} {unit}."
    if watch.level is None or watch.since_compute is None:
        return f"{watch.name} {_without_a_level(watch)}: {_here(watch)}."
    if watch.back_since is not None:
        since, back, now = apart_texts(watch.since_compute, watch.back_since, _now(watch))
        was = f"was below its own forecast from {since} {unit} on {_back(watch, back)}"
        return f"{watch.name} {was}: {_here(watch, now)}."
    since, now = apart_texts(watch.since_compute, _now(watch))
    verb = "fell below" if watch.level == "ALERT" else "may be falling below"
    together = "" if below else ", though by itself this evaluation is not below it"
    return f"{watch.name} {verb} its own forecast: {_here(watch, now)}, since {since} {unit}{together}."


def _now(watch: Watch) -> float:
    return float(watch.compute[-1])


def _here(watch: Watch, now: str | None = None) -> str:
    """The last evaluation beside what was forecast of it."""
    actual = beside_text(watch.actual, watch.predicted)
    return f"{actual} at {now or compute_text(_now(watch))} {watch.unit}, forecast {level_text(watch.predicted)}"


def _back(watch: Watch, since: str) -> str:
    """Since when, and where the last evaluation is, which may be a single one off the interval."""
    if watch.is_above:
        return f"and is back since {since} {watch.unit}, now above it"
    last = ", but for its last evaluation" if watch.actual < watch.predicted.lower else ""
    return f"and is back within it since {since} {watch.unit}{last}"


def _without_a_level(watch: Watch) -> str:
    """Where the last evaluation is; above is as good as within, and no word of an alarm. What has the same digits as
    the end of the interval is just off it."""
    predicted, actual = watch.predicted, watch.actual
    end = predicted.lower if actual < predicted.lower else predicted.upper
    just = "just " if beside_text(actual, predicted) == beside_text(end, predicted) else ""
    if actual < predicted.lower:
        return f"is {just}below its forecast, which may be chance"
    return f"is {just}above its forecast" if watch.is_above else "follows its forecast"
