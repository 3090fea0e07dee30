"""What must hold of a batch before any of it is stored. Every fault is found, and names field, value and way out."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute
from server.errors import Invalid

from .schemas import Batch, EvaluationIn, Point
from .variance import pass_rate

AGREEMENT = 1e-6
"""How far a stated reward may be from what the counts say: rounding, nothing more."""

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
        yield from _reward(at, evaluation)
        if evaluation.counts is not None:
            yield from _counts(at, evaluation, evaluation.counts)


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
        place = bisect_left(known, (step, compute))
        before = known[place - 1] if place else None
        after = known[place] if place < len(known) else None
        if before is not None and before[1] > compute:
            yield _fault(f"{name}.{index}.compute", compute, _says(step, before, "less", "earlier"))
        elif after is not None and after[1] < compute:
            yield _fault(f"{name}.{index}.compute", compute, _says(step, after, "more", "later"))
        else:
            insort(known, (step, compute))


def _says(step: int, other: tuple[int, float], direction: str, when: str) -> str:
    return (
        f"compute goes backwards: {direction} at step {step} than the {other[1]:g} at the {when} step {other[0]}; "
        "report the attempt's total so far, and start a new attempt after a restart"
    )


def _compute(field: str, compute: float) -> Iterator[Fault]:
    if not is_compute(compute):
        takes = f"a finite number, 0 or from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}"
        yield _fault(field, compute, f"must be {takes}: the compute spent so far, in the run's unit")


def _reward(at: str, evaluation: EvaluationIn) -> Iterator[Fault]:
    reward = evaluation.reward
    if reward is None:
        if evaluation.counts is None:
            yield _fault(f"{at}.reward", None, "give `reward`, or `counts` with `samples`")
    elif not math.isfinite(reward):
        yield _fault(f"{at}.reward", reward, "must be a finite pass rate from 0 to 1; leave a failed evaluation out")
    elif not 0 <= reward <= 1:
        message = "must be a pass rate from 0 to 1; scale other rewards, or send them as a metric point"
        yield _fault(f"{at}.reward", reward, message)


def _counts(at: str, evaluation: EvaluationIn, counts: list[int]) -> Iterator[Fault]:
    if not counts:
        yield _fault(f"{at}.counts", counts, "is empty; give the successes of each prompt, or leave it out")
        return
    if evaluation.samples is None:
        yield _fault(f"{at}.samples", None, "is needed with `counts`: the generations per prompt")
        return
    if evaluation.prompts is not None and evaluation.prompts != len(counts):
        message = f"has {len(counts)} entries for {evaluation.prompts} prompts; one entry a prompt"
        yield _fault(f"{at}.counts", len(counts), message)
        return
    wrong = next((i for i, count in enumerate(counts) if not 0 <= count <= evaluation.samples), None)
    if wrong is not None:
        message = f"must be 0 to `samples` ({evaluation.samples}): the successes of one prompt"
        yield _fault(f"{at}.counts.{wrong}", counts[wrong], message)
        return
    says, said = pass_rate(counts, evaluation.samples), evaluation.reward
    if said is not None and math.isfinite(said) and abs(said - says) > AGREEMENT:
        yield _fault(f"{at}.reward", said, f"`counts` say {says:.6f}; send one of the two, or make them agree")


def _fault(field: str, value: Any, message: str) -> Fault:
    return {"field": field, "value": value, "message": message}
