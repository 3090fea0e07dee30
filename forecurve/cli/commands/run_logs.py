"""`forecurve run logs`: what a run's job printed on the cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from ..asking.naming import Named, find_id
from ..given.flags import DATA_DIR, AsJson, DataDir, RunId, Token, Url


def logs(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then what comes, until the run is over.")] = False,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Of this launch; else the newest.")] = None,
    tail: Annotated[int, typer.Option("--tail", min=1, max=5000, help="So many of the last lines.")] = 5000,
    every: Annotated[
        float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks of --follow.")
    ] = 2.0,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Print what a run's job printed. The last 5,000 lines are kept, also when the cluster is gone."""
    from ..asking.connection import connect
    from ..showing.logs import follow_log, fresh_log, print_log
    from ..showing.output import print_json

    with connect(url, token, data_dir) as api:
        run_id = find_id(api, Named("run"), run_id)
        if follow:
            follow_log(api, run_id, attempt=attempt, tail=tail, every_s=every, as_json=as_json)
            return
        found = fresh_log(api, run_id, attempt, tail)
    if as_json:
        print_json(found)
    else:
        print_log(found)
