"""`forecurve sweep policy`: whether a sweep only advises, stops runs by itself, or shares its compute among them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import SweepId


class Policy(StrEnum):
    """What a sweep does by itself."""

    advise = "advise"
    auto = "auto"
    allocate = "allocate"


GivenPolicy = Annotated[
    Policy,
    typer.Argument(
        help="advise: a person stops runs. auto: advice to stop is followed. allocate: the runs share a budget, and "
        "those that are worth more train on."
    ),
]


@asks_service
def change_policy(
    service: Service,
    sweep_id: SweepId,
    policy: GivenPolicy,
    budget: Annotated[
        float | None,
        typer.Option(help="With allocate: compute of all its runs together; else it stays, or is the sum of theirs."),
    ] = None,
) -> Answer:
    """Change what a sweep does by itself, or the budget that its runs share.

    forecurve sweep policy SWEEP allocate --budget 240
    """
    from ..given.amounts import check_compute

    check_compute("--budget", budget, of="sweep")
    sweep = service.api.change_sweep_policy(sweep_id, str(policy), budget_compute=budget)
    return Answer(sweep, f"{sweep['id']}  {_told(sweep)}")


def _told(sweep: dict[str, Any]) -> str:
    from forecurve.digits import as_given

    shared = sweep.get("allocation")
    if not shared:
        return str(sweep["policy"])
    return f"{sweep['policy']}; its runs share {as_given(shared['budget'])} {shared['unit']}"
