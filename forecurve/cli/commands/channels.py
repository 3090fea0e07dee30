"""`forecurve channel`: add, list, test, remove."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from ..asking.naming import Named
from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit

app = typer.Typer(
    no_args_is_help=True,
    help="Channels that alerts and news are sent to: add, list, test, remove. Needs an admin's token.",
)

ChannelId = Annotated[str, Named("channel"), typer.Argument(metavar="CHANNEL", help="Its id, or its name.")]

NO_CHANNELS = "No channels: alerts are on the page alone. Try: forecurve channel add NAME --kind slack --to URL"


class Kind(StrEnum):
    """What a channel speaks."""

    slack = "slack"
    webhook = "webhook"
    email = "email"


class Topic(StrEnum):
    """What a channel may hear of."""

    alerts = "alerts"
    advice = "advice"
    ends = "ends"


class Level(StrEnum):
    """From the lowest to the highest."""

    warn = "warn"
    alert = "alert"


@app.command()
@asks_service
def add(
    service: Service,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    kind: Annotated[Kind, typer.Option("--kind", help="A Slack incoming webhook, any other webhook, or a mailbox.")],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL", help="Where alerts are sent: https://..., or an address; - reads it from stdin."
        ),
    ],
    min_level: Annotated[
        Level, typer.Option("--min-level", help="The lowest level of alerts that is sent.")
    ] = Level.alert,
    hears: Annotated[
        list[Topic] | None,
        typer.Option("--hears", help="What is sent; may be repeated. By default alerts alone.", show_default=False),
    ] = None,
) -> Answer:
    """Send alerts, advice and ends to a Slack channel, a webhook or a mailbox.

    --hears advice: a run should be stopped, or is worth more than its budget; --hears ends: a run of its own, or a
    sweep, is over.

    forecurve channel add ops --kind slack --to https://hooks.slack.com/services/...

    forecurve channel add ops --kind email --to ops@example.com

    Slack's URL is a credential: with --to - it stays out of the shell's history.
    A webhook's deliveries are signed (Standard Webhooks) with the secret that is shown this once.
    """
    url = sys.stdin.readline().strip() if to == "-" else to
    body = {"name": name, "kind": str(kind), "url": url, "min_level": min_level.upper()}
    body |= {"hears": [str(topic) for topic in hears or [Topic.alerts]]}
    channel = service.api.create_channel(body)
    return Answer(channel, "\n".join(_added(channel)))


@app.command("list")
@asks_service
def list_channels(service: Service, limit: Limit = 50) -> Answer:
    """List the channels in use, newest first; no secret is in it."""
    from ..showing.output import newest, print_newest

    found = newest(service.api.channels(limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, NO_CHANNELS)
    columns, spare = ["channel", "name", "kind", "to", "hears", "made"], ["made", "kind"]
    return Answer(found, lambda: print_newest(found, columns, _row, spare=spare))


@app.command()
@asks_service
def test(service: Service, channel_id: ChannelId) -> Answer:
    """Send a test message the way that alerts go, and say whether it arrived."""
    from forecurve.signs import visible

    from ..asking.channel_trial import send_and_wait
    from ..showing.alerts import answer

    delivery = send_and_wait(service.api, channel_id)
    return Answer(delivery, f"{channel_id}  delivered; it answered {visible(answer(delivery))}")


@app.command()
@asks_service
def remove(service: Service, channel_id: ChannelId) -> Answer:
    """Send nothing there any more; its URL and secret are forgotten, and what waits to be sent is given up."""
    service.api.delete_channel(channel_id)
    return Answer({"id": channel_id, "removed": True}, f"{channel_id}  removed")


def _added(channel: dict[str, Any]) -> list[str]:
    """Slack checks no signature, so that its channel's secret is of no use to a person."""
    from forecurve.signs import visible

    lines = [f"{channel['id']}  {visible(channel['name'])}  {channel['kind']}  hears {_hears(channel)}"]
    if channel["kind"] == "webhook":
        lines.append(f"signing secret, not shown again: {channel['secret']}")
    return lines


def _hears(channel: dict[str, Any]) -> str:
    """`alerts from WARN on, ends`."""
    topics = channel["hears"]
    return ", ".join(f"alerts from {channel['min_level']} on" if topic == "alerts" else topic for topic in topics)


def _row(channel: dict[str, Any]) -> list[str]:
    from ..showing.output import since

    return [
        channel["id"],
        channel["name"],
        channel["kind"],
        channel["url"],
        _hears(channel),
        since(channel["created_at"]),
    ]
