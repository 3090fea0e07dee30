"""`forecurve sweep`: plan, submit, list, show, stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .flags import DATA_DIR, AsJson, DataDir, Limit, Token, Url

app = typer.Typer(no_args_is_help=True, help="Ablation sweeps: plan, submit, list, show, stop.")

SweepFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML with preset or recipe, changes, design, and maybe name and policy.")
]
SweepId = Annotated[str, typer.Argument(metavar="SWEEP")]


@app.command()
def plan(
    file: SweepFile, url: Url = None, token: Token = None, data_dir: DataDir = DATA_DIR, as_json: AsJson = False
) -> None:
    """Show the arms a sweep would have, their differences and their compute. Creates nothing."""
    from .connection import connect
    from .output import changes, compute, print_json, print_table
    from .recipe_input import sweep_request

    body = sweep_request(file)
    body.pop("policy", None)  # decides nothing about the plan
    with connect(url, token, data_dir) as api:
        planned = api.plan_sweep(body)
    if as_json:
        print_json(planned)
        return
    print_table(["arm", "change"], [(arm["name"], changes(arm["changes"])) for arm in planned["arms"]])
    total = planned["compute"]
    print(
        f"\n{planned['runs']} runs, {compute(total['total'], total['unit'])} in all; plan {planned['plan_hash'][:12]}"
    )


@app.command()
def submit(
    file: SweepFile,
    plan_hash: Annotated[str | None, typer.Option(help="Submit only if it is still this plan.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Create a sweep and queue its runs."""
    import secrets

    from .connection import connect
    from .output import print_json
    from .recipe_input import sweep_request

    body = sweep_request(file) | ({"plan_hash": plan_hash} if plan_hash else {})
    with connect(url, token, data_dir) as api:
        sweep = api.create_sweep(body, idempotency_key=secrets.token_hex(16))
        page = f"{api.url}/sweeps/{sweep['id']}"
    if as_json:
        print_json(sweep)
    else:
        print(f"{sweep['id']}  {len(sweep.get('runs', []))} runs queued  {page}")


@app.command("list")
def list_sweeps(
    limit: Limit = 50, url: Url = None, token: Token = None, data_dir: DataDir = DATA_DIR, as_json: AsJson = False
) -> None:
    """List sweeps, newest first."""
    from .connection import connect
    from .output import print_json, print_table, since

    with connect(url, token, data_dir) as api:
        items = list(api.sweeps(limit=limit))
    if as_json:
        print_json({"items": items})
        return
    rows = [
        (item["id"], item["name"], item["design"].get("kind"), item["policy"], since(item["created_at"]))
        for item in items
    ]
    print_table(["sweep", "name", "design", "policy", "created"], rows)


@app.command()
def show(
    sweep_id: SweepId, url: Url = None, token: Token = None, data_dir: DataDir = DATA_DIR, as_json: AsJson = False
) -> None:
    """Show a sweep's arms: state, pass rate now, ceiling, forecast at budget, advice."""
    from .connection import connect
    from .output import print_json, print_table
    from .run_rows import ARM_COLUMNS, NUMERIC, arm_row

    with connect(url, token, data_dir) as api:
        sweep = api.sweep(sweep_id)
    if as_json:
        print_json(sweep)
        return
    print_table(ARM_COLUMNS, [arm_row(run) for run in sweep.get("runs", [])], title=sweep["name"], right=NUMERIC)
    if sentence := sweep.get("sentence"):
        print(f"\n{sentence}")


@app.command()
def stop(
    sweep_id: SweepId,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the log.")] = None,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Stop every run of a sweep that is not over."""
    from .connection import connect
    from .output import print_json

    with connect(url, token, data_dir) as api:
        sweep: dict[str, Any] = api.stop_sweep(sweep_id, reason)
    if as_json:
        print_json(sweep)
    else:
        print(f"{sweep_id}: its runs are asked to stop; each writes a checkpoint first")
