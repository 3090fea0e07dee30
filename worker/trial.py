"""The test message of a channel: in the form of an alert's, and it says that it is none."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from server.alerts.models import Channel

from .mail import Letter
from .messages import escape

TITLE = "Test message"


def trial_message(channel: Channel, *, public_url: str, now: datetime) -> dict[str, Any] | Letter:
    """What `channel` is sent when a person wants to see whether it works."""
    text = f"This is a test. Alerts for the channel {channel.name} arrive here."
    url = f"{public_url.rstrip('/')}/alerts"
    if channel.kind == "slack":
        return _slack_body(channel, text, url)
    if channel.kind == "email":
        return Letter(TITLE, f"{text}\n\n{url}\n", channel.id)
    data = {"channel": {"id": channel.id, "name": channel.name}, "text": text, "url": url}
    return {"type": "channel.test", "timestamp": now.isoformat(), "data": data}


def _slack_body(channel: Channel, text: str, url: str) -> dict[str, Any]:
    link = {"type": "button", "text": {"type": "plain_text", "text": "Open the alerts"}, "url": url}
    return {
        "text": TITLE,
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": TITLE}},
            {"type": "section", "text": {"type": "mrkdwn", "text": escape(text)}},
            {"type": "actions", "elements": [link]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": channel.id}]},
        ],
    }
