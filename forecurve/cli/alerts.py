"""`forecurve alerts`, `forecurve login`, `forecurve sync`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import DATA_DIR, AsJson, DataDir, Limit, Token, Url


def alerts(
    only_open: Annotated[bool, typer.Option("--open", help="Only alerts that are not resolved.")] = False,
    run: Annotated[str | None, typer.Option(help="Only alerts of this run.")] = None,
    limit: Limit = 50,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """List alerts, newest first."""
    from .connection import connect
    from .output import print_json, print_table, since

    with connect(url, token, data_dir) as api:
        items = list(api.alerts(run_id=run, open=only_open or None, limit=limit))
    if as_json:
        print_json({"items": items})
    elif items:
        rows = [(item["level"], item["run_id"], since(item["opened_at"]), item["text"]) for item in items]
        print_table(["level", "run", "opened", "what"], rows)
    else:
        print("No alerts.")


def sync(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Folder of an offline run: .forecurve/offline-...")
    ],
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Send what a run kept offline. May be called again after a failure; nothing is doubled."""
    from forecurve.client.sync import sync as send

    from .connection import service
    from .output import print_json

    synced = send(directory, *service(url, token, data_dir))
    if as_json:
        print_json({"run_id": synced.run_id, "sent": synced.sent, "refused": synced.refused})
    else:
        refused = f", {synced.refused} refused (see rejected.jsonl)" if synced.refused else ""
        print(f"{synced.run_id}  {synced.sent} reports sent{refused}")
