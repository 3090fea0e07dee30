"""Any runs compared with one of them, by the same science as the arms of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from forecurve.science.wording import names_text
from server.errors import Invalid
from server.forecasts.past_runs import past_runs
from server.metrics.curve import Point, validation_curves
from server.runs.models import Run
from server.runs.schemas import RunView
from server.runs.service import is_over
from server.runs.states import TERMINAL
from server.runs.views import run_views
from server.sweeps.schemas import ComparisonView
from server.sweeps.sentence import afterwards, sweep_sentence

from .checks import misfits, refuse, untold
from .find import Compared, Entrant, attempted, find
from .grouping import arm_names, run_names, same_curves
from .kept import Kept, Made
from .recipes import differences, recipes_of
from .schemas import RunsComparison

_ONE_ARM = "All of them are seeds of one arm, so nothing is compared."
_ONE_CURVE = "Nothing is compared: every other arm begins with evaluations of the control's, as a fork does."
_KEPT = Kept()


@dataclass(frozen=True)
class _Chosen:
    """Runs that are judged alike, the control first, with their curves and the names of their arms."""

    runs: Sequence[Run]
    curves: Mapping[str, Sequence[Point]]
    arms: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def control(self) -> Run:
        return self.runs[0]

    @property
    def compared(self) -> list[Run]:
        return [run for run in self.runs if run.id not in self.left_out]


def compare_runs(session: Session, asked: Sequence[Run], control: Run, now: datetime) -> RunsComparison:
    """The runs against the control, with what their recipes differ in.

    Raises:
        Invalid: fewer than two runs, or some that are not judged as the control is.
        Unavailable: too many comparisons are being made.
    """
    if len(asked) < 2:
        raise Invalid.field("run_id", [run.id for run in asked], "name two runs or more")
    runs = [control, *(run for run in asked if run.id != control.id)]
    recipes = recipes_of(session, runs)
    refuse(runs, misfits(runs, control, recipes))
    chosen = _chosen(session, runs)
    made = _made(session, chosen, now)
    comparison, note = _view(made), made.found.note if made else _why_one(chosen)
    left_out = {**chosen.left_out, **(made.found.left_out if made else {})}
    views, names = run_views(session, runs), run_names(session, runs)
    out = [names[id_] for id_ in left_out]
    return RunsComparison(
        control=control.id,
        unit=control.compute_unit,
        sentence=_sentence(views, comparison, note, out),
        runs=views,
        names=names,
        arms=dict(chosen.arms),
        left_out=left_out,
        without_recipe=[run.id for run in runs if run.id not in recipes],
        untold=untold(runs, control, recipes),
        differences=differences(runs, recipes),
        comparison=comparison,
        note=note,
    )


def control_of(runs: Sequence[Run], control_id: str | None) -> Run:
    """The run that the others are compared with: the one asked for, else the first that is a control, else the first.

    Raises:
        Invalid: it is none of the runs.
    """
    if control_id is None:
        return next((run for run in runs if run.is_control), runs[0])
    control = next((run for run in runs if run.id == control_id), None)
    if control is None:
        raise Invalid.field("control", control_id, "is none of the runs; give it as a `run_id` too")
    return control


def _chosen(session: Session, runs: Sequence[Run]) -> _Chosen:
    curves = validation_curves(session, [run.id for run in runs])
    return _Chosen(runs, curves, arm_names(session, runs), same_curves(runs, curves, runs[0]))


def _made(session: Session, chosen: _Chosen, now: datetime) -> Made | None:
    """The comparison; None where there is one arm only."""
    compared = chosen.compared
    if len({chosen.arms[run.id] for run in compared}) < 2:
        return None
    asked = chosen.control.id, tuple(sorted((run.id, run.name, chosen.arms[run.id], is_over(run)) for run in compared))
    curves = (chosen.curves[run.id] for run in sorted(compared, key=lambda run: run.id))  # in whatever order they came
    seen = tuple((len(curve), curve[-1] if curve else None) for curve in curves)
    what = f"control `{chosen.arms[chosen.control.id]}`"
    return _KEPT.get(asked, seen, now, lambda: attempted(find, _material(session, chosen), what))


def _why_one(chosen: _Chosen) -> str:
    """Why there is no second arm: there was none, or those that there are have no curve of their own."""
    return _ONE_ARM if len(set(chosen.arms.values())) < 2 else _ONE_CURVE


def _material(session: Session, chosen: _Chosen) -> Compared:
    """What is compared; past runs that are not among the chosen tell how far seeds lie apart."""
    control, ids = chosen.control, {run.id for run in chosen.runs}
    return Compared(
        control=chosen.arms[control.id],
        unit=control.compute_unit,
        budget=max((run.budget_compute for run in chosen.compared if run.budget_compute is not None), default=None),
        runs=[Entrant.of(run, chosen.arms[run.id], chosen.curves[run.id]) for run in chosen.compared],
        past=[one for one in past_runs(session, control) if one.id not in ids],
    )


def _view(made: Made | None) -> ComparisonView | None:
    if made is None or made.found.result is None:
        return None
    return ComparisonView(**made.found.result, compared_at=made.at, seconds=made.found.seconds)


def _sentence(
    runs: Sequence[RunView], comparison: ComparisonView | None, note: str | None, left_out: Sequence[str]
) -> str:
    """As that of a sweep: how far they are, which arm is best, what each changed, and which are not compared."""
    if comparison is None:
        return sweep_sentence(runs, compared=note)
    over = all(run.status in TERMINAL for run in runs)
    best = comparison.ranking.sentence if comparison.ranking else None
    said = afterwards(comparison) if over else comparison.sentence
    return sweep_sentence(runs, best, f"{said} Not compared: {names_text(left_out)}." if left_out else said)
