"""From what a training loop hands over to JSON: numbers, times, evaluations checked before they are sent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from forecurve.limits import EARLIEST, LATEST, LEAST_COMPUTE, MOST_COMPUTE, is_compute


def utc_now() -> str | None:
    """The time now as RFC 3339; None where the clock is not set: the service then takes the time of arrival."""
    now = datetime.now(UTC)
    return now.isoformat() if EARLIEST <= now < LATEST else None


def as_number(value: Any) -> float | None:
    """A float from a Python, NumPy or torch scalar; None for what is no number."""
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def as_json_number(value: float) -> float | str:
    """JSON has no NaN or infinity: those three travel as strings."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{"train": {"loss": 1}}` as `("train/loss", 1)`."""
    for name, value in metrics.items():
        path = f"{prefix}/{name}" if prefix else str(name)
        if isinstance(value, Mapping):
            yield from flatten(value, path)
        else:
            yield path, value


def evaluation_fault(evaluation: Mapping[str, Any], last_compute: float) -> str | None:
    """Why the service would refuse an evaluation, or None. One bad evaluation must not cost a whole batch."""
    compute, reward, counts = evaluation["compute"], evaluation.get("reward"), evaluation.get("counts")
    if not is_compute(compute):
        return f"compute is {compute}; it must be finite, 0 or from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
    if compute < last_compute:
        return f"compute is {compute} but {last_compute} was reported before; it never goes backwards within an attempt"
    if reward is None and counts is None:
        return "has neither reward nor counts; give one of them"
    if reward is not None and not 0 <= reward <= 1:
        return f"reward is {reward}; a pass rate is between 0 and 1"
    if counts is not None:
        return counts_fault(counts, evaluation.get("samples"))
    return None


def counts_fault(counts: Sequence[int], samples: int | None) -> str | None:
    """Why per-prompt success counts do not hold, or None."""
    if samples is None:
        return "counts need `samples`, the number of generations per prompt"
    wrong = [count for count in counts if not 0 <= count <= samples]
    if wrong:
        return f"a count is {wrong[0]}; each must be between 0 and samples ({samples})"
    return None if counts else "counts is empty"
