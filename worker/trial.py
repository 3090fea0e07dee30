"""The test message of a channel: in the form of an alert's, and it says that it is none."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from server.alerts.models import Channel

from .forms import Told, letter, slack
from .mail import Letter

TITLE = "Test message"


def trial_message(channel: Channel, *, public_url: str, now: datetime) -> dict[str, Any] | Letter:
    """What `channel` is sent when a person wants to see whether it works."""
    text = f"This is a test. The channel {channel.name} is told of {' and '.join(channel.hears)} here."
    url = f"{public_url.rstrip('/')}/alerts"
    if channel.kind == "webhook":
        data = {"channel": {"id": channel.id, "name": channel.name}, "text": text, "url": url}
        return {"type": "channel.test", "timestamp": now.isoformat(), "data": data}
    told = Told(TITLE, text, ("Open the alerts", url), about=channel.id, thread=channel.id)
    return slack(told) if channel.kind == "slack" else letter(told)
