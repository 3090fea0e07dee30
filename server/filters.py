"""Query parameters that name things, or narrow lists to one; 404 when there is no such thing, not an empty list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy.orm import Session

from server.alerts.service import get_alert
from server.dependencies import DbSession, Reader
from server.errors import Invalid
from server.runs.models import Run
from server.runs.service import get_run, get_runs
from server.sweeps.service import get_sweep


def _run(session: DbSession, _: Reader, run_id: str | None = None) -> str | None:
    return None if run_id is None else get_run(session, run_id).id


def _sweep(session: DbSession, _: Reader, sweep_id: str | None = None) -> str | None:
    return None if sweep_id is None else get_sweep(session, sweep_id).id


def _alert(session: DbSession, _: Reader, alert_id: str | None = None) -> str | None:
    return None if alert_id is None else get_alert(session, alert_id).id


MOST_RUNS = 20
"""That are asked for by name at once; nobody reads more in one chart."""


RunIds = Annotated[
    list[str] | None,
    Query(
        description=f"Given several times, at most {MOST_RUNS}.",
        json_schema_extra={"minItems": 1, "maxItems": MOST_RUNS},
    ),
]


def _any_runs(session: DbSession, _: Reader, run_id: RunIds = None) -> Sequence[Run]:
    return some_runs(session, run_id or [])


def _runs(session: DbSession, _: Reader, run_id: RunIds = None) -> Sequence[Run]:
    if not run_id:
        raise Invalid.field("run_id", None, "name the runs: `?run_id=...&run_id=...`")
    return some_runs(session, run_id)


def some_runs(session: Session, run_ids: Sequence[str]) -> list[Run]:
    """The runs of these ids, each once, in their order.

    Raises:
        Invalid: they are too many.
        NotFound: one of them is none.
    """
    ids = list(dict.fromkeys(run_ids))
    if len(ids) > MOST_RUNS:
        message = f"at most {MOST_RUNS} runs are taken at once, these are {len(ids)}; leave some out"
        raise Invalid.field("run_id", len(ids), message)
    return get_runs(session, ids)


TagFilter = Annotated[
    list[str] | None, Query(description="Those with this tag; given several times, with all of them.")
]
SomeRuns = Annotated[Sequence[Run], Depends(_runs)]
AnyRuns = Annotated[Sequence[Run], Depends(_any_runs)]
OfRun = Annotated[str | None, Depends(_run)]
OfSweep = Annotated[str | None, Depends(_sweep)]
OfAlert = Annotated[str | None, Depends(_alert)]
