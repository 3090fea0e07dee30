"""Any metric of a run, forecast when somebody asks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from server.dependencies import ForecastPlace
from server.errors import Invalid, NotFound, Problem
from server.forecasts.of_metric import Asked, metric_curve
from server.forecasts.schemas import MetricCurve
from server.metrics.service import metric_names
from server.runs.service import get_run
from server.runs.views import run_view
from server.sweeps.service import get_sweep
from web import reads
from web.page import AnyPage

MOST_PAST = 8  # past runs that are named
LABELS = {"metric": "Metric", "low": "Lowest it can be", "high": "Highest it can be", "budget": "Compute"}
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Typed:
    """What stands in the form, as it was typed."""

    low: str = ""
    high: str = ""
    budget: str = ""

    def numbers(self) -> dict[str, float]:
        """Those that were given.

        Raises:
            Invalid: one is no number.
        """
        return {name: _number(name, text) for name, text in vars(self).items() if text.strip()}


@router.get("/runs/{run_id}/forecast")
def show_metric(
    _place: ForecastPlace, page: AnyPage, run_id: str, typed: Annotated[Typed, Depends()], metric: str | None = None
) -> HTMLResponse:
    session = page.session
    run = get_run(session, run_id)
    found, fault = _found(session, run_id, metric, typed) if metric else (None, None)
    numbers = typed.numbers() if found else {}
    answer = page.render(
        "metric.html",
        run=run_view(session, run),
        sweep=get_sweep(session, run.sweep_id) if run.sweep_id else None,
        names=metric_names(session, run_id),
        metric=metric,
        typed=typed,
        found=found,
        fault=_told(fault) if fault else None,
        past=reads.runs_by_id(session, found.past) if found else [],
        most_past=MOST_PAST,
        labels=LABELS,
        query=urlencode({"metric": metric or ""} | numbers),
        command=_command(run_id, metric or "", numbers),
    )
    answer.status_code = fault.status if fault else answer.status_code
    return answer


def _found(session: Session, run_id: str, metric: str, typed: Typed) -> tuple[MetricCurve | None, Problem | None]:
    """The forecast, or why there is none: the form stays, to ask otherwise."""
    try:
        return metric_curve(session, run_id, Asked(metric, **typed.numbers())), None
    except Problem as problem:
        return None, problem


def _command(run_id: str, metric: str, numbers: Mapping[str, float]) -> str:
    """What forecasts the same on the command line."""
    flags = []
    if "low" in numbers or "high" in numbers:
        flags.append(f"--range={_exact(numbers.get('low', 0.0))},{_exact(numbers.get('high', 1.0))}")
    if "budget" in numbers:
        flags.append(f"--budget={_exact(numbers['budget'])}")
    return shlex.join(["forecurve", "run", "forecast", run_id, *flags, "--", metric])


def _exact(value: float) -> str:
    return repr(value).removesuffix(".0")


def _told(problem: Problem) -> str:
    """By what the form calls its fields."""
    if isinstance(problem, NotFound) and any(one["field"] == "metric" for one in problem.errors):
        return f"{LABELS['metric']}: the run has logged no finite value of it; choose one above"
    faults = [f"{LABELS[one['field']]}: {one['message']}" for one in problem.errors if one["field"] in LABELS]
    return "; ".join(faults) or problem.detail


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Invalid.field(name, text, "a number is needed")
    return value
