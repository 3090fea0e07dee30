"""`forecurve advice`: list, accept, dismiss."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit, OfRun

if TYPE_CHECKING:
    from forecurve.client.api import Api

app = typer.Typer(no_args_is_help=True, help="What runs are advised: list, accept, dismiss.")

AdviceId = Annotated[str, typer.Argument(metavar="ADVICE", help="Its id, as `forecurve advice list` shows it.")]


class Status(StrEnum):
    """What became of advice. A run has at most one that is open."""

    open = "open"
    accepted = "accepted"
    dismissed = "dismissed"
    superseded = "superseded"


@app.command("list")
@asks_service
def list_advice(
    service: Service,
    run: OfRun = None,
    status: Annotated[Status | None, typer.Option(help="Only advice of which this came.")] = None,
    limit: Limit = 50,
) -> Answer:
    """List advice, newest first. With --status open, what waits for an answer."""
    from ..showing.output import newest, print_newest

    wanted = str(status) if status else None
    found = newest(service.api.recommendations(run_id=run, status=wanted, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, _none_found(bool(run or status)))
    columns = ["advice", "run", "to", "state", "made", "why"]
    return Answer(found, lambda: print_newest(found, columns, _row, spare=["made"]))


@app.command()
@asks_service
def accept(
    service: Service,
    advice_id: AdviceId,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the log.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a run is stopped.")] = False,
) -> Answer:
    """Follow advice. That to stop stops the run; any other is written down for you to carry out."""
    if not yes:
        _ask_before_a_stop(service.api, advice_id)
    advice = service.api.accept_recommendation(advice_id, reason)
    return Answer(advice, lambda: print(f"{advice['id']}  accepted; {_what_now(service.api, advice)}"))


@app.command()
@asks_service
def dismiss(
    service: Service,
    advice_id: AdviceId,
    reason: Annotated[str, typer.Option(help="Why; kept in the log, and later advice is judged against it.")],
) -> Answer:
    """Do not follow advice, and say why. It comes back only when its numbers have moved, or the run falls."""
    advice = service.api.dismiss_recommendation(advice_id, reason)
    return Answer(advice, f"{advice['id']}  dismissed")


def _ask_before_a_stop(api: Api, advice_id: str) -> None:
    """What is not open stops nothing; the service says why it cannot be accepted."""
    from ..asking.confirming import confirm

    advice = api.recommendation(advice_id)
    if advice["status"] == "open" and advice["action"] == "stop":
        confirm(f"accepting this stops run {advice['run_id']}")


def _what_now(api: Api, advice: dict[str, Any]) -> str:
    if advice["action"] == "stop":
        return f"run {advice['run_id']} is asked to stop"
    if advice["action"] == "scale":
        return f"it is for you to carry out: {_how_to_scale(api, advice['run_id'])}"
    return f"run {advice['run_id']} goes on as it does"


def _how_to_scale(api: Api, run_id: str) -> str:
    from forecurve.client.errors import ApiError

    try:
        run = api.run(run_id)
    except ApiError as error:  # the advice is accepted all the same
        typer.echo(f"How run {run_id} is scaled cannot be said now: {error}", err=True)
        return f"forecurve run show {run_id} has the run"
    if run["executor"] == "external":  # its checkpoints are where its trainer keeps them
        return "train on from its checkpoint with your trainer, and report that as a run of its own"
    return f"forecurve run fork {run_id} --set budget.compute=..."


def _none_found(filtered: bool) -> str:
    if filtered:
        return "No such advice. Without --run and --status all is listed."
    return "No advice yet. It comes with a run's forecast: forecurve run list"


def _row(advice: dict[str, Any]) -> list[str]:
    from ..showing.output import since

    return [
        advice["id"],
        advice["run_id"],
        advice["action"],
        advice["status"],
        since(advice["created_at"]),
        advice["reason"],
    ]
