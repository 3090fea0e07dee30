"""`forecurve score`: the track record of a store, every forecast of a finished run against what came."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import OfSweep


@asks_service
def score(
    service: Service,
    sweep: OfSweep = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=300, help="Newest finished runs that are looked at.")] = 100,
    limit: Annotated[int, typer.Option("--limit", min=0, max=1000, help="Forecasts listed one by one (--json).")] = 50,
) -> Answer:
    """Score the forecasts that were made of finished runs: error and coverage by share of what the run spent."""
    record = service.api.track_record(sweep_id=sweep, runs=runs, limit=limit)
    return Answer(record, lambda: _show(record))


def _show(record: dict[str, Any]) -> None:
    from ..showing.output import print_table

    if record["table"]:
        columns = ["made at", "forecasts", "runs", "MAE", "median", "max", "coverage", "width", "withheld"]
        print_table(columns, [_row(line) for line in record["table"]], right=columns[1:])
    else:
        print("No finished run has a forecast that can be scored yet.")
    waiting = record["waiting"]
    one = "1 forecast of a run that is not over waits for its outcome."
    print(one if waiting == 1 else f"{waiting} forecasts of runs that are not over wait for their outcome.")


def _row(line: dict[str, Any]) -> list[str]:
    from ..showing.output import number

    return [
        _range(line["above"], line["upto"]),
        str(line["forecasts"]),
        str(line["runs"]),
        *(number(line[name], 3) for name in ("mae", "median", "max")),
        number(line["coverage"]),
        number(line["width"], 3),
        str(line["withheld"]),
    ]


def _range(above: float, upto: float | None) -> str:
    """`18 to 38 %` of what the run spent in the end."""
    return f"from {100 * above:.0f} %" if upto is None else f"{100 * above:.0f} to {100 * upto:.0f} %"
