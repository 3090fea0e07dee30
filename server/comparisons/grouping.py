"""Any runs as arms of a comparison: which are seeds of one arm, what it is called, which say nothing of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.forecasts.past_runs import arms_of, begins_alike
from server.metrics.curve import Point
from server.runs.models import Run
from server.sweeps.models import Sweep

Curves = Mapping[str, Sequence[Point]]


def arm_names(session: Session, runs: Sequence[Run]) -> dict[str, str]:
    """Run to the name of its arm. Runs whose recipes differ in name, seed and budget alone are seeds of one arm.

    The name is that of the arm in its sweep, or the run's; where two arms would have the same one, with more about it.
    """
    recipes = arms_of(session, [run.id for run in runs])
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(recipes[run.id] or run.id, []).append(run)
    ways = [lambda run: run.arm or run.name, *_ways(session, runs)]
    names = _told_apart([group[0] for group in groups.values()], ways)
    return {run.id: name for name, group in zip(names, groups.values(), strict=True) for run in group}


def run_names(session: Session, runs: Sequence[Run]) -> dict[str, str]:
    """Run to a name that no other of them has."""
    names = _told_apart(runs, _ways(session, runs))
    return {run.id: name for run, name in zip(runs, names, strict=True)}


def same_curves(runs: Sequence[Run], curves: Curves, control: Run) -> dict[str, str]:
    """Run to why it is left out: its curve is in part that of another, as a fork's is that of its parent.

    Of such runs the control is compared, else the one that went furthest.
    """
    furthest = sorted(runs, key=lambda run: (run.id != control.id, -len(curves[run.id])))
    kept: list[Run] = []
    left_out: dict[str, str] = {}
    for run in furthest:
        twin = next((one for one in kept if begins_alike(curves[run.id], curves[one.id])), None)
        if twin is None:
            kept.append(run)
        else:
            left_out[run.id] = f"begins with the evaluations of `{twin.name}`, which is compared"
    return left_out


def _told_apart(runs: Sequence[Run], ways: Sequence[Callable[[Run], str]]) -> list[str]:
    """The first way to name each that no other shares."""
    names = [ways[0](run) for run in runs]
    for way in ways[1:]:
        shared = {name for name, count in Counter(names).items() if count > 1}
        names = [way(run) if name in shared else name for run, name in zip(runs, names, strict=True)]
    return names


def _ways(session: Session, runs: Sequence[Run]) -> list[Callable[[Run], str]]:
    """To name a run, the shortest first."""
    sweeps = _sweep_names(session, runs)
    return [
        lambda run: run.name,
        lambda run: f"{run.name} ({sweeps[run.sweep_id]})" if run.sweep_id else run.name,
        lambda run: f"{run.name} ({run.id[-4:]})",
        lambda run: run.id,
    ]


def _sweep_names(session: Session, runs: Sequence[Run]) -> dict[str, str]:
    ids = {run.sweep_id for run in runs if run.sweep_id}
    return dict(session.execute(select(Sweep.id, Sweep.name).where(Sweep.id.in_(ids))).all())
