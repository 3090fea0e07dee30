"""The curves of a sweep: of all its runs; of thousands, some, and where the others lie."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.errors import Invalid
from server.metrics.spread import spread
from server.runs.models import Run
from server.runs.service import get_runs
from server.sweeps.drawn import WHOLE, drawn_of
from server.sweeps.outline import outlines
from server.sweeps.service import get_sweep, sweep_runs

from .curves import runs_curves
from .schemas import OthersView, SweepCurves, SweepRef

_FIGURES = ("compute", "median", "lower50", "upper50", "lower90", "upper90")


def sweep_curves(session: Session, sweep_id: str, asked: Sequence[Run], *, frozen: bool = True) -> SweepCurves:
    """The curves of the runs of a sweep that are asked for, in their order; else of all, as they were planned, or of a
    large sweep those by which it is drawn. The others are summed up. Without `frozen`, no frozen forecasts.

    Raises:
        Invalid: a run that is asked for is none of the sweep.
    """
    sweep = get_sweep(session, sweep_id)
    ids = session.scalars(select(Run.id).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()
    runs, said = _shown(session, sweep_id, asked, len(ids))
    return SweepCurves(
        sweep=SweepRef.model_validate(sweep),
        said=said,
        others=_others(session, ids, runs),
        **dict(runs_curves(session, runs, frozen=frozen)),
    )


def _shown(session: Session, sweep_id: str, asked: Sequence[Run], count: int) -> tuple[Sequence[Run], str | None]:
    """The runs whose curves are given one by one; which they are, in words, where nobody said."""
    if asked:
        stray = next((run for run in asked if run.sweep_id != sweep_id), None)
        if stray is not None:
            message = f"is no run of sweep {sweep_id}; `GET /v1/runs:curves` has any runs"
            raise Invalid.field("run_id", stray.id, message)
        return asked, None
    if count <= WHOLE:
        return sweep_runs(session, sweep_id), None
    drawn = drawn_of(outlines(session, sweep_id))
    return get_runs(session, drawn.ids), drawn.said


def _others(session: Session, ids: Sequence[str], shown: Sequence[Run]) -> OthersView | None:
    """Where the others of a sweep's runs lie. All are in one unit of compute, by the plan of the sweep."""
    alone = {run.id for run in shown}
    others = [id_ for id_ in ids if id_ not in alone]
    if not others:
        return None
    places = spread(session, others)
    figures = {name: [getattr(place, name) for place in places] for name in _FIGURES}
    return OthersView(runs=len(others), evaluated=[place.runs for place in places], **figures)
