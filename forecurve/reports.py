"""What must hold of a report. The service refuses what does not; the client asks first, so that it never sends such.

Faults are (field, value, message) with the way out in the message.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forecurve.limits import LEAST_COMPUTE, MAX_STEP, MOST_COMPUTE, is_compute

MAX_SAMPLES = 2**15 - 1
MAX_PROMPTS = 1_000_000
MAX_DETAILS = 100
MAX_NAME = 200
NAME_PATTERN = r"^[^\x00-\x1f\x7f]+$"

AGREEMENT = 1e-6
"""How far a stated reward may be from what the counts say: rounding, nothing more."""

NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How numbers that are not finite are written, since JSON has none."""

Fault = tuple[str, Any, str]

_NAME = re.compile(NAME_PATTERN)


def as_json_number(value: float) -> float | str:
    """The number, or its name when it is not finite."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def pass_rate(counts: Sequence[int], samples: int) -> float:
    """Mean over prompts of successes / samples."""
    return sum(counts) / (len(counts) * samples)


def name_fault(name: str) -> str | None:
    """Why a metric cannot have this name."""
    if 1 <= len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return None
    return f"a name must be 1 to {MAX_NAME} characters, none of them a control character"


def step_fault(step: int) -> str | None:
    """Why this is no optimiser step."""
    return None if 0 <= step <= MAX_STEP else f"must be 0 to {MAX_STEP}: the optimiser steps done"


def compute_fault(compute: float) -> str | None:
    """Why this is no compute."""
    if is_compute(compute):
        return None
    takes = f"a finite number, 0 or from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
    return f"must be {takes}: the compute spent so far, in the run's unit"


def order_fault(known: Sequence[tuple[int, float]], step: int, compute: float) -> str | None:
    """Why `compute` at `step` cannot be true beside what is known: less than at an earlier step, or more than at a
    later one.

    Args:
        known: (step, compute) of what was reported before, in order.
    """
    place = bisect_left(known, (step, compute))
    if place and known[place - 1][1] > compute:
        return _backwards(step, "less", known[place - 1], "earlier")
    if place < len(known) and known[place][1] < compute:
        return _backwards(step, "more", known[place], "later")
    return None


def _backwards(step: int, direction: str, other: tuple[int, float], when: str) -> str:
    return (
        f"compute goes backwards: {direction} at step {step} than the {other[1]:g} at the {when} step {other[0]}; "
        "report the attempt's total so far, and start a new attempt after a restart"
    )


def reward_faults(
    reward: float | None, counts: Sequence[int] | None, *, prompts: int | None, samples: int | None
) -> Iterator[Fault]:
    """What is wrong with an evaluation's pass rate, and with the counts that give it."""
    if reward is None:
        if counts is None:
            yield "reward", None, "give `reward`, or `counts` with `samples`"
    elif not math.isfinite(reward):
        yield "reward", reward, "must be a finite pass rate from 0 to 1; leave a failed evaluation out"
    elif not 0 <= reward <= 1:
        yield "reward", reward, "must be a pass rate from 0 to 1; scale other rewards, or send them as a metric point"
    if counts is not None:
        yield from _counts_faults(counts, reward, prompts, samples)


def _counts_faults(
    counts: Sequence[int], reward: float | None, prompts: int | None, samples: int | None
) -> Iterator[Fault]:
    if not counts:
        yield "counts", [], "is empty; give the successes of each prompt, or leave it out"
        return
    if samples is None:
        yield "samples", None, "is needed with `counts`: the generations per prompt"
        return
    if prompts is not None and prompts != len(counts):
        yield "counts", len(counts), f"has {len(counts)} entries for {prompts} prompts; one entry a prompt"
        return
    wrong = next((i for i, count in enumerate(counts) if not 0 <= count <= samples), None)
    if wrong is not None:
        yield f"counts.{wrong}", counts[wrong], f"must be 0 to `samples` ({samples}): the successes of one prompt"
        return
    says = pass_rate(counts, samples)
    if reward is not None and math.isfinite(reward) and abs(reward - says) > AGREEMENT:
        yield "reward", reward, f"`counts` say {says:.6f}; send one of the two, or make them agree"


def evaluation_faults(evaluation: Mapping[str, Any]) -> Iterator[Fault]:
    """What is wrong with an evaluation by itself, given in JSON types."""
    yield from _said("step", evaluation["step"], step_fault(evaluation["step"]))
    yield from _said("compute", evaluation["compute"], compute_fault(evaluation["compute"]))
    counts, prompts, samples = evaluation["counts"], evaluation["prompts"], evaluation["samples"]
    yield from _size("prompts", prompts, MAX_PROMPTS)
    yield from _size("samples", samples, MAX_SAMPLES)
    yield from reward_faults(evaluation["reward"], counts, prompts=prompts, samples=samples)
    yield from _details_faults(evaluation["details"])


def _size(field: str, value: int | None, most: int) -> Iterator[Fault]:
    if value is not None and not 1 <= value <= most:
        yield field, value, f"must be 1 to {most}"


def _details_faults(details: Mapping[str, Any]) -> Iterator[Fault]:
    if len(details) > MAX_DETAILS:
        yield "details", len(details), f"has more than {MAX_DETAILS} numbers; log the others as metric points"
    for name in details:
        yield from _said(f"details.{name}", name, name_fault(name))


def _said(field: str, value: Any, message: str | None) -> Iterator[Fault]:
    if message:
        yield field, value, message
