"""Flags that say how the logs of other tools are read, and every fault of one in a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

Found = TypeVar("Found")

Metric = Annotated[
    str | None, typer.Option("--metric", help="The reward; else the only one that looks like a held-out rate.")
]
Compute = Annotated[
    str | None, typer.Option("--compute", help="A logged number as compute; else the step or the x axis.")
]
PerStep = Annotated[float | None, typer.Option("--per-step", help="Compute of one step, or of one unit of --compute.")]
LogUnit = Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")]
RunPatterns = Annotated[
    list[str] | None, typer.Option("--run", metavar="PATTERN", help="Only such runs (grpo-*); may be repeated.")
]
Prompts = Annotated[int | None, typer.Option("--prompts", min=1, help="Prompts of every evaluation.")]
Samples = Annotated[int | None, typer.Option("--samples", min=1, help="Samples of every prompt.")]

_FLAGS = {"metric", "compute", "per-step", "series", "seed", "run", "unit"}  # fields of faults that are flags here


def or_refused(work: Callable[[], Found], *, ranged_by: str = "--range LOW,HIGH") -> Found:
    """What it finds; a fault as one line, with flags called as they are on the command line.

    Args:
        ranged_by: what states the range of rewards.
    """
    from forecurve.curve_cells import CurveFileError

    from ..errors import bad_input

    try:
        return work()
    except CurveFileError as error:
        text, name = str(error).replace("bounds=(low, high)", ranged_by), error.field
        if error.field in _FLAGS:
            text, name = f"--{text}", f"--{name}"
        fault = {"field": name, "value": str(error.value), "message": text}
        raise bad_input(text, errors=[fault]) from error
