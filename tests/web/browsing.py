"""A real headless Chromium, against a real server on real Postgres: what the tests of scripts and layout share."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest
from sqlalchemy.orm import Session, sessionmaker

from server.dependencies import session_cookie
from tests.web import seeding

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Of a browser, best first: the shell is the same engine without a window, and takes half the CPU time."""
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; `make browser`"),
]


def widths(*each: int) -> list[Any]:
    """Widths of a window for a test: `make test` has the first, where things are narrowest; all are for `test-all`."""
    return [each[0], *(pytest.param(width, marks=pytest.mark.slow) for width in each[1:])]


ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--js-flags=--no-turbofan --no-maglev",  # what optimising costs a page that is looked at for a second never pays
    "--process-per-site",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP forecurve.test 127.0.0.1",
]
TRACES = """() => document.querySelector('[data-chart]').data.map(
    ({name, x, y, error_y, line}) =>
        ({name, x: [...x], y: [...y], se: error_y?.array ?? null, dash: line?.dash ?? null}))"""
TRUTH = seeding.Truth()


@dataclass(frozen=True)
class Server:
    """The application on a free port, with the sessions to its database and the cookie of somebody who may operate."""

    url: str
    sessions: sessionmaker[Session]
    cookie: str


@dataclass(frozen=True)
class Site:
    """A sweep of two arms, fresh for each test; the control's forecast was frozen at 22 and refitted at 42."""

    url: str
    sessions: sessionmaker[Session]
    now: datetime
    sweep: str
    control: str
    arm: str
    ingest: str


def windowed(chromium: Any, server: Server, **settings: Any) -> Any:
    """A tab in a window of its own, that is logged in."""
    context = chromium.new_context(base_url=server.url, **settings)
    context.add_cookies([{"name": session_cookie(server.url), "value": server.cookie, "url": server.url}])
    return context.new_page()


def traces(page: Any) -> dict[str, Any]:
    return {trace["name"]: trace for trace in page.evaluate(TRACES)}


def opened(page: Any, path: str) -> dict[str, Any]:
    """Open a page with a chart, wait for its first drawing, give its traces by name."""
    page.goto(path)
    page.wait_for_selector("[data-chart][data-drawn]")
    return traces(page)


def refreshed(page: Any) -> None:
    """Tell the page that something is new, and wait until it shows it."""
    page.evaluate("""() => new Promise((done) => {
        document.addEventListener("htmx:finally:request", () => requestAnimationFrame(done), { once: true });
        document.body.dispatchEvent(new CustomEvent("forecurve:refresh"));
    })""")


def refreshed_twice(page: Any, address: str) -> list[Any]:
    """Tell the page twice that something is new, and hold what it then asks `address` for: two routes, in order."""
    held: list[Any] = []
    page.route(address, lambda route: held.append(route))
    for wanted in (1, 2):
        page.evaluate("() => { document.body.dispatchEvent(new CustomEvent('forecurve:refresh')) }")
        while len(held) < wanted:
            page.evaluate("() => new Promise(done => requestAnimationFrame(done))")
    return held


def report(site: Site, compute: float, rate: float) -> None:
    """A new evaluation, as a trainer sends it."""
    evaluation = {"step": int(compute * 5), "compute": compute, "prompts": 256, "samples": 4, "reward": rate}
    evaluation["time"] = "2026-11-21T12:00:00Z"
    batch = {"attempt": 1, "seq": 1, "points": [], "evaluations": [evaluation]}
    headers = {"Authorization": f"Bearer {site.ingest}"}
    answer = httpx.post(f"{site.url}/v1/runs/{site.control}/metrics", json=batch, headers=headers)
    assert answer.status_code == 200, answer.text
