"""`forecurve sync`: what a run kept is sent to the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import DATA_DIR, AsJson, DataDir, Token, Url


def sync(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="Folder of a run: .forecurve/offline-... or .forecurve/run_...")
    ],
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Send what a run kept offline, or could not send before it ended.

    May be called again after a failure; nothing is doubled. A run that the service has made already is sent to that
    service, unless --url names another address of it.
    """
    from forecurve.client.sync import kept_service
    from forecurve.client.sync import sync as send

    from .connection import service
    from .output import print_json

    address = (url, token) if kept_service(directory) else service(url, token, data_dir)
    synced = send(directory, *address)
    if as_json:
        print_json({"run_id": synced.run_id, "sent": synced.sent, "refused": synced.refused})
    else:
        refused = f", {synced.refused} refused (see rejected.jsonl)" if synced.refused else ""
        print(f"{synced.run_id}  {synced.sent} reports sent{refused}")
