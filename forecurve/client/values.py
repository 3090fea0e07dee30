"""From what a training loop hands over to JSON: numbers, times, names."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from forecurve.limits import EARLIEST, LATEST


class Unreadable(ValueError):
    """What was handed over for a field is nothing that the field can have."""

    def __init__(self, field: str, value: Any, takes: str):
        super().__init__(f"{field} is {reprlib.repr(value)}; it must be {takes}")
        self.field = field


def utc_now() -> str | None:
    """The time now as RFC 3339; None where the clock is not set: the service then takes the time of arrival."""
    now = datetime.now(UTC)
    return now.isoformat() if EARLIEST <= now < LATEST else None


def plain(text: Any) -> str:
    """As text that can be sent and stored: lone surrogates, as names of files have them, and NULs become `?`."""
    return str(text).encode("utf-8", "replace").decode().replace("\0", "?")


def reports(number: int, are: str = "are") -> str:
    """Counted with its verb: `1 report is`, `3 reports are`, `1 report was`, `3 reports were`."""
    one = {"are": "is", "were": "was"}[are]
    return f"{number} report {one}" if number == 1 else f"{number} reports {are}"


def as_number(value: Any) -> float | None:
    """A float from a Python, NumPy or torch scalar; None for what is no number."""
    if value is None or isinstance(value, str | bytes):
        return None
    try:
        return float(value.detach() if hasattr(value, "detach") else value)  # torch warns of one that has a graph
    except Exception:  # noqa: BLE001 - what is no number says so in its own way: a meta tensor with a RuntimeError
        return None


def flatten(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`{"train": {"loss": 1}}` as `("train/loss", 1)`."""
    for name, value in metrics.items():
        path = f"{prefix}/{plain(name)}" if prefix else plain(name)
        if isinstance(value, Mapping):
            yield from flatten(value, path)
        else:
            yield path, value


def whole(field: str, value: Any) -> int:
    """A whole number; Unreadable where there is none."""
    try:
        count = int(value)
    except Exception:  # noqa: BLE001 - as in `as_number`
        raise Unreadable(field, value, "a whole number") from None
    if (as_number(value) or 0.0) % 1:  # cut, steps 0.5 and 0 would be one
        raise Unreadable(field, value, "a whole number")
    return count


def number(field: str, value: Any) -> float:
    """A number, NaN and infinities among them; Unreadable where there is none."""
    try:
        return float(value)
    except Exception:  # noqa: BLE001 - as in `as_number`
        raise Unreadable(field, value, "a number") from None


def mapping(field: str, value: Any) -> Mapping[str, Any]:
    """Names and what they stand for; Unreadable where there are none."""
    if not isinstance(value, Mapping):
        raise Unreadable(field, value, "a mapping of names to numbers")
    return value


def plain_evaluation(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluation in JSON types, from NumPy, torch or Python numbers; Unreadable names the field at fault."""
    reward, counts, prompts, samples = (evaluation[field] for field in ("reward", "counts", "prompts", "samples"))
    plain_counts = None if counts is None else _counts(counts)
    if plain_counts is not None and prompts is None:
        prompts = len(plain_counts)
    rate = as_number(reward)
    if rate is None and reward is not None:
        raise Unreadable("reward", reward, "a number from 0 to 1")
    given = mapping("details", evaluation["details"]).items()
    return {
        "step": whole("step", evaluation["step"]),
        "compute": number("compute", evaluation["compute"]),
        "reward": rate,
        "prompts": None if prompts is None else whole("prompts", prompts),
        "samples": None if samples is None else whole("samples", samples),
        "counts": plain_counts,
        "details": {plain(name): told for name, value in given if (told := as_number(value)) is not None},
        "time": utc_now(),
    }


def _counts(counts: Any) -> list[int]:
    if not isinstance(counts, Iterable) or isinstance(counts, str | bytes):
        raise Unreadable("counts", counts, "a list of whole numbers, one a prompt")
    return [whole(f"counts.{place}", count) for place, count in enumerate(counts)]
