"""Runs of the service as the rows of a file that `forecurve fit`, `compare`, `plan` and `backtest` read."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forecurve.signs import visible

if TYPE_CHECKING:
    from forecurve.client.api import Api

CURVE_COLUMNS = ["series", "compute", "reward", "prompts", "samples", "seed", "unit"]

Named = tuple[str, Mapping[str, Any]]  # the name of a series, and a run of it


def curve_rows(api: Api, runs: Sequence[Named]) -> Iterator[dict[str, Any]]:
    """A row an evaluation, run after run; seeds of one arm that are called by it are one series.

    On stderr it is said which runs have none, and that units differ.
    """
    units = sorted({run["compute_unit"] for _, run in runs})
    if len(units) > 1:
        print(f"compute is in {' and in '.join(units)}; `forecurve fit` takes one unit a file", file=sys.stderr)
    series = [name.removesuffix(f" (seed {run['seed']})") for name, run in runs]  # `fit` and `run import` add it
    times = Counter((name, run["seed"]) for name, (_, run) in zip(series, runs, strict=True))
    for name, (_, run) in zip(series, runs, strict=True):
        only = times[name, run["seed"]] == 1
        found = api.evaluations(run["id"])
        if not found["items"]:
            print(f"{visible(name)} ({run['id']}) is left out: it has no evaluations yet", file=sys.stderr)
        for evaluation in found["items"]:
            yield _row(name if only else f"{name} ({run['id']})", run, found["unit"], evaluation)


def _row(series: str, run: Mapping[str, Any], unit: str, evaluation: Mapping[str, Any]) -> dict[str, Any]:
    measured = {column: evaluation[column] for column in ("compute", "reward", "prompts", "samples")}
    return {"series": series, **measured, "seed": run["seed"], "unit": unit}
