"""`forecurve run forecast`: where another metric of a run will end than the one that its curve is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.curves import Bounds, Range, bounds_of_flag
from ..given.flags import RunId
from .run_data import known_metrics

if TYPE_CHECKING:
    from forecurve.client.api import Api


@asks_service
def forecast(
    service: Service,
    run_id: RunId,
    metrics: Annotated[list[str], typer.Argument(metavar="METRIC...", help="Names, as `run metrics` lists them.")],
    range_: Range = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Compute to forecast it at; else the run's.")] = None,
) -> Answer:
    """Forecast any metric that a run logs: another benchmark, or the training reward.

    forecurve run forecast RUN eval/aime24 eval/math500

    It is worked out now, and the same metric of comparable runs is its past. Nothing of it is kept, and no alert rings
    by it.
    """
    from ..showing.metric_forecast import describe

    names = known_metrics(metrics, service.api.metric_names(run_id), run_id, "METRIC")
    items = [_asked(service.api, run_id, name, bounds_of_flag(range_), budget) for name in names]
    return Answer({"items": items}, "\n\n".join("\n".join(describe(one)) for one in items))


def _asked(api: Api, run_id: str, name: str, bounds: Bounds, budget: float | None) -> dict[str, Any]:
    from forecurve.client.errors import ApiError

    from ..errors import bad_input

    low, high = bounds
    try:
        return api.metric_forecast(run_id, name, low=low, high=high, budget=budget)
    except ApiError as error:
        for fault in error.body.get("errors") or ():
            if fault["field"] in ("low", "high"):
                raise bad_input(f"--range: of {name} {fault['message']}") from None
        raise
