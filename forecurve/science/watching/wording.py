"""What a watch says: how the run stands to its frozen forecast, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..wording import beside_text, compute_text, level_text

if TYPE_CHECKING:
    from .watch import Watch


def watch_sentence(watch: Watch) -> str:
    """The run, its last evaluation beside what was forecast of it, and since when it has been below."""
    said = _stands(watch)
    return said if watch.doubt is None else f"{said} {watch.doubt}"


def _stands(watch: Watch) -> str:
    predicted, now = watch.predicted, float(watch.compute[-1])
    actual, below = beside_text(watch.actual, predicted), watch.actual < predicted.lower
    here = f"{actual} at {compute_text(now)} {watch.unit}, forecast {level_text(predicted)}"
    if watch.fall is not None and watch.level is None:
        left = "has hardly left" if below else "has not left"
        return f"{watch.name} {left} its forecast, but has fallen by its own fit: {here}. {watch.fall}."
    if watch.fall is not None:
        return f"{watch.name} may be falling below its own forecast: {here}. {watch.fall}."
    if watch.level is None or watch.since_compute is None:
        return f"{watch.name} {_without_a_level(watch)}: {here}."
    since = f"{compute_text(watch.since_compute)} {watch.unit}"
    if watch.back_since is not None:
        back = f"{compute_text(watch.back_since)} {watch.unit}"
        return f"{watch.name} was below its own forecast from {since} on and is back within it since {back}: {here}."
    verb = "fell below" if watch.level == "ALERT" else "may be falling below"
    return f"{watch.name} {verb} its own forecast: {here}, since {since}."


def _without_a_level(watch: Watch) -> str:
    """Where the last evaluation is; above is as good as within, and no word of an alarm."""
    if watch.actual < watch.predicted.lower:
        return "is below its forecast, which may be chance"
    return "is above its forecast" if watch.actual > watch.predicted.upper else "follows its forecast"
