"""Query parameters by which lists are narrowed to one thing; 404 when there is no such thing, not an empty list."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from server.alerts.service import get_alert
from server.dependencies import DbSession, Reader
from server.runs.service import get_run
from server.sweeps.service import get_sweep


def _run(session: DbSession, _: Reader, run_id: str | None = None) -> str | None:
    return None if run_id is None else get_run(session, run_id).id


def _sweep(session: DbSession, _: Reader, sweep_id: str | None = None) -> str | None:
    return None if sweep_id is None else get_sweep(session, sweep_id).id


def _alert(session: DbSession, _: Reader, alert_id: str | None = None) -> str | None:
    return None if alert_id is None else get_alert(session, alert_id).id


OfRun = Annotated[str | None, Depends(_run)]
OfSweep = Annotated[str | None, Depends(_sweep)]
OfAlert = Annotated[str | None, Depends(_alert)]
