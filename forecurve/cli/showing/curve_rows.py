"""Runs of the service as the rows of a file that `forecurve fit`, `compare`, `plan` and `backtest` read."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forecurve.signs import visible
from forecurve.spent import spent_at

if TYPE_CHECKING:
    from forecurve.client.api import Api

CURVE_COLUMNS = ["series", "compute", "reward", "prompts", "samples", "seed", "unit"]

_Found = tuple[list[dict[str, Any]], str]
"""Points, and what is to be said of those that are missing."""

Named = tuple[str, Mapping[str, Any]]  # the name of a series, and a run of it


def checked_metric(api: Api, runs: Iterable[Mapping[str, Any]], metric: str | None) -> str | None:
    """The metric, where one of the runs has logged it; as a rule the first has.

    Raises:
        CliError: none has.
    """
    from forecurve.recipes.errors import suggestion

    from ..errors import bad_input

    if metric is None:
        return None
    known: set[str] = set()
    for run in runs:
        known |= set(api.metric_names(run["id"]))
        if metric in known:
            return metric
    raise bad_input(f"--metric: none of these runs has logged {metric!r}{suggestion(metric, sorted(known))}")


def curve_rows(api: Api, runs: Sequence[Named], metric: str | None = None) -> Iterator[dict[str, Any]]:
    """A row an evaluation, run after run; seeds of one arm that are called by it are one series.

    On stderr it is said which runs have none, and that units differ.

    Args:
        metric: whose values take the place of the evaluations.
    """
    units = sorted({run["compute_unit"] for _, run in runs})
    if len(units) > 1:
        print(f"compute is in {' and in '.join(units)}; `forecurve fit` takes one unit a file", file=sys.stderr)
    series = [name.removesuffix(f" (seed {run['seed']})") for name, run in runs]  # `fit` and `run import` add it
    times = Counter((name, run["seed"]) for name, (_, run) in zip(series, runs, strict=True))
    for name, (_, run) in zip(series, runs, strict=True):
        only = times[name, run["seed"]] == 1
        found, fault = _values(api, run["id"], metric) if metric else _evaluations(api, run["id"])
        if fault:
            print(f"{visible(name)} ({run['id']}){fault}", file=sys.stderr)
        for point in found:
            yield _row(name if only else f"{name} ({run['id']})", run, point)


def _row(series: str, run: Mapping[str, Any], point: Mapping[str, Any]) -> dict[str, Any]:
    measured = {column: point.get(column) for column in ("compute", "reward", "prompts", "samples")}
    return {"series": series, **measured, "seed": run["seed"], "unit": run["compute_unit"]}


def _evaluations(api: Api, run_id: str) -> _Found:
    found = api.evaluations(run_id)["items"]
    return found, "" if found else " is left out: it has no evaluations yet"


def _values(api: Api, run_id: str, metric: str) -> _Found:
    """The finite values of a metric; where it was logged without compute, that is read between the evaluations."""
    points = [point for point in api.metric_points(run_id, metric) if math.isfinite(float(point["value"]))]
    told = all(point["compute"] is not None for point in points)
    evaluated = [] if told else api.evaluations(run_id)["items"]
    steps, spent = [one["step"] for one in evaluated], [one["compute"] for one in evaluated]
    for point in points:
        if point["compute"] is None:
            point["compute"] = spent_at(point["step"], steps, spent)
    found = [{"compute": one["compute"], "reward": one["value"]} for one in points if one["compute"] is not None]
    if not points:
        return found, f" is left out: it has no finite value of {visible(metric)}"
    unknown = "nobody says how much compute was spent; report evaluations, between which it is read"
    if not found:
        return found, f" is left out: of its values of {visible(metric)} {unknown}"
    lost = f"{len(points) - len(found)} of {len(points)} values of {visible(metric)}"
    return found, f": {lost} are left out, of which {unknown}" if len(found) < len(points) else ""
