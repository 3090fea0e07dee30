"""`forecurve alert`: list, show, acknowledge, resolve, deliveries. `forecurve alerts` is short for its list."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit, OfRun

app = typer.Typer(no_args_is_help=True, help="Alerts: list, show, acknowledge, resolve, deliveries.")

AlertIds = Annotated[list[str], typer.Argument(metavar="ALERT", help="Ids, as `forecurve alert list` shows them.")]


@app.command("list")
@asks_service
def list_alerts(
    service: Service,
    only_open: Annotated[bool, typer.Option("--open", help="Only alerts that are not resolved.")] = False,
    run: OfRun = None,
    limit: Limit = 50,
) -> Answer:
    """List alerts, newest first."""
    from ..showing.alerts import ALERT_COLUMNS, alert_row
    from ..showing.output import newest, print_newest

    found = newest(service.api.alerts(run_id=run, open=only_open or None, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, "No alerts.")
    return Answer(found, lambda: print_newest(found, ALERT_COLUMNS, alert_row, spare=["opened"]))


@app.command()
@asks_service
def show(service: Service, alert_id: Annotated[str, typer.Argument(metavar="ALERT")]) -> Answer:
    """Show an alert: since when, on what evidence, sent where."""
    from ..showing.alerts import describe

    alert = service.api.alert(alert_id) | {"deliveries": list(service.api.deliveries(alert_id=alert_id))}
    unit = service.api.run(alert["run_id"])["compute_unit"]
    return Answer(alert, "\n".join(describe(alert, unit)))


@app.command()
@asks_service
def acknowledge(service: Service, alert_ids: AlertIds) -> Answer:
    """Say that you have seen alerts. They stay open; one that grows worse asks again."""
    return _answered([service.api.acknowledge_alert(alert_id) for alert_id in alert_ids])


@app.command()
@asks_service
def resolve(service: Service, alert_ids: AlertIds) -> Answer:
    """Close alerts. One opens anew only for what its run shows from now on; to keep it quiet, acknowledge it."""
    return _answered([service.api.resolve_alert(alert_id) for alert_id in alert_ids])


@app.command()
@asks_service
def deliveries(
    service: Service,
    alert_id: Annotated[str | None, typer.Argument(metavar="[ALERT]", help="Only those of this alert.")] = None,
    limit: Limit = 50,
) -> Answer:
    """List what was sent to channels, and how it went."""
    from ..showing.alerts import DELIVERY_COLUMNS, delivery_row
    from ..showing.output import newest, print_newest

    found = newest(service.api.deliveries(alert_id=alert_id, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, "No deliveries. `forecurve channel list` shows where alerts go.")
    return Answer(found, lambda: print_newest(found, DELIVERY_COLUMNS, delivery_row, spare=["made", "tries", "level"]))


def _answered(alerts: list[dict[str, Any]]) -> Answer:
    from ..showing.alerts import state

    return Answer({"items": alerts}, "\n".join(f"{alert['id']}  {state(alert)}" for alert in alerts))
