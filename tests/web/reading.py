"""Pages read as a browser without scripts would: their words, their rows, and that they hold no script of others."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(2)>`x`"""


def text_of(html: str) -> str:
    """The words of a page, as they are read."""
    body = re.sub(r"<(script|style|head)\b.*?</\1>", " ", html, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def row_of(html: str, id: str) -> str:
    """The words of the table row with that id."""
    found = re.search(rf'<tr id="{id}".*?</tr>', html, flags=re.S)
    assert found, f"no row {id}"
    return text_of(found[0])


class _Tags(HTMLParser):
    """Every tag with its attributes, as a browser would see them."""

    def __init__(self, html: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_clean(html: str) -> None:
    """No inline script, no handler in an attribute, no image, nothing from another host."""
    tags = _Tags(html).found
    assert len(tags) > 10
    assert [attributes for tag, attributes in tags if tag == "script" and "src" not in attributes] == []
    assert [attributes for _, attributes in tags if any(name.startswith("on") for name in attributes)] == []
    assert [attributes for tag, attributes in tags if tag == "img"] == []
    targets = [attributes.get(name) or "" for _, attributes in tags for name in ("src", "href", "action", "hx-get")]
    assert [target for target in targets if ":" in target.split("/")[0] or target.startswith("//")] == []
