"""`forecurve plan FILE --budget C`: which arms of a sweep to run how far next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..given.before_fits import before_fits
from ..given.curves import CurveFile, Range, read_arms, read_long_arms
from ..showing.figures import HtmlFlag, write_page
from .fit import PriorChoice

if TYPE_CHECKING:
    from forecurve.science import Plan


def plan_command(
    file: CurveFile,
    budget: Annotated[float, typer.Option("--budget", help="Further compute over all runs together.")],
    horizon: Annotated[
        float | None, typer.Option("--horizon", help="Compute of a full run, where arms are compared.")
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", show_default="0.01 of the range", help="The least difference in reward that matters."),
    ] = None,
    price: Annotated[
        float | None, typer.Option("--price", help="The least gain in reward per unit of compute worth paying for.")
    ] = None,
    series: Annotated[list[str] | None, typer.Option("--series", help="Only this series; may be repeated.")] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    range_: Range = None,
    prior: Annotated[
        PriorChoice, typer.Option("--prior", help="siblings: the runs inform one another; none: each for itself.")
    ] = PriorChoice.siblings,
    html: HtmlFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Plan the next compute of the unfinished arms in FILE: which is likely best, what to run, which to drop.

    Seeds of a series are one arm, which is chosen by their mean.
    """
    before_fits()
    from forecurve.science import PlanError, plan

    from ..errors import bad_input
    from ..given.amounts import check_compute, check_difference, check_price
    from ..showing.output import print_json

    check_compute("--budget", budget)
    check_compute("--horizon", horizon)
    found = read_arms(file, unit, range_, series) if series else read_long_arms(file, unit, range_)
    arms = {name: {curve.name: curve for curve in curves} for name, curves in found.items()}
    curves = [curve for runs in arms.values() for curve in runs.values()]
    check_difference("--delta", delta, curves)
    check_price("--price", price, curves)
    known = "paper" if prior is PriorChoice.paper else "none"
    alone = prior is PriorChoice.none
    try:
        planned = plan(arms, budget, horizon=horizon, delta=delta, price=price, prior=known, siblings=not alone)
    except PlanError as error:
        flag = "--" if error.field in ("budget", "horizon", "delta", "price") else ""
        raise bad_input(f"{flag}{error}") from error
    if html is not None:
        write_page(html, "What to run next", [("All arms", planned.plot)])
    if as_json:
        print_json(planned.to_dict())
        return
    _show(planned)


def _show(found: Plan) -> None:
    from forecurve.science.planning.wording import horizon_text
    from forecurve.science.wording import beside_text, compute_text, further_text, interval_text, share_text

    from ..showing.output import print_table

    end = f"at {horizon_text(found.horizon, given=found.horizon_given)} {found.unit} (90 %)"
    rows = [
        [
            arm.arm,
            compute_text(arm.now),
            f"{beside_text(arm.end.median, arm.end, finer=1)} ({interval_text(arm.end)})",
            share_text(arm.p_best),
            "drop" if arm.dominated else arm.misfit or "",
        ]
        for arm in sorted(found.arms, key=lambda arm: (-arm.p_best, arm.called))
    ]
    first, best = ("run", "P(best arm)") if found.has_seeds else ("arm", "P(best)")
    print_table([first, "now", end, best, ""], rows, right=["now", best])
    typer.echo()
    steps = [
        [each.arm, compute_text(each.start), further_text(each.to, each.start), each.kind, each.reason]
        for each in found.allocation
    ]
    if steps:
        print_table(["run", "from", "to", "", "because"], steps, right=["from", "to"])
        typer.echo()
    typer.echo(found.sentence)
