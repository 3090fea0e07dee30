"""A curve that is over as the service takes it whole: the body of `POST /v1/runs:import`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecurve.limits import MAX_STEP

if TYPE_CHECKING:
    from forecurve.science import Curve

STEPS = "steps"


def import_body(curve: Curve, task: str, *, name: str | None = None, arm: str | None = None) -> dict[str, Any]:
    """The run of a curve; `Api.import_run` sends it.

    Args:
        curve: its evaluations; rewards of another range than 0 to 1 become shares of it.
        task: what was trained and evaluated; runs of one task tell of one another.
        name: what the run is called; the curve's name by default.
        arm: what it has in common with its other seeds; the curve's own by default, where it has a seed.
    """
    told: dict[str, Any] = {"name": name or curve.name, "task": task, "compute_unit": curve.unit}
    if curve.seed is not None:
        told |= {"arm": arm or curve.arm, "seed": curve.seed}
    return told | {"evaluations": _evaluations(curve)}


def _evaluations(curve: Curve) -> list[dict[str, Any]]:
    low, high = curve.bounds
    shares = (curve.reward - low) / (high - low)
    sizes = [_whole(curve.prompts, curve.points), _whole(curve.samples, curve.points)]
    rows = zip(_steps(curve), curve.compute.tolist(), shares.tolist(), *sizes, strict=True)
    return [
        {"step": step, "compute": compute, "reward": reward, "prompts": prompts, "samples": samples}
        for step, compute, reward, prompts, samples in rows
    ]


def _steps(curve: Curve) -> list[int]:
    """Where compute is counted in steps it says them; else evaluations are numbered, from 0 for the start."""
    if curve.unit == STEPS and all(float(spent).is_integer() and spent <= MAX_STEP for spent in curve.compute):
        return [int(spent) for spent in curve.compute]
    first = 0 if curve.compute[0] == 0 else 1
    return list(range(first, first + curve.points))


def _whole(column: Any, points: int) -> list[int | None]:
    """How many prompts or samples an evaluation had; what is no whole number, as an average is none, is not known."""
    if column is None:
        return [None] * points
    return [int(size) if float(size).is_integer() else None for size in column]
