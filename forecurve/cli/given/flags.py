"""Flags that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..asking.naming import Named

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
RunId = Annotated[str, Named("run"), typer.Argument(metavar="RUN", help="Its id, or its name.")]
SweepId = Annotated[str, Named("sweep"), typer.Argument(metavar="SWEEP", help="Its id, or its name.")]
Tagged = Annotated[list[str] | None, typer.Option("--tag", help="Only those with this tag; with all, if repeated.")]
NewTags = Annotated[list[str] | None, typer.Option("--tag", help="A tag to find it by; may be repeated.")]
NewNote = Annotated[str | None, typer.Option("--note", help="What it is for, in words.")]
OfMetric = Annotated[
    str | None, typer.Option("--metric", help="The values of this metric in place of the evaluations.")
]
OfRun = Annotated[str | None, Named("run"), typer.Option("--run", help="Only those of this run.")]
OfSweep = Annotated[str | None, Named("sweep"), typer.Option("--sweep", help="Only runs of this sweep.")]
RecipeFile = Annotated[Path | None, typer.Option("--recipe", help="A recipe in YAML or JSON.")]

DATA_DIR = Path(".data")
