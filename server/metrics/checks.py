"""What must hold of a batch before any of it is stored. Every fault is found, and names field, value and way out."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from forecurve.reports import compute_fault, order_fault, reward_faults
from server.errors import Invalid

from .schemas import Batch, EvaluationIn, Point

MOST_SHOWN = 20

Fault = dict[str, Any]


def check_batch(batch: Batch, taken: Mapping[int, float]) -> None:
    """Raise Invalid with every fault of the batch.

    Args:
        taken: step to compute of the evaluations that this attempt has reported before.
    """
    faults = [*_points(batch.points), *_evaluations(batch.evaluations), *_order(batch, taken)]
    if not faults:
        return
    shown = faults[:MOST_SHOWN]
    more = f" (and {len(faults) - MOST_SHOWN} more)" if len(faults) > MOST_SHOWN else ""
    raise Invalid("; ".join(f"{f['field']}: {f['message']}" for f in shown) + more, errors=shown)


def _points(points: Sequence[Point]) -> Iterator[Fault]:
    """Of the batch alone: points are many and only drawn, so that earlier batches are not read to compare them."""
    seen: set[tuple[str, int]] = set()
    for index, point in enumerate(points):
        at = f"points.{index}"
        if point.compute is not None:
            yield from _compute(f"{at}.compute", point.compute)
        if (point.metric, point.step) in seen:
            yield _fault(
                f"{at}.step", point.step, f"`{point.metric}` stands twice at this step; send its last value only"
            )
        seen.add((point.metric, point.step))
    yield from _backwards("points", ((i, p.step, p.compute) for i, p in enumerate(points) if p.compute is not None))


def _evaluations(evaluations: Sequence[EvaluationIn]) -> Iterator[Fault]:
    for index, evaluation in enumerate(evaluations):
        at = f"evaluations.{index}"
        yield from _compute(f"{at}.compute", evaluation.compute)
        told = reward_faults(
            evaluation.reward, evaluation.counts, prompts=evaluation.prompts, samples=evaluation.samples
        )
        yield from (_fault(f"{at}.{field}", value, message) for field, value, message in told)


def _order(batch: Batch, taken: Mapping[int, float]) -> Iterator[Fault]:
    """Steps are new, and compute does not go backwards: within the batch, and against what was reported before."""
    seen: set[int] = set()
    for index, evaluation in enumerate(batch.evaluations):
        if evaluation.step in seen or evaluation.step in taken:
            where = "twice in this batch" if evaluation.step in seen else "already, in an earlier batch"
            message = f"step {evaluation.step} was evaluated {where}; one evaluation a step and attempt"
            yield _fault(f"evaluations.{index}.step", evaluation.step, message)
        seen.add(evaluation.step)
    ours = ((index, e.step, e.compute) for index, e in enumerate(batch.evaluations))
    yield from _backwards("evaluations", ours, taken)


def _backwards(
    name: str, series: Iterable[tuple[int, int, float]], taken: Mapping[int, float] | None = None
) -> Iterator[Fault]:
    """Faults of (index, step, compute) whose compute is less than at an earlier step, or more than at a later one."""
    known = sorted((taken or {}).items())
    for index, step, compute in sorted(series, key=lambda item: (item[1], item[2])):
        if not math.isfinite(compute):
            continue  # said already
        if message := order_fault(known, step, compute):
            yield _fault(f"{name}.{index}.compute", compute, message)
        else:
            insort(known, (step, compute))


def _compute(field: str, compute: float) -> Iterator[Fault]:
    if message := compute_fault(compute):
        yield _fault(field, compute, message)


def _fault(field: str, value: Any, message: str) -> Fault:
    return {"field": field, "value": value, "message": message}
