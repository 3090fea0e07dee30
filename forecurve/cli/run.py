"""`forecurve run`: submit, list, show, stop, watch."""

from __future__ import annotations

from typing import Annotated

import typer

from .flags import DATA_DIR, AsJson, Changes, DataDir, Limit, Preset, RecipeFile, Token, Url

app = typer.Typer(no_args_is_help=True, help="Single runs: submit, list, show, stop, watch.")

RunId = Annotated[str, typer.Argument(metavar="RUN")]


@app.command()
def submit(
    preset: Preset = None,
    recipe: RecipeFile = None,
    changes: Changes = None,
    name: Annotated[str | None, typer.Option(help="What the run is called.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Queue one run of a recipe."""
    import secrets

    from .connection import connect
    from .output import print_json
    from .recipe_input import run_request

    body = run_request(preset, recipe, changes, name)
    with connect(url, token, data_dir) as api:
        run = api.create_run(body, idempotency_key=secrets.token_hex(16))
        page = f"{api.url}/runs/{run['id']}"
    if as_json:
        print_json(run)
    else:
        print(f"{run['id']}  {run['status']}  {page}")


@app.command("list")
def list_runs(
    status: Annotated[str | None, typer.Option(help="Only runs in this state.")] = None,
    sweep: Annotated[str | None, typer.Option(help="Only runs of this sweep.")] = None,
    limit: Limit = 50,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from .connection import connect
    from .output import print_json, print_table
    from .run_rows import NUMERIC, RUN_COLUMNS, run_row

    with connect(url, token, data_dir) as api:
        runs = list(api.runs(status=status, sweep_id=sweep, limit=limit))
    if as_json:
        print_json({"items": runs})
    elif runs:
        print_table(RUN_COLUMNS, [run_row(run) for run in runs], right=NUMERIC)
    else:
        print("No runs. Try: forecurve run submit --preset scalerl")


@app.command()
def show(
    run_id: RunId, url: Url = None, token: Token = None, data_dir: DataDir = DATA_DIR, as_json: AsJson = False
) -> None:
    """Show a run: state, newest evaluation, forecast, advice."""
    from .connection import connect
    from .output import print_json
    from .run_view import describe

    with connect(url, token, data_dir) as api:
        run = api.run(run_id)
    if as_json:
        print_json(run)
    else:
        print("\n".join(describe(run)))


@app.command()
def stop(
    run_id: RunId,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the log.")] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Do not wait for a checkpoint.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Stop a run: it finishes its step, evaluates and writes a checkpoint first."""
    from .connection import connect
    from .output import print_json

    with connect(url, token, data_dir) as api:
        run = api.cancel_run(run_id, reason) if cancel else api.stop_run(run_id, reason)
    if as_json:
        print_json(run)
    else:
        print(f"{run['id']}  {run['status']}; {'cancel' if cancel else 'stop'} is asked")


@app.command()
def watch(
    run_id: RunId,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between two looks.")] = 2.0,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Follow a run until it is over: a line per evaluation. Exit 1 when the run failed."""
    from .connection import connect
    from .run_view import follow

    with connect(url, token, data_dir) as api:
        status = follow(api, run_id, every_s=every, as_json=as_json)
    if status == "failed":
        raise typer.Exit(1)
