"""`forecurve run checkpoints`, `run attempts` and `run events`: what a run went through."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forecurve.limits import OVER

from ..asking.naming import Named, find_id
from ..asking.service import Answer, Service, asks_service
from ..given.flags import DATA_DIR, AsJson, DataDir, Limit, RunId, Token, Url

_FILES = {True: "kept", False: "dropped", None: "its user's"}
"""What became of a checkpoint's files."""


@asks_service
def checkpoints(service: Service, run_id: RunId, limit: Limit = 50) -> Answer:
    """List a run's checkpoints. `forecurve run fork RUN --step N` goes on from one that is kept.

    Older ones are dropped by the trainer, as checkpoint.keep_last and checkpoint.keep_every of the recipe say.
    """
    from ..showing.output import newest, print_newest

    found = newest(service.api.checkpoints(run_id, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, _no_checkpoints(service.api.run(run_id)))
    columns = ["checkpoint", "step", "compute", "attempt", "size", "written", "files", "path"]
    right, spare = ["step", "compute", "attempt", "size"], ["written", "size", "attempt", "compute"]
    return Answer(found, lambda: print_newest(found, columns, _checkpoint_row, right=right, spare=spare))


@asks_service
def attempts(service: Service, run_id: RunId, limit: Limit = 50) -> Answer:
    """List a run's launches. Newest first, when each began and how it ended. What each printed: `run logs`."""
    from ..showing.output import newest, print_newest

    found = newest(service.api.attempts(run_id, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, _no_attempts(service.api.run(run_id)))
    columns = ["attempt", "state", "began", "for", "last sign", "exit", "why"]
    return Answer(found, lambda: print_newest(found, columns, _attempt_row, right=["attempt", "for", "exit"]))


def events(
    run_id: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="All of them, oldest first, and then what comes, until it is over.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks of --follow.")
    ] = 2.0,
    limit: Limit = 50,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """List what happened to a run. Newest first, every change of state, forecast, advice and alert, by whom and why."""
    from ..asking.connection import connect
    from ..showing.events import follow_events, print_events
    from ..showing.output import newest, print_json

    with connect(url, token, data_dir) as api:
        run_id = find_id(api, Named("run"), run_id)
        if follow:
            follow_events(api, run_id, every_s=every, as_json=as_json)
            return
        found = newest(api.run_events(run_id, limit=limit + 1), limit)
    if as_json:
        print_json(found)
    else:
        print_events(found)


def _no_checkpoints(run: dict[str, Any]) -> str:
    if run["status"] in OVER:
        return f"No checkpoints: the run is {run['status']} and has reported none."
    return f"No checkpoints yet. `forecurve run show {run['id']}` says how far it is."


def _no_attempts(run: dict[str, Any]) -> str:
    if run["status"] in OVER:
        return f"Never launched: the run is {run['status']}."
    return f"Not launched yet. `forecurve run show {run['id']}` says what it waits for."


def _checkpoint_row(checkpoint: dict[str, Any]) -> list[Any]:
    from ..showing.output import compute, since, size

    return [
        checkpoint["id"],
        checkpoint["step"],
        compute(checkpoint["compute"]),
        checkpoint["attempt"],
        size(checkpoint["size_bytes"]),
        since(checkpoint["created_at"]),
        _FILES[checkpoint["on_disk"]],
        checkpoint["path"],
    ]


def _attempt_row(attempt: dict[str, Any]) -> list[Any]:
    from ..showing.output import DASH, elapsed, since

    return [
        attempt["number"],
        _attempt_state(attempt),
        since(attempt["started_at"] or attempt["created_at"]),
        elapsed(attempt["started_at"], attempt["ended_at"]),
        since(attempt["last_heartbeat_at"]),
        DASH if attempt["exit_code"] is None else attempt["exit_code"],
        attempt["outcome_reason"] or "",
    ]


def _attempt_state(attempt: dict[str, Any]) -> str:
    """The trainer's own word, else the executor's; of one that its user launched, what is known of it."""
    told = attempt["outcome"] or attempt["observed"]
    if told:
        return str(told)
    if attempt["ended_at"]:
        return "ended"
    return "begun" if attempt["started_at"] else "submitted" if attempt["submitted_at"] else "waiting"
