"""The sign in the bar is true: a stream that went silent is not live, and is taken up again where it was."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.browsing import MARKS, Site

pytestmark = MARKS
BEAT = "() => window.streams.at(-1).dispatchEvent(new MessageEvent('beat', { data: '{}' }))"
CHANGE = """() => window.streams.at(-1).dispatchEvent(
    new MessageEvent("change", { data: JSON.stringify({ kind: "evaluation" }) }))"""


def state(page: Any) -> str:
    return page.get_attribute("[data-live-sign]", "data-state")


@pytest.fixture
def live(page: Any, site: Site) -> Any:
    """A page whose clock is ours and whose streams can be given a beat."""
    page.add_init_script("""window.streams = [];
        window.EventSource = class extends EventSource {
            constructor(url) { super(url); window.streams.push(this); }
        };""")
    page.clock.install()
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    return page


def test_a_stream_with_a_beat_stays_and_one_that_went_silent_is_taken_up_again(live: Any) -> None:
    cursor = live.get_attribute("body", "data-cursor")
    asked: list[str] = []
    live.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        live.clock.fast_forward(15_000)  # of the 25 that it waits: on a busy machine real seconds pass besides
        live.evaluate(BEAT)
    assert state(live) == "live"
    assert [url for url in asked if "/v1/stream" in url] == []

    held: list[Any] = []
    live.route("**/v1/stream*", lambda route: held.append(route))  # as a network that swallows everything
    live.clock.fast_forward(26_000)
    live.wait_for_selector("[data-live-sign][data-state=reconnecting]")
    live.clock.fast_forward(26_000)
    live.wait_for_function("() => window.streams.length === 3")
    assert state(live) == "reconnecting"
    assert live.evaluate("() => window.streams.map((stream) => stream.readyState)") == [2, 2, 0]

    live.unroute("**/v1/stream*")
    with live.expect_request(lambda request: "hx-request" in request.headers):  # what was missed meanwhile
        live.clock.fast_forward(26_000)
        live.wait_for_selector("[data-live-sign][data-state=live]")
        live.clock.fast_forward(3_000)
    again = live.evaluate("() => window.streams.slice(1).map((stream) => stream.url)")  # one that is given up at once
    assert len(again) == 3  # may never be asked over the network
    assert all(url.endswith(f"since={cursor}") for url in again)


def test_what_the_browser_knows_of_the_network_is_not_waited_for(live: Any) -> None:
    live.route("**/v1/stream*", lambda route: None)
    live.evaluate("() => dispatchEvent(new Event('offline'))")
    live.wait_for_selector("[data-live-sign][data-state=reconnecting]")
    live.unroute("**/v1/stream*")
    with live.expect_request(lambda request: "hx-request" in request.headers):
        live.evaluate("() => dispatchEvent(new Event('online'))")
        live.wait_for_selector("[data-live-sign][data-state=live]")
        live.clock.fast_forward(3_000)


def test_a_tab_that_is_not_seen_has_no_stream_to_take_up(live: Any) -> None:
    live.evaluate("""() => {
        Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }""")
    live.clock.fast_forward(60_000)
    assert live.evaluate("() => window.streams.map((stream) => stream.readyState)") == [2]


@pytest.mark.parametrize(("took", "rests"), [(3_000, 12_000), (8_000, 20_000)])
def test_a_page_that_took_long_to_refresh_rests_four_times_as_long(live: Any, took: int, rests: int) -> None:
    live.clock.pause_at(live.evaluate("new Date(Date.now() + 1000).toISOString()"))
    live.evaluate("""() => {
        window.refreshes = 0;
        document.body.addEventListener("forecurve:refresh", () => { window.refreshes += 1; });
        window.answered = new Promise((done) => document.addEventListener("htmx:finally:request", done));
    }""")
    held: list[Any] = []
    live.route("**/runs", lambda route: held.append(route))
    with live.expect_request(lambda request: "hx-request" in request.headers):
        live.evaluate(CHANGE)
        live.clock.fast_forward(200)
    live.evaluate(CHANGE)
    live.clock.fast_forward(took)
    assert live.evaluate("window.refreshes") == 1  # that one is not answered yet
    live.evaluate(CHANGE)
    held[0].continue_()
    live.evaluate("window.answered")
    for later, refreshes in ((rests - 100, 1), (200, 2)):
        live.evaluate(BEAT)
        live.clock.fast_forward(later)
        assert live.evaluate("window.refreshes") == refreshes
