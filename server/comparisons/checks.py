"""Which runs can be held against one another: those that count compute in one unit and are judged by one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from server.errors import Invalid
from server.runs.models import Run

from .recipes import Recipes, leaves


def misfits(runs: Sequence[Run], control: Run, recipes: Recipes) -> dict[str, str]:
    """Run to why it cannot be compared with the control.

    Where nothing tells what the control is judged by, the others are held against the first of them that says it: they
    are ranked beside one another too. A recipe has its task in full, a run without one may name it; whether a task that
    is named is that of a recipe nothing tells.
    """
    first = [control, *runs]
    by_recipe = next((run for run in first if run.id in recipes), control)
    by_name = next((run for run in first if run.id not in recipes and run.task is not None), control)
    told = {
        run.id: _unlike(run, control, by_recipe if run.id in recipes else by_name, recipes)
        for run in runs
        if run.id != control.id
    }
    return {id_: why for id_, why in told.items() if why is not None}


def untold(runs: Sequence[Run], control: Run, recipes: Recipes) -> list[str]:
    """Runs of which nothing tells whether they are judged as the control is."""
    return [run.id for run in runs if run.id != control.id and not _is_told(run, control, recipes)]


def _is_told(run: Run, control: Run, recipes: Recipes) -> bool:
    if run.sweep_id is not None and run.sweep_id == control.sweep_id:
        return True
    if run.id in recipes or control.id in recipes:
        return run.id in recipes and control.id in recipes
    return run.task is not None and control.task is not None


def refuse(runs: Sequence[Run], why: Mapping[str, str]) -> None:
    """Refuse the comparison with a reason for each run that does not belong."""
    faults = [
        {"field": "run_id", "value": run.id, "message": f"`{run.name}` {why[run.id]}"} for run in runs if run.id in why
    ]
    if faults:
        said = "; ".join(str(fault["message"]) for fault in faults)
        raise Invalid(f"{said}. Compare those apart.", errors=faults)


def _unlike(run: Run, control: Run, judge: Run, recipes: Recipes) -> str | None:
    if run.compute_unit != control.compute_unit:
        return f"counts compute in {run.compute_unit}, the control `{control.name}` in {control.compute_unit}"
    if run.sweep_id is not None and run.sweep_id == judge.sweep_id:
        return None  # a sweep may vary its task, and compares its arms all the same
    field = _other_task(recipes.get(run.id), recipes.get(judge.id))
    whose = "the control " if judge is control else ""
    if field is not None:
        return f"is judged by another task than {whose}`{judge.name}`: `{field}` differs"
    if run.id in recipes or judge.id in recipes or None in (run.task, judge.task) or run.task == judge.task:
        return None
    return f"is of task `{run.task}`, {whose}`{judge.name}` of `{judge.task}`"


def _other_task(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> str | None:
    """The first field in which the tasks differ; None where they are the same, or one is not known."""
    if one is None or other is None:
        return None
    (here, there) = (leaves({"task": body.get("task", {})}) for body in (one, other))
    return next((field for field in {**here, **there} if here.get(field) != there.get(field)), None)
