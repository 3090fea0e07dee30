"""How something is told: as Slack's Block Kit, or as a letter. What is told is put into words elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .mail import Letter

_HEADER_CHARS = 150
_FIELD_CHARS = 2000
_SECTION_CHARS = 3000
"""Slack refuses longer ones."""


@dataclass(frozen=True)
class Told:
    """One message in words.

    `title` heads it, and `short` stands for it in notifications and subjects, if it says anything else; `link` is what
    a button says and where it leads, `about` stands small below; messages of one `thread` are kept together by mail
    programs.
    """

    title: str
    text: str
    link: tuple[str, str]
    about: str
    thread: str
    figures: Sequence[tuple[str, str]] = ()
    short: str = ""


def slack(told: Told) -> dict[str, Any]:
    """Header, what happened, the figures, and a link. `text` is for notifications."""
    label, url = told.link
    link = {"type": "button", "text": {"type": "plain_text", "text": label}, "url": url}
    title = {"type": "plain_text", "text": _cut(told.title, _HEADER_CHARS), "emoji": True}
    figures = {"type": "section", "fields": [_field(name, value) for name, value in told.figures]}
    return {
        "text": escape(told.short or told.title),
        "blocks": [
            {"type": "header", "text": title},
            {"type": "section", "text": {"type": "mrkdwn", "text": _cut(escape(told.text), _SECTION_CHARS)}},
            *([figures] if told.figures else []),
            {"type": "actions", "elements": [link]},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": told.about}]},
        ],
    }


def letter(told: Told) -> Letter:
    """The same as plain text."""
    figures = "\n".join(f"{name}: {value}" for name, value in told.figures)
    text = "\n\n".join(part for part in (told.text, figures, told.link[1]) if part)
    return Letter(told.short or told.title, f"{text}\n", told.thread)


def escape(text: str) -> str:
    """The three characters that Slack's mrkdwn takes for its own, so that a run's name cannot mention or link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _field(name: str, value: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": _cut(f"*{name}*\n{escape(value)}", _FIELD_CHARS)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
