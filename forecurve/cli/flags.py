"""Flags that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None, typer.Option("--url", envvar="FORECURVE_URL", help="The service; else the one of --data-dir.")
]
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="FORECURVE_TOKEN", help="API token; else the one of --data-dir.", show_envvar=True),
]
DataDir = Annotated[
    Path, typer.Option("--data-dir", envvar="FORECURVE_DATA_DIR", help="Data directory of a local `forecurve up`.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most, newest first.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the recipe; may be repeated."),
]
Preset = Annotated[str | None, typer.Option("--preset", help="A preset's name; see `forecurve recipe presets`.")]
RunId = Annotated[str, typer.Argument(metavar="RUN")]
RecipeFile = Annotated[Path | None, typer.Option("--recipe", help="A recipe in YAML or JSON.")]

DATA_DIR = Path(".data")
