"""`forecurve sweep add-seeds`, `sweep add-arm`: a sweep gets further runs, while it goes on or when it is over."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import Changes, SweepId


@asks_service
def add_seeds(
    service: Service,
    sweep_id: SweepId,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, max=100, help="How many each arm gets.")] = None,
    arms: Annotated[list[str] | None, typer.Option("--arm", help="Only this arm; may be repeated.")] = None,
    control_seeds: Annotated[
        int | None,
        typer.Option("--control-seeds", min=0, max=100, help="How many the control gets, if another number."),
    ] = None,
    decide: Annotated[
        str | None,
        typer.Option("--decide", metavar="ARM", help="As many as its comparison says would decide this arm."),
    ] = None,
) -> Answer:
    """Queue further seeds of a sweep's arms: of all, of some, or as many as would decide one.

    forecurve sweep add-seeds SWEEP --seeds 2 --arm no-cispo --control-seeds 1
    forecurve sweep add-seeds SWEEP --decide no-cispo
    """
    import secrets

    given = {"--seeds": seeds, "--arm": arms, "--control-seeds": control_seeds}
    _check_either(given, decide)
    before = service.api.sweep(sweep_id)
    body = (
        _deciding(before, decide) if decide else {"seeds": seeds, "arms": arms or None, "control_seeds": control_seeds}
    )
    sweep = service.api.add_seeds(sweep_id, body, idempotency_key=secrets.token_hex(16))
    return _queued(service, sweep, before)


@asks_service
def add_arm(
    service: Service,
    sweep_id: SweepId,
    changes: Changes = None,
    name: Annotated[str | None, typer.Option(help="What the arm is called; else after its changes.")] = None,
) -> Answer:
    """Queue an arm that a sweep has not: its base recipe with other changes, with every seed of its control.

    forecurve sweep add-arm SWEEP --set optimizer.learning_rate=1e-4
    """
    import secrets

    from ..errors import bad_input
    from ..given.recipes import parse_changes

    if not changes:
        raise bad_input("--set: what the arm changes is missing; give --set FIELD=VALUE, as often as it takes")
    before = service.api.sweep(sweep_id)
    body = {"changes": parse_changes(changes), "name": name}
    sweep = service.api.add_arm(sweep_id, body, idempotency_key=secrets.token_hex(16))
    return _queued(service, sweep, before)


def _check_either(given: dict[str, Any], decide: str | None) -> None:
    from ..errors import bad_input

    if decide is None and given["--seeds"] is None:
        raise bad_input("--seeds: how many each arm gets is missing; give it, or --decide ARM")
    for flag, value in given.items():
        if decide is not None and value is not None and value != []:
            raise bad_input(f"--decide: it is given with {flag}; leave one of them out")


def _deciding(sweep: dict[str, Any], arm: str) -> dict[str, Any]:
    """The request that its comparison has for the arm."""
    from ..errors import CliError, bad_input
    from ..showing.deciding import further

    found = next((one["further"]["request"] for one in further(sweep) if one["arm"] == arm), None)
    if found is not None:
        return dict(found)
    compared = {one["arm"]: one for one in (sweep.get("comparison") or {}).get("arms", [])}
    if arm in compared:
        on_their_way = compared[arm].get("on_their_way")
        why = "the seeds that would decide it are on their way" if on_their_way else compared[arm]["reason"]
        raise CliError(f"{arm}: no seeds are asked for: {why}")
    if arm in {run["arm"] for run in sweep["runs"]}:
        raise CliError(f"{arm}: it is not compared yet; --seeds says how many it is to get")
    arms = dict.fromkeys(run["arm"] for run in sweep["runs"])
    raise bad_input(f"--decide {arm}: the sweep has no such arm; it has {', '.join(str(one) for one in arms)}")


def _queued(service: Service, sweep: dict[str, Any], before: dict[str, Any]) -> Answer:
    from ..showing.output import line_of

    there = {run["id"] for run in before["runs"]}
    new = [line_of(f"{run['id']}  {run['name']}") for run in sweep["runs"] if run["id"] not in there]
    told = f"{len(new)} run{'' if len(new) == 1 else 's'} queued  {service.api.url}/sweeps/{sweep['id']}"
    return Answer(sweep, "\n".join([*new, told]))
