"""`forecurve compare FILE --control S`: what each arm of a sweep changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..given.before_fits import before_fits
from ..given.curves import CurveFile, Range, read_arms, read_long_arms
from ..showing.figures import HtmlFlag, write_page

if TYPE_CHECKING:
    from forecurve.science import Comparison, Curve

_FLAGS = {"control": "--control", "level": "--level", "seed sd": "--seed-sd"}
"""By what is at fault."""


def compare_command(
    file: CurveFile,
    control: Annotated[
        str, typer.Option("--control", help="What all others are compared with: a series, or a seed of one.")
    ],
    series: Annotated[list[str] | None, typer.Option("--series", help="Only this arm; may be repeated.")] = None,
    rope: Annotated[
        float | None,
        typer.Option("--rope", show_default="0.02 of the range", help="Ceilings within this are the same in practice."),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Certainty of all claims together.")] = 0.95,
    seed_sd: Annotated[
        float | None, typer.Option("--seed-sd", help="Standard deviation of the ceiling between seeds, if known.")
    ] = None,
    past: Annotated[
        list[Path] | None,
        typer.Option(
            "--past", metavar="FILE", help="Past sweeps with seeds: how far seeds lie apart; may be repeated."
        ),
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    range_: Range = None,
    html: HtmlFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Compare the series of FILE with one of them: ceiling, efficiency, no difference shown, or undecided."""
    before_fits()
    from ..given.amounts import check_difference
    from ..showing.output import print_json

    arms = _arms(file, unit, range_, control, series)
    for flag, value in (("--rope", rope), ("--seed-sd", seed_sd)):
        check_difference(flag, value, next(iter(arms.values())))
    known = _known_seeds(file, arms, past or [], seed_sd, unit, range_)
    compared = _compared(arms, control, rope, level, known)
    if html is not None:
        write_page(html, f"What each arm changed against {control}", [("All arms", compared.plot)])
    if as_json:
        print_json(compared.to_dict())
        return
    _show(compared)


def _arms(
    file: Path, unit: str | None, range_: str | None, control: str, series: list[str] | None
) -> dict[str, list[Curve]]:
    """All that are long enough; those that are asked for have to be, and so has the control."""
    if series:
        return _apart(read_arms(file, unit, range_, dict.fromkeys([control, *series])), control)
    return _apart(read_long_arms(file, unit, range_, needed=control), control)


def _apart(arms: dict[str, list[Curve]], control: str) -> dict[str, list[Curve]]:
    """The control as an arm of its own, also where it is one seed of a series; the others of that are an arm then."""
    found: dict[str, list[Curve]] = {}
    for name, curves in arms.items():
        others = [curve for curve in curves if name == control or curve.name != control]
        if len(others) < len(curves):
            found[control] = [curve for curve in curves if curve.name == control]
        if others:
            is_single = len(others) == 1 < len(curves)
            found[others[0].name if is_single else name] = others
    return found


def _known_seeds(
    file: Path,
    arms: dict[str, list[Curve]],
    past: list[Path],
    seed_sd: float | None,
    unit: str | None,
    range_: str | None,
) -> dict[str, Any]:
    """What is known of the spread between seeds, as `compare` takes it, without runs of the sweep itself."""
    from forecurve.science import fit, pool_seeds

    from ..errors import bad_input

    if not past:
        return {"seed_sd": seed_sd}
    if seed_sd is not None:
        raise bad_input(f"--seed-sd: {seed_sd:g} is given and --past would tell it; leave one of them out")
    if file.resolve() in [one.resolve() for one in past]:
        raise bad_input(f"--past: {file} is the sweep itself, whose seeds count already; name files of other sweeps")
    own = {curve.identity for curves in arms.values() for curve in curves}
    told = [curves for one in past for curves in read_long_arms(one, unit, range_).values()]
    others = [[curve for curve in curves if curve.identity not in own] for curves in told]
    pooled = pool_seeds([[fit(curve) for curve in curves] for curves in others if len(curves) > 1])
    if not pooled.ceiling.past:
        typer.echo(
            "--past: beside the sweep's own runs no arm in it has two seeds with a ceiling that is identified; it "
            "tells nothing",
            err=True,
        )
    return {"seed_sd": pooled.ceiling, "seed_sd_log_compute": pooled.log_compute}


def _compared(
    arms: dict[str, list[Curve]], control: str, rope: float | None, level: float, known: dict[str, Any]
) -> Comparison:
    from forecurve.science import CompareError, compare

    from ..errors import bad_input

    try:
        return compare(arms, control, rope=rope, level=level, **known)
    except CompareError as error:
        flag = _FLAGS.get(error.field)
        raise bad_input(str(error) if flag is None else flag + str(error).removeprefix(error.field)) from error


def _show(compared: Comparison) -> None:
    from ..showing.output import print_table

    rows = compared.table
    print_table(list(rows[0]), [list(row.values()) for row in rows], right=["seeds"])
    typer.echo()
    for arm in compared.arms:
        note = "" if arm.seed_note is None else f" ({arm.seed_note})"
        typer.echo(f"{arm.reason}{note}")
    typer.echo(compared.sentence)
    typer.echo(f"{compared.seed_note.capitalize()}.")
