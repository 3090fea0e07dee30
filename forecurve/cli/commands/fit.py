"""`forecurve fit FILE`: forecasts of the curves in a file."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from forecurve.digits import as_given

from ..given.before_fits import before_fits
from ..given.curves import CurveFile, Range, read_curves, read_long_curves
from ..showing.figures import HtmlFlag, write_page

if TYPE_CHECKING:
    from forecurve.science import Advice, Curve, Fit, Hindsight


_WITHHELD = "withheld"


class PriorChoice(StrEnum):
    """What is assumed of a run before its own data."""

    none = "none"
    paper = "paper"
    siblings = "siblings"


def fit_command(
    file: CurveFile,
    series: Annotated[list[str] | None, typer.Option("--series", help="Only this series; may be repeated.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Compute each run may spend.")] = None,
    target: Annotated[float | None, typer.Option("--target", help="A reward to reach.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    range_: Range = None,
    prior: Annotated[
        PriorChoice, typer.Option("--prior", help="siblings: the other series of the file.")
    ] = PriorChoice.none,
    html: HtmlFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Fit each curve of FILE: where it will end, how sure that is, and what to do."""
    before_fits()
    from ..given.amounts import check_compute
    from ..showing.output import print_json

    check_compute("--budget", budget)
    curves = read_curves(file, unit, range_, series) if series else read_long_curves(file, unit, range_)
    _check_target(curves, target)
    wanted = {curve.name for curve in curves}
    if prior is PriorChoice.siblings and series:
        curves = read_long_curves(file, unit, range_)  # the others serve as siblings
    asked = [_Asked(*told, budget, target) for told in _fits(curves, prior, wanted, budget)]
    if html is not None:
        write_page(
            html, "Where each curve ends", [(one.fit.curve.name, partial(one.fit.plot, budget)) for one in asked]
        )
    if as_json:
        print_json({"series": [one.fit.to_dict(**one.question) for one in asked]})
        return
    _show(asked)


def _check_target(curves: list[Curve], target: float | None) -> None:
    from ..errors import bad_input

    low, high = curves[0].bounds
    if target is not None and not low <= target <= high:
        told = f"no reward can be {as_given(target)}; rewards here are from {low:g} to {high:g} (--range)"
        raise bad_input(f"--target: {told}")


class _Asked(NamedTuple):
    """A series and what is asked of it."""

    fit: Fit
    hindsight: Hindsight | None
    budget: float | None
    target: float | None

    @property
    def question(self) -> dict[str, Any]:
        return {"budget": self.budget, "target": self.target, "hindsight": self.hindsight}


def _fits(
    curves: list[Curve], prior: PriorChoice, wanted: set[str], budget: float | None
) -> list[tuple[Fit, Hindsight | None]]:
    """The curves asked for; with siblings and a budget also how those that have spent theirs turned out."""
    from forecurve.science import Siblings, fit

    if prior is not PriorChoice.siblings:
        return [(fit(curve, prior=prior.value), None) for curve in curves if curve.name in wanted]
    siblings = Siblings(curves)
    fits = {at: siblings.fit(at, budget) for at, curve in enumerate(curves) if curve.name in wanted}
    _say_untold([one.curve.name for one in fits.values() if not one.prior.informative], budget)
    return [(one, None if budget is None else siblings.hindsight(one, budget, at)) for at, one in fits.items()]


def _say_untold(names: list[str], budget: float | None) -> None:
    """Which series are fitted as without siblings, in one line however many."""
    from forecurve.science.wording import names_text

    if not names:
        return
    far = "" if budget is None else " and is over, or far enough along"
    why = f"no other series has risen{far}, or it tells nothing; fitted without a prior of the curve"
    typer.echo(f"{names_text(names)}: {why}", err=True)


def _show(asked: list[_Asked]) -> None:
    from ..showing.output import print_table

    columns = ["series", "points", "now", "ceiling (90 %)", *_extra_columns(asked[0]), "advice"]
    print_table(columns, [_row(one) for one in asked], right=["points", "now"])
    typer.echo()
    for one in asked:
        typer.echo(f"{one.fit.curve.name}: {one.fit.sentence(**one.question)}{_ending(one)}")
        if one.target is not None:
            typer.echo(f"{one.fit.curve.name}: {_advice(one).action}: {_advice(one).reason}")


def _ending(asked: _Asked) -> str:
    """Where past runs have a say in it, how the run is expected to end and what that rests on."""
    from forecurve.science.advice.report import ending
    from forecurve.science.wording import ending_text

    end = ending(asked.fit, asked.budget, asked.hindsight)
    if end is None or asked.hindsight is None or not asked.hindsight.runs:
        return ""
    return f" {ending_text(end.estimate, end.calibration, end.compute, asked.fit.unit)}"


def _extra_columns(asked: _Asked) -> list[str]:

    unit, budget, target = asked.fit.unit, asked.budget, asked.target
    at = [] if budget is None else [f"at {as_given(budget)} {unit} (90 %)"]
    to = [] if target is None else [f"{unit} to {as_given(target)} (90 %)"]
    return at + to


def _row(asked: _Asked) -> list[str]:
    from forecurve.science.wording import reward_text

    fit, target = asked.fit, asked.target
    last = reward_text(float(fit.curve.reward[-1]), fit.curve.width)
    cells = [fit.curve.name, f"{fit.points:,}", last, _ceiling(fit)]
    if asked.budget is not None:
        cells.append(_at_budget(asked, asked.budget))
    if target is not None:
        cells.append(_reach(asked, target))
    return [*cells, _advice(asked).action]


def _ceiling(fit: Fit) -> str:
    from forecurve.science.wording import interval_text, level_text

    if fit.withheld:
        return _WITHHELD
    return _plain(level_text(fit.A)) if fit.ceiling_known else f"not known ({interval_text(fit.A)})"


def _at_budget(asked: _Asked, budget: float) -> str:
    """How the run is expected to end; where the budget is spent, where its curve stands there."""
    from forecurve.science import Estimate
    from forecurve.science.advice.report import at_budget, ending
    from forecurve.science.wording import level_text

    if asked.fit.withheld:
        return _WITHHELD
    end = ending(asked.fit, budget, asked.hindsight)
    return _plain(level_text(Estimate(**at_budget(asked.fit, budget)["curve"]) if end is None else end.estimate))


def _plain(text: str) -> str:
    return text.replace("90 %: ", "")


def _reach(asked: _Asked, target: float) -> str:
    from forecurve.science.wording import compute_text, share_text

    if asked.fit.withheld:
        return _WITHHELD
    reach = asked.fit.compute_to_reach(target, asked.budget, asked.hindsight)

    def end(value: float) -> str:
        return compute_text(value) if value < float("inf") else "never"

    if reach.p_never >= 0.95:
        return f"never: {share_text(reach.p_never)}"
    parts = [f"{end(reach.median)} ({end(reach.lower)} to {end(reach.upper)})"]
    if reach.p_never >= 0.005:
        parts.append(f"never: {share_text(reach.p_never)}")
    if reach.p_by_budget is not None and asked.budget is not None:
        parts.append(f"by {as_given(asked.budget)}: {share_text(reach.p_by_budget)}")
    return ", ".join(parts)


def _advice(asked: _Asked) -> Advice:
    from forecurve.science import advise

    return advise(asked.fit, **asked.question)
