"""From what a training loop hands over to JSON: numbers, times, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from forecurve.limits import EARLIEST, LATEST


def utc_now() -> str | None:
    """The time now as RFC 3339; None where the clock is not set: the service then takes the time of arrival."""
    now = datetime.now(UTC)
    return now.isoformat() if EARLIEST <= now < LATEST else None


def plain(text: Any) -> str:
    """As text that can be sent and stored: lone surrogates, as names of files have them, and NULs become `?`."""
    return str(text).encode("utf-8", "replace").decode().replace("\0", "?")


def as_number(value: Any) -> float | None:
    """A float from a Python, NumPy or torch scalar; None for what is no number."""
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        return float(value.detach() if hasattr(value, "detach") else value)  # torch warns of one that has a graph
    except (TypeError, ValueError, OverflowError):
        return None


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{"train": {"loss": 1}}` as `("train/loss", 1)`."""
    for name, value in metrics.items():
        path = f"{prefix}/{plain(name)}" if prefix else plain(name)
        if isinstance(value, Mapping):
            yield from flatten(value, path)
        else:
            yield path, value


def plain_evaluation(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluation in JSON types, from NumPy, torch or Python numbers."""
    counts, reward, samples = evaluation["counts"], as_number(evaluation["reward"]), evaluation["samples"]
    prompts = evaluation["prompts"]
    plain_counts = None if counts is None else [int(count) for count in counts]
    if plain_counts is not None and prompts is None:
        prompts = len(plain_counts)
    details = {
        plain(name): number for name, value in evaluation["details"].items() if (number := as_number(value)) is not None
    }
    return {
        "step": int(evaluation["step"]),
        "compute": float(evaluation["compute"]),
        "reward": reward,
        "prompts": None if prompts is None else int(prompts),
        "samples": None if samples is None else int(samples),
        "counts": plain_counts,
        "details": details,
        "time": utc_now(),
    }
