"""`forecurve backtest FILE...`: how good forecasts from the first part of finished runs would have been."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..given.before_fits import before_fits
from ..given.curves import STDIN, Range, from_stdin, read_long_curves
from ..showing.figures import HtmlFlag, write_page
from .fit import PriorChoice

if TYPE_CHECKING:
    from forecurve.science import Curve
    from forecurve.science.backtesting.backtest import Progress
    from forecurve.science.backtesting.rows import Backtest, Summary


def backtest_command(
    context: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files of finished runs, as `forecurve fit` takes them; - is stdin."),
    ],
    fractions: Annotated[
        str, typer.Option("--fractions", help="Shares of each run's compute to forecast from.")
    ] = "0.1,0.25,0.5",
    prior: Annotated[
        PriorChoice, typer.Option("--prior", help="siblings: the other series of the same file at full length.")
    ] = PriorChoice.none,
    baselines: Annotated[
        str, typer.Option("--baselines", help="Beside it: paper-grid, power-law, last-value; with commas between.")
    ] = "",
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    range_: Range = None,
    html: HtmlFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Forecast finished runs from their first part, and compare with how they ended."""
    before_fits()
    from ..showing.output import print_json

    shares, names = _shares(fractions), _names(baselines)
    readable = {file: from_stdin(context, file) for file in dict.fromkeys(files)}
    # all of them first: bad input shows before the work
    curves = {file: read_long_curves(found, unit, range_) for file, found in readable.items()}
    called = _called(curves)
    found = {file: _backtest(called[file], curves[file], shares, prior, names) for file in curves}
    for file, of_file in curves.items():
        _say_what_is_too_early(called[file], of_file, shares)
    if html is not None:
        drawings = [(called[file], one.plot) for file, one in found.items()]
        write_page(html, "How good forecasts would have been", drawings)
    if as_json:
        print_json(_body(found))
        return
    _show({called[file]: one for file, one in found.items()})


def _shares(text: str) -> list[float]:
    from ..errors import bad_input

    way_out = "give numbers above 0 and below 1 with commas between, e.g. 0.1,0.25,0.5"
    shares = []
    for part in text.split(","):
        try:
            share = float(part)
        except ValueError as error:
            raise bad_input(f"--fractions: a number is needed, got {part.strip()!r}; {way_out}") from error
        if not 0 < share < 1:
            raise bad_input(f"--fractions: a share of the run is needed, got {part.strip()}; {way_out}")
        shares.append(share)
    return list(dict.fromkeys(shares))


def _say_what_is_too_early(file: str, curves: list[Curve], shares: list[float]) -> None:
    """Of shares at which no run can be forecast: every figure there is empty, which tells nobody why."""
    from forecurve.science.checks import MIN_POINTS

    first = min(float(curve.compute[MIN_POINTS - 1] / curve.now) for curve in curves)
    early = ", ".join(f"{share:g}" for share in shares if share < first)
    if early:
        share = math.ceil(1000 * first) / 1000
        from_there = f"from {share:g} on the first has" if share < 1 else "give longer runs"
        text = f"at {early} of its compute no run has the {MIN_POINTS} evaluations that a forecast needs; {from_there}"
        typer.echo(f"{file}: {text}", err=True)


def _names(text: str) -> list[str]:
    from forecurve.science.backtesting.backtest import BASELINES

    from ..errors import bad_input

    names = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for name in names:
        if name not in BASELINES:
            raise bad_input(f"--baselines: no such baseline, got {name}; use {','.join(BASELINES)}")
    return names


def _called(files: Collection[Path]) -> dict[Path, str]:
    """What each file is called in a table: its name, or where several have that one its path as it was given."""
    names = Counter(file.name for file in files)
    return {file: "stdin" if file == STDIN else file.name if names[file.name] == 1 else str(file) for file in files}


def _backtest(file: str, curves: list[Curve], shares: list[float], prior: PriorChoice, names: list[str]) -> Backtest:
    """One file, with a bar on stderr while a person waits."""
    import sys

    from rich.console import Console
    from rich.progress import Progress as Bar

    from forecurve.science import backtest

    with Bar(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(file, total=None)
        move: Progress = lambda done, total: bar.update(task, completed=done, total=total)  # noqa: E731
        return backtest(curves, fractions=shares, prior=prior.value, baselines=names, progress=move)


def _body(found: dict[Path, Backtest]) -> dict[str, list[dict[str, Any]]]:
    """One object over all the files; each row says which it is of."""
    bodies = {str(file): one.to_dict() for file, one in found.items()}
    return {
        part: [{"file": file, **row} for file, body in bodies.items() for row in body[part]]
        for part in ("series", "summary")
    }


def _show(found: dict[str, Backtest]) -> None:
    from ..showing.output import print_table

    columns = ["file", "seen", "method", "runs", "MAE", "median", "max", "coverage", "width", "withheld"]
    rows = [_row(file, one) for file, backtest in found.items() for one in backtest.summary]
    print_table(columns, rows, right=columns[3:])
    for file, backtest in found.items():
        typer.echo(f"{file}: {_calibrations(backtest)}.")


def _row(file: str, one: Summary) -> list[str]:
    from ..showing.output import number

    return [
        file,
        f"{100 * one.fraction:.10g} %",
        one.method,
        str(one.n),
        *(_error(value) for value in (one.mae, one.median, one.max)),
        number(one.coverage),
        _error(one.width),
        str(one.withheld),
    ]


def _calibrations(backtest: Backtest) -> str:
    """Which calibration was used, in the order in which they first appear."""
    labels = dict.fromkeys(row.calibration for row in backtest.rows if row.calibration)
    if not labels:
        return "no forecast, as every run has fewer than 3 evaluations at these fractions"
    return f"intervals are {' or '.join(labels)}"


def _error(value: float | None) -> str:
    """To a thousandth, or to three digits where rewards have another range than from 0 to 1."""
    from ..showing.output import number

    usual = value is None or value == 0 or 0.001 <= value < 10
    return number(value, 3) if usual else f"{value:.3g}"
