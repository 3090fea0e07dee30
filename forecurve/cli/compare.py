"""`forecurve compare FILE --control S`: what each arm of a sweep changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forecurve.science import Comparison, Curve

_ROPE, _LEVEL = 0.02, 0.95


def compare_command(
    file: Annotated[Path, typer.Argument(help="CSV, JSONL or Parquet: series,compute,reward[,prompts,samples,seed].")],
    control: Annotated[str, typer.Option("--control", help="The series that all others are compared with.")],
    series: Annotated[list[str] | None, typer.Option("--series", help="Only this arm; may be repeated.")] = None,
    rope: Annotated[float, typer.Option("--rope", help="Ceilings within this are the same in practice.")] = _ROPE,
    level: Annotated[float, typer.Option("--level", help="Certainty of all claims together.")] = _LEVEL,
    seed_sd: Annotated[
        float | None, typer.Option("--seed-sd", help="Standard deviation of the ceiling between seeds, if known.")
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Compare the series of FILE with one of them: ceiling, efficiency, no difference shown, or undecided."""
    from .output import print_json

    arms = _arms(file, unit, series, control)
    compared = _compared(arms, control, rope, level, seed_sd)
    if as_json:
        print_json(compared.to_dict())
        return
    _show(compared)


def _arms(file: Path, unit: str | None, series: list[str] | None, control: str) -> dict[str, list[Curve]]:
    from forecurve.curve_files import CurveFileError, read_arms

    from .errors import bad_input

    try:
        return read_arms(file, unit=unit, series=dict.fromkeys([control, *series]) if series else None)
    except CurveFileError as error:
        raise bad_input(f"{file.name}: {error}") from error


def _compared(
    arms: dict[str, list[Curve]], control: str, rope: float, level: float, seed_sd: float | None
) -> Comparison:
    from forecurve.science import CompareError, compare

    from .errors import bad_input

    try:
        return compare(arms, control, rope=rope, level=level, seed_sd=seed_sd)
    except CompareError as error:
        raise bad_input(str(error)) from error


def _show(compared: Comparison) -> None:
    from .output import print_table

    rows = compared.table
    print_table(list(rows[0]), [list(row.values()) for row in rows], right=["seeds"])
    typer.echo()
    for arm in compared.arms:
        note = "" if arm.seed_note is None else f" ({arm.seed_note})"
        typer.echo(f"{arm.reason}{note}")
    typer.echo(compared.sentence)
