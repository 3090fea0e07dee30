"""`forecurve run`: submit, fork, list, show, rename, tag, note, pause, resume, stop, cancel, archive, restore, watch.

What a run went through, what it printed and its numbers for other programs are in run_history.py, run_origin.py,
run_logs.py, run_data.py and run_forecast.py; tags and notes are in labels.py.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..asking.naming import Named, find_id
from ..asking.service import Answer, Service, asks_service
from ..given.flags import (
    DATA_DIR,
    AsJson,
    Changes,
    DataDir,
    Limit,
    NewNote,
    NewTags,
    OfSweep,
    Preset,
    RecipeFile,
    RunId,
    Tagged,
    Token,
    Url,
)
from .labels import note_run, tag_run
from .run_data import export, metrics
from .run_follow import follow
from .run_forecast import forecast
from .run_history import attempts, checkpoints, events
from .run_import import import_runs
from .run_logs import logs
from .run_origin import forks, recipe

app = typer.Typer(
    no_args_is_help=True,
    help="Single runs: submit, fork, look at them, pause, resume, stop, put away; their history and their numbers.",
)

NO_RUNS = "No runs. Try: forecurve run submit --preset scalerl"

PutAway = Annotated[str, Named("run", archived=True), typer.Argument(metavar="RUN", help="Its id, or its name.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the log.")]


@app.command()
@asks_service
def submit(
    service: Service,
    preset: Preset = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    name: Annotated[str | None, typer.Option(help="What the run is called.")] = None,
    tags: NewTags = None,
    note: NewNote = None,
) -> Answer:
    """Queue one run of a recipe."""
    import secrets

    from ..given.recipes import run_request

    body = run_request(preset, recipe, changes, name) | {"tags": tags or None, "note": note}
    run = service.api.create_run(body, idempotency_key=secrets.token_hex(16))
    return Answer(run, f"{run['id']}  {run['status']}  {service.api.url}/runs/{run['id']}")


@app.command()
@asks_service
def fork(
    service: Service,
    run_id: RunId,
    step: Annotated[int | None, typer.Option(min=0, help="Of the checkpoint; else the newest.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="The checkpoint's id, in place of --step.")] = None,
    changes: Changes = None,
    name: Annotated[str | None, typer.Option(help="What the fork is called.")] = None,
    tags: NewTags = None,
    note: NewNote = None,
) -> Answer:
    """Queue a run that goes on from a checkpoint of RUN with a changed recipe.

    Steps and compute go on from the checkpoint's, so a fork of a run that is done needs more budget:
    forecurve run fork RUN --set budget.compute=120 --set optimizer.learning_rate=1e-4
    """
    import secrets

    from ..given.recipes import parse_changes

    body: dict[str, Any] = {"step": step, "checkpoint_id": checkpoint, "changes": parse_changes(changes), "name": name}
    body |= {"tags": tags or None, "note": note}
    run = service.api.fork_run(run_id, body, idempotency_key=secrets.token_hex(16))
    begins = f"{run['status']}; begins at step {run['parent']['step']} of {run_id}"
    return Answer(run, f"{run['id']}  {begins}  {service.api.url}/runs/{run['id']}")


@app.command("list")
@asks_service
def list_runs(
    service: Service,
    status: Annotated[
        list[str] | None, typer.Option(help="Only runs in this state; may be given several times.")
    ] = None,
    sweep: OfSweep = None,
    arm: Annotated[str | None, typer.Option(help="Only runs of this arm.")] = None,
    name: Annotated[str | None, typer.Option(help="Only runs that are called exactly so.")] = None,
    task: Annotated[str | None, typer.Option(help="Only runs that named this task.")] = None,
    tags: Tagged = None,
    archived: Annotated[bool, typer.Option("--archived", help="Those that were put away.")] = False,
    limit: Limit = 50,
) -> Answer:
    """List runs, newest first."""
    from ..showing.output import newest, print_newest
    from ..showing.run_rows import NUMERIC, RUN_SPARE, run_table

    filters = {"status": status, "sweep_id": sweep, "arm": arm, "name": name, "task": task, "tag": tags}
    found = newest(service.api.runs(**filters, archived=archived or None, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, _none_found(any(filters.values()), archived))
    columns, row = run_table(found["items"])
    return Answer(found, lambda: print_newest(found, columns, row, right=NUMERIC, spare=RUN_SPARE))


def _none_found(filtered: bool, archived: bool) -> str:
    if filtered:
        return "No such runs. Without --status, --sweep, --arm, --name, --task and --tag all are listed."
    return "No archived runs." if archived else NO_RUNS


@app.command()
@asks_service
def show(service: Service, run_id: RunId) -> Answer:
    """Show a run: state, newest evaluation, forecast, advice."""
    from ..showing.runs import describe

    run = service.api.run(run_id)
    return Answer(run, "\n".join(describe(run)))


@app.command()
@asks_service
def rename(service: Service, run_id: RunId, name: Annotated[str, typer.Argument(metavar="NAME")]) -> Answer:
    """Give a run another name."""
    run = service.api.rename_run(run_id, name)
    return Answer(run, f"{run['id']}  {run['name']}")


@app.command()
@asks_service
def task(
    service: Service,
    run_id: RunId,
    name: Annotated[str | None, typer.Argument(metavar="[TASK]", help="What it is of, in words of your own.")] = None,
    none: Annotated[bool, typer.Option("--none", help="It is of none any more.")] = False,
) -> Answer:
    """Say of which task a run without a recipe is; without TASK show it. Runs of one task tell of one another."""
    from ..errors import bad_input

    if none and name is not None:
        raise bad_input(f"--none: it is given with the task {name!r}; leave one of them out")
    run = service.api.name_task(run_id, name) if none or name is not None else service.api.run(run_id)
    return Answer(run, f"{run['id']}  {_task(run)}")


def _task(run: dict[str, Any]) -> str:
    if run["recipe_id"] is not None:
        return "the task of its recipe"
    return run["task"] or "of no task: no other run tells how it will end"


@app.command()
@asks_service
def pause(
    service: Service,
    run_id: RunId,
    reason: Reason = None,
) -> Answer:
    """Pause a run: it ends as for a stop, and another run gets its place. Go on with it by `run resume`."""
    run = service.api.pause_run(run_id, reason)
    return Answer(run, f"{run['id']}  {run['status']}{'' if run['status'] == 'paused' else '; pause is asked'}")


@app.command()
@asks_service
def archive(service: Service, run_id: RunId) -> Answer:
    """Put a run that is over away: out of lists, inbox and counts, and no forecast learns from it."""
    run = service.api.archive_run(run_id)
    return Answer(run, f"{run['id']}  archived; `forecurve run restore {run['id']}` takes it out again")


@app.command()
@asks_service
def restore(service: Service, run_id: PutAway) -> Answer:
    """Take a run out of the archive."""
    run = service.api.restore_run(run_id)
    return Answer(run, f"{run['id']}  {run['status']}; it is listed again")


@app.command()
@asks_service
def resume(service: Service, run_id: RunId) -> Answer:
    """Queue a paused run; it goes on from its newest checkpoint."""
    run = service.api.resume_run(run_id)
    return Answer(run, f"{run['id']}  {run['status']}")


@app.command()
@asks_service
def stop(
    service: Service,
    run_id: RunId,
    reason: Reason = None,
) -> Answer:
    """Stop a run: it finishes its step, evaluates and writes a checkpoint first."""
    run = service.api.stop_run(run_id, reason)
    return Answer(run, f"{run['id']}  {run['status']}; stop is asked")


@app.command()
@asks_service
def cancel(service: Service, run_id: RunId, reason: Reason = None) -> Answer:
    """End a run at once, without waiting for a checkpoint: for one that does not react to stop."""
    run = service.api.cancel_run(run_id, reason)
    return Answer(run, f"{run['id']}  {run['status']}; cancel is asked")


@app.command()
def watch(
    run_id: RunId,
    every: Annotated[float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks.")] = 2.0,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Follow a run until it is over: a line per evaluation. Exit 1 when the run failed."""
    from ..asking.connection import connect
    from ..showing.runs import follow

    with connect(url, token, data_dir) as api:
        status = follow(api, find_id(api, Named("run"), run_id), every_s=every, as_json=as_json)
    if status == "failed":
        raise typer.Exit(1)


app.command("import")(import_runs)
app.command("tag")(tag_run)
app.command("note")(note_run)
app.command()(follow)
for command in (recipe, forks, checkpoints, attempts, logs, events, metrics, forecast, export):
    app.command()(command)
