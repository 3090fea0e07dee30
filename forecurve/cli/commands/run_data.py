"""`forecurve run metrics` and `run export`: a run's numbers for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecurve.limits import OVER

from ..asking.naming import Named
from ..asking.service import Answer, Service, asks_service
from ..given.flags import OfMetric, RunId
from ..showing.rows_out import FormFlag, OutFlag, rows_answer

if TYPE_CHECKING:
    from forecurve.client.api import Api

METRIC_COLUMNS = ["metric", "step", "attempt", "compute", "value", "time"]


@asks_service
def metrics(
    service: Service,
    run_id: RunId,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Write the series of this one; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Write the series of every metric.")] = False,
    form: FormFlag = None,
    out: OutFlag = None,
) -> Answer:
    """Name a run's metrics, or write series of them. A row a point; each step once, from its newest attempt.

    forecurve run metrics RUN --metric train/reward --metric train/loss -o metrics.csv
    """
    from ..errors import bad_input

    names = service.api.metric_names(run_id)
    if metric or every:
        wanted = names if every else known_metrics(metric or [], names, run_id)
        return rows_answer(METRIC_COLUMNS, _points(service.api, run_id, wanted), form, out)
    if form or out:
        raise bad_input("--metric: no series is named; repeat it for each, or give --all")
    return Answer({"metrics": names}, "\n".join(names) or _no_metrics(service.api.run(run_id)))


@asks_service
def export(
    service: Service,
    run_ids: Annotated[list[str], Named("run"), typer.Argument(metavar="RUN...", help="Their ids, or names.")],
    metric: OfMetric = None,
    form: FormFlag = None,
    out: OutFlag = None,
) -> Answer:
    """Write evaluations as `forecurve fit` reads them.

    forecurve run export RUN... | forecurve fit -
    forecurve run export RUN... --metric eval/aime24 | forecurve fit -

    A series is a run's name, without `(seed 1)` at its end where that is its seed, and with its id behind where two
    have the same name and seed. Of a metric that was logged without compute, that is read between the evaluations;
    `fit` and the like take values other than shares with --range.
    """
    from ..showing.curve_rows import CURVE_COLUMNS, checked_metric, curve_rows

    runs = [service.api.run(run_id) for run_id in dict.fromkeys(run_ids)]
    series = [(run["name"], run) for run in runs]
    metric = checked_metric(service.api, runs, metric)
    return rows_answer(CURVE_COLUMNS, curve_rows(service.api, series, metric), form, out)


def _no_metrics(run: dict[str, Any]) -> str:
    if run["status"] in OVER:
        return f"No metrics: the run is {run['status']} and has logged none."
    return f"No metrics yet. `forecurve run watch {run['id']}` tells when some come."


def known_metrics(wanted: Sequence[str], names: Sequence[str], run_id: str, flag: str = "--metric") -> list[str]:
    """The metrics asked for, each once. The service answers an unknown name with no points, which says nothing."""
    from forecurve.recipes.errors import suggestion

    from ..errors import bad_input

    for metric in wanted:
        if metric not in names:
            way_out = suggestion(metric, list(names)) or f"; it has logged none, `forecurve run show {run_id}` says why"
            raise bad_input(f"{flag}: run {run_id} has no metric {metric!r}{way_out}")
    return list(dict.fromkeys(wanted))


def _points(api: Api, run_id: str, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    for metric in wanted:
        for point in api.metric_points(run_id, metric):
            yield {"metric": metric, **point}
