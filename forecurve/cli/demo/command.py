"""The command's flags and exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from ..given.flags import DATA_DIR, AsJson, DataDir


def demo(
    data_dir: DataDir = DATA_DIR,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0 for any free one.")] = 8400,
    leave: Annotated[bool, typer.Option("--exit", help="End after the table; exit 1 when any part failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start everything, train a leave-one-out sweep of ScaleRL on the testbed, show forecasts, an alert and a table.

    One extra run's learning rate is broken half-way, so that it falls below its own forecast and raises the alert.
    """
    from ..embedded import require_embedded

    require_embedded()
    from .show import run_demo

    raise typer.Exit(run_demo(data_dir, port, leave=leave, as_json=as_json))
