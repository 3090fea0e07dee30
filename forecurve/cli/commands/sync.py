"""`forecurve sync`: what a run kept is sent to the service."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..given.flags import DATA_DIR, AsJson, DataDir, Token, Url

if TYPE_CHECKING:
    from forecurve.client import Synced


def sync(
    context: typer.Context,
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
    service, unless --url names another address of it. Exit 1 when the service refused a report, or the run still goes
    on.
    """
    from forecurve.client.sync import kept_service
    from forecurve.client.sync import sync as send

    from ..asking.connection import service
    from ..showing.output import print_json

    address = (_said(context, url), None) if kept_service(directory) else service(url, token, data_dir)
    synced = send(directory, *address)
    if as_json:
        counts = {"run_id": synced.run_id, "sent": synced.sent, "refused": synced.refused}
        print_json(counts | {"refusal": synced.refusal, "kept_in": [str(path) for path in synced.kept_in]})
    else:
        _say(synced)
    if synced.refused:
        raise typer.Exit(1)


def _said(context: typer.Context, url: str | None) -> str | None:
    """The URL of --url alone. FORECURVE_URL may name another service, which is not to see the run's own token."""
    source = context.get_parameter_source("url")
    return url if source is not None and source.name == "COMMANDLINE" else None


def _say(synced: Synced) -> None:
    refused = f", {synced.refused} refused" if synced.refused else ""
    print(f"{synced.run_id}  {synced.sent} reports sent{refused}")
    if synced.refusal:
        print(f"Refused: {synced.refusal}", file=sys.stderr)
    if synced.kept_in:
        when = "" if synced.refused else " before"
        kept_in = ", ".join(map(str, synced.kept_in))
        print(f"What was refused{when} is in no curve and not sent again: {kept_in}", file=sys.stderr)
