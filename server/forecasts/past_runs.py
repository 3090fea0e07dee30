"""Runs that tell of a further one: which are comparable, and how they went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, and_, case, cast, exists, func, literal_column, select, text, union
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.orm import Session

from forecurve.science.fitting.outcome import FINISHED_AT
from forecurve.science.past.telling import is_finished, least_to_tell
from server.metrics.curve import INHERITED, PASS_RATES, Point, validation_curve, validation_curves
from server.metrics.models import Evaluation, MetricPoint
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.runs.states import TERMINAL, Status

from .remembered import Remembered

OVER = (Status.SUCCEEDED, Status.STOPPED)
"""Runs that others learn from, unless archived; one that failed ended for reasons of its own."""

_MOST = 60
_NO_PART_OF_AN_ARM = ("name", "seed", "budget")

RUNS_KEPT = 256
"""Past runs in the memory of a process, some 30 kB each with a hundred evaluations."""


class Version(NamedTuple):
    """A run's row as one transaction left it. Whatever changes a curve, or adds a forecast, writes the row too."""

    run_id: str
    row: str


@dataclass(frozen=True)
class PastRun:
    """A run that others learn from, and its curve.

    Attributes:
        budget: infinite where it has none.
        over: it goes no further.
        points: its curve, of a live run not to the last evaluation: see `in_stages`.
        arm: what it has in common with its other seeds: its recipe but for name, seed and budget, or without a recipe
            the task and the arm that it named; None where there is neither, or no seed.
        imported: it was over before it came here, so nothing was forecast of it.
        bounds: what its rewards lie in.
        version: what it was read from. Another version with the same curve is the same past run.
    """

    id: str
    arm: str | None
    seed: int | None
    budget: float
    points: tuple[Point, ...]
    imported: bool
    over: bool
    version: Version = field(compare=False)
    bounds: tuple[float, float] = PASS_RATES

    def __hash__(self) -> int:
        """A live run is another one with every evaluation, and must not be looked for among all that it was."""
        return hash((self.id, len(self.points)))

    def tells_the_end(self, budget: float | None) -> bool:
        """Whether it ended about where a run with this budget will, or beyond."""
        return self.over and is_finished(self.points[-1].compute, budget or 0.0)


KEPT: Remembered[Version, PastRun] = Remembered(RUNS_KEPT)


def past_runs(
    session: Session, run: Run, ours: Sequence[Point] | None = None, *, of_its_sweep: bool = True
) -> list[PastRun]:
    """Comparable runs that were run through to their budgets: in the same unit, of the same sweep or with the same
    task, which their recipes have or they name themselves.

    The newest 60. Not among them is a run whose evaluations are in part those of this one, nor more than one, the
    furthest, of a run and its forks, which have its evaluations. Without `of_its_sweep` none of its sweep is. `ours` is
    the run's own curve, where it has been read. Which they are is asked every time; how they went is kept in memory by
    version.
    """
    whole = [Run.status.in_(OVER), Run.last_compute >= FINISHED_AT * Run.budget_compute]
    if not of_its_sweep and run.sweep_id is not None:
        whole.append(Run.sweep_id.is_distinct_from(run.sweep_id))
    return _found(session, run, _comparable(session, run, *whole), ours)


def telling_runs(
    session: Session, run: Run, past: Sequence[PastRun], ours: Sequence[Point] | None = None
) -> list[PastRun]:
    """Comparable runs that tell where this one goes, over or not: see `least_to_tell`. The newest 60.

    Of a run without a budget its `past` runs, whatever they spent. Runs that were cut short count too, by what they
    know: to leave them out would leave those that went well.
    """
    if run.budget_compute is None:
        return list(past)
    finished = sum(one.tells_the_end(run.budget_compute) for one in past)
    least = least_to_tell(run.last_compute or 0.0, run.budget_compute, finished)
    ahead = _comparable(session, run, Run.status != Status.FAILED, Run.last_compute >= least)
    return [one for one in _found(session, run, ahead, ours) if one.points[-1].compute >= least]


def runs_that_logged(session: Session, run: Run, metric: str) -> list[PastRun]:
    """Comparable runs that did not fail and have logged this metric, the newest first; of those that were never
    evaluated, too, and with their evaluations as points."""
    logged = exists().where(MetricPoint.run_id == Run.id, MetricPoint.metric == metric)
    versions = _comparable(session, run, Run.status != Status.FAILED, logged)
    return list(KEPT.of(versions, lambda missing: _read(session, missing)).values())


def _found(session: Session, run: Run, versions: Sequence[Version], ours: Sequence[Point] | None) -> list[PastRun]:
    if not versions:
        return []
    found = KEPT.of(versions, lambda missing: _read(session, missing))
    if ours is None:
        ours = validation_curve(session, run.id)
    return one_of_each([one for one in found.values() if one.points and not begins_alike(one.points, ours)])


def _read(session: Session, versions: Sequence[Version]) -> dict[Version, PastRun]:
    """May see more than its version has, when more is committed just now: then there is a newer version already."""
    of_run = {version.run_id: version for version in versions}
    curves = validation_curves(session, of_run)
    imported = Run.import_digest.is_not(None).label("imported")
    columns = Run.id, _arm().label("arm"), Run.seed, Run.budget_compute, imported, Run.status
    rows = session.execute(select(*columns).where(Run.id.in_(of_run))).all()
    return {
        of_run[row.id]: PastRun(
            id=row.id,
            arm=None if row.seed is None else row.arm,
            seed=row.seed,
            budget=row.budget_compute or math.inf,
            points=tuple(curves[row.id] if row.status in TERMINAL else in_stages(curves[row.id])),
            imported=row.imported,
            over=row.status in TERMINAL,
            version=of_run[row.id],
        )
        for row in rows
    }


def in_stages(points: Sequence[Point]) -> Sequence[Point]:
    """The curve of a live run up to its last stage, of which there are 16 from one number of evaluations to twice as
    many: what is worked out of a long one lasts until the next stage, and not for one evaluation.

    >>> [len(in_stages([None] * number)) for number in (7, 31, 47, 48, 200)]
    [7, 31, 46, 48, 200]
    """
    return points[: len(points) >> (finer := max(len(points).bit_length() - 5, 0)) << finer]


def has_seeds(past: Sequence[PastRun], arm: str | None) -> bool:
    """Whether seeds of this arm are among them."""
    return arm is not None and any(one.arm == arm for one in past)


def arm_of(session: Session, run: Run) -> str | None:
    """What a run has in common with its other seeds: see `PastRun.arm`."""
    return arms_of(session, [run.id])[run.id]


def arms_of(session: Session, run_ids: Sequence[str]) -> dict[str, str | None]:
    """The same of many runs, by run."""
    rows = session.execute(select(Run.id, Run.seed, _arm().label("arm")).where(Run.id.in_(run_ids)))
    return {row.id: None if row.seed is None else row.arm for row in rows}


def _comparable(session: Session, run: Run, *also: ColumnElement[bool]) -> list[Version]:
    """The newest that are alike. Those of its task and those of its sweep are asked for apart: together they would be
    looked for among all recipes of the task, of which a store may have thousands."""
    newest = select(Run.id.label("id"), _row_version()).where(
        Run.id != run.id, Run.archived_at.is_(None), Run.compute_unit == run.compute_unit, *also
    )
    newest = newest.order_by(Run.id.desc()).limit(_MOST)
    alike = [] if run.sweep_id is None else [newest.where(Run.sweep_id == run.sweep_id)]
    if run.task is not None:
        alike.append(newest.where(Run.task == run.task))
    elif (task := _task_of(session, run)) is not None:
        alike.append(newest.join(RecipeRow, RecipeRow.id == Run.recipe_id).where(RecipeRow.body["task"] == task))
    if not alike:
        return []
    both = union(*alike).order_by(text("id DESC")).limit(_MOST) if len(alike) > 1 else alike[0]
    return [Version(*row) for row in session.execute(both)]


def _task_of(session: Session, run: Run) -> Any:
    """By its recipe. As a value, for then the database knows whether few recipes have it or most."""
    if run.recipe_id is None:
        return None
    return session.scalar(select(RecipeRow.body["task"]).where(RecipeRow.id == run.recipe_id))


def _row_version() -> ColumnElement[str]:
    """The transaction that wrote the row and where it lies, which no two states of a row share; and when, for a store
    that was set back and counts its transactions anew."""
    return func.concat_ws(" ", literal_column("runs.xmin"), literal_column("runs.ctid"), Run.updated_at, type_=Text)


def _arm() -> ColumnElement[str | None]:
    """Two runs of one arm have the same one; null where nothing says what a run's arm is."""
    recipe = RecipeRow.body.op("-")(array(_NO_PART_OF_AN_ARM, type_=Text))
    by_recipe = select(func.md5(cast(recipe, Text))).where(RecipeRow.id == Run.recipe_id).scalar_subquery()
    named = func.md5(cast(func.jsonb_build_array(Run.task, Run.arm), Text))
    return func.coalesce(by_recipe, case((and_(Run.task.is_not(None), Run.arm.is_not(None)), named)))


def one_of_each(runs: Sequence[PastRun]) -> list[PastRun]:
    """Of a run and its forks that have its evaluations the one that went furthest, of those as far one that is
    over, then the oldest: what they have in common is known once. `runs` are the newest first, with points."""
    forked = {_beginning(run.points) for run in runs if run.points[0].attempt == INHERITED}
    furthest: dict[_Beginning, PastRun] = {}
    for run in sorted(runs, key=lambda run: (run.points[-1].compute, run.over)):
        furthest[_beginning(run.points)] = run
    return [run for run in runs if (first := _beginning(run.points)) not in forked or furthest[first] is run]


_Beginning = tuple[int, float, float, datetime]


def _beginning(points: Sequence[Point]) -> _Beginning:
    return points[0].step, points[0].compute, points[0].reward, points[0].time


def families_of(session: Session, run_ids: Sequence[str]) -> dict[str, str]:
    """Of each run that whose curve it goes on with, and which goes on with none; itself, where it is no such fork."""
    parents: dict[str, str] = {}
    asked = list(run_ids)
    while asked:
        goes_on = exists().where(Evaluation.run_id == Run.id, Evaluation.attempt == INHERITED)
        rows = session.execute(select(Run.id, Run.parent_run_id).where(Run.id.in_(asked), goes_on)).all()
        new = {fork: parent for fork, parent in rows if parent is not None and fork not in parents}
        parents |= new
        asked = list(new.values())
    return {run_id: _oldest(run_id, parents) for run_id in run_ids}


def _oldest(run_id: str, parents: Mapping[str, str]) -> str:
    while run_id in parents:
        run_id = parents[run_id]
    return run_id


def begins_alike(points: Sequence[Point], ours: Sequence[Point]) -> bool:
    """Whether both curves begin with the same evaluation: a fork that inherited it, its parent, another such fork.

    What came of that run came partly of this one: to learn from it would be to learn the forecast from itself.
    """
    return bool(points) and bool(ours) and _beginning(points) == _beginning(ours)
