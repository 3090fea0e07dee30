"""Curves from a file named on the command line: the flag that says their range, and every fault in one line."""

from __future__ import annotations

import codecs
import json
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forecurve.science import Curve

Bounds = tuple[float, float]
_PERCENT = 100.0

STDIN = Path("-")


def from_stdin(context: typer.Context, file: Path) -> Path:
    """`-` as a file that is there until the command ends, for a command may read its file more than once."""
    if file != STDIN or context.resilient_parsing:
        return file
    folder = tempfile.TemporaryDirectory()
    context.call_on_close(folder.cleanup)
    text = sys.stdin.buffer.read().removeprefix(codecs.BOM_UTF8)
    kept = Path(folder.name) / f"stdin{_suffix_of(text)}"
    kept.write_bytes(text)
    return kept


def _suffix_of(text: bytes) -> str:
    """What comes without a name is known by how it begins."""
    if text.startswith(b"PAR1"):
        return ".parquet"
    first = text.lstrip()[:1]
    if first == b"[" or (first == b"{" and _has_items(text)):
        return ".json"
    return ".jsonl" if first == b"{" else ".csv"


def _has_items(text: bytes) -> bool:
    """Whether it is one object with its rows in `items`, wherever these stand in it; JSONL has an object a line."""
    if re.match(rb'\s*\{\s*"items"\s*:', text):  # so even where the rest of it is damaged
        return True
    try:
        return "items" in json.loads(text)
    except (ValueError, RecursionError):
        return False


CurveFile = Annotated[
    Path,
    typer.Argument(
        callback=from_stdin,
        help="CSV, JSONL, JSON or Parquet: series,compute,reward[,prompts,samples,seed]; without series, one run's. "
        "- is stdin.",
    ),
]
Range = Annotated[
    str | None, typer.Option("--range", metavar="LOW,HIGH", help="The range of rewards, e.g. 0,100 for percent.")
]


def read_arms(
    file: Path,
    unit: str | None,
    stated: str | None,
    series: Iterable[str] | None = None,
    left_out: dict[str, int] | None = None,
    needed: str | None = None,
) -> dict[str, list[Curve]]:
    """The curves of a file by the name of their series; `stated` is what came with --range."""
    from forecurve import curve_files
    from forecurve.curve_cells import CurveFileError
    from forecurve.signs import is_obeyed

    from ..errors import bad_input

    bounds = bounds_of_flag(stated)
    if unit is not None and (not unit.strip() or any(is_obeyed(sign) for sign in unit)):
        raise bad_input(f"--unit: a name on one line is needed, got {unit!r}; give one such as GPU-hours")
    try:
        arms = curve_files.read_arms(
            file, unit=unit, series=series or None, bounds=bounds, left_out=left_out, needed=needed
        )
    except CurveFileError as error:
        text = str(error).replace("bounds=(low, high)", "--range LOW,HIGH")  # as it is called here
        fault = {"field": error.field, "value": str(error.value), "message": text}
        names = (file.name, str(file), str(file.resolve()))  # one of which begins the line anyway
        if error.field == "file" and error.value in names:
            text = f"{error.message}; {error.way_out}"
        raise bad_input(f"{file.name or file}: {text}", errors=[fault]) from error
    _ask_of_shares(arms, bounds)
    return arms


def _ask_of_shares(arms: dict[str, list[Curve]], bounds: Bounds) -> None:
    """A range of percent is the wrong one for shares; it is no error, as rewards may be that low."""
    low, high = bounds
    rewards = [curve.reward for curves in arms.values() for curve in curves]
    if high >= _PERCENT and all(reward.min() >= 0 and reward.max() <= 1 for reward in rewards):
        said = f"--range {low:g},{high:g}: every reward lies between 0 and 1; if these are shares, leave it out"
        typer.echo(said, err=True)


def read_curves(file: Path, unit: str | None, stated: str | None, series: Iterable[str] | None = None) -> list[Curve]:
    """All of them, the seeds of a series together."""
    return [curve for curves in read_arms(file, unit, stated, series).values() for curve in curves]


def read_long_curves(file: Path, unit: str | None, stated: str | None) -> list[Curve]:
    """Those of `read_long_arms`."""
    return [curve for curves in read_long_arms(file, unit, stated).values() for curve in curves]


def read_long_arms(
    file: Path, unit: str | None, stated: str | None, needed: str | None = None
) -> dict[str, list[Curve]]:
    """Those that have evaluations enough; of the others it is said on stderr that they are left out, but for `needed`,
    which is refused then."""
    from forecurve.science.checks import MIN_POINTS

    short: dict[str, int] = {}
    arms = read_arms(file, unit, stated, left_out=short, needed=needed)
    for name, points in short.items():
        typer.echo(
            f"{name} is left out: {points} of the {MIN_POINTS} evaluations that a forecast needs at least", err=True
        )
    return arms


def bounds_of_flag(stated: str | None) -> Bounds:
    """The range of rewards that came with --range; 0 to 1 where none did."""
    from forecurve.science import CurveError
    from forecurve.science.checks import bounds_of

    from ..errors import bad_input

    if stated is None:
        return 0.0, 1.0
    way_out = "give LOW,HIGH, e.g. 0,100 for percent"
    parts = stated.split(",")
    if len(parts) != 2:
        raise bad_input(f"--range: two numbers with a comma between are needed, got {stated!r}; {way_out}")
    try:
        return bounds_of((float(parts[0]), float(parts[1])))
    except CurveError as error:
        raise bad_input(f"--range: {error.message}, got {stated}; {way_out}") from error
    except ValueError as error:
        raise bad_input(f"--range: two numbers are needed, got {stated!r}; {way_out}") from error
