"""A filter acts when something has been chosen: at once from its list, by the keys not before it is what is wanted."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.web.browsing import MARKS, Site

pytestmark = MARKS


@pytest.fixture
def filters(page: Any, site: Site) -> Any:
    page.goto("/runs")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    return page


def asked(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def focused(page: Any) -> str:
    return page.evaluate("() => document.activeElement.name ?? ''")


def test_the_arrow_keys_go_through_a_closed_list_and_enter_chooses(filters: Any) -> None:
    loads: list[str] = []
    filters.on("request", lambda request: request.is_navigation_request() and loads.append(request.url))
    filters.focus("[name=state]")
    for key in ("ArrowDown", "ArrowDown", "r"):
        filters.keyboard.press(key)
    assert (filters.input_value("[name=state]"), loads) == ("running", [])
    filters.keyboard.press("Enter")
    filters.wait_for_url("**state=running*")
    assert len(loads) == 1
    assert focused(filters) == "state"


def test_going_on_to_the_next_field_chooses_and_goes_on(filters: Any, site: Site) -> None:
    filters.focus("[name=sweep]")
    filters.keyboard.press("ArrowDown")
    filters.keyboard.press("Tab")
    filters.wait_for_url("**sweep=*")
    assert len(asked(filters)["sweep"]) == 1
    assert focused(filters) == "text"


def test_escape_takes_back_what_the_keys_have_changed(filters: Any) -> None:
    filters.focus("[name=state]")
    filters.keyboard.press("ArrowDown")
    filters.keyboard.press("Escape")
    assert filters.input_value("[name=state]") == ""
    filters.keyboard.press("Tab")
    assert (asked(filters), focused(filters)) == ({}, "sweep")


def test_the_keyboards_place_in_the_heads_stays_over_another_order(filters: Any) -> None:
    for pressed in ("-rate", "rate"):
        head = filters.get_by_role("link", name="Pass rate now")
        head.focus()
        filters.keyboard.press("Enter")
        filters.wait_for_url(f"**sort={pressed}")
        filters.wait_for_selector("[data-live-sign][data-state=live]")
        assert filters.evaluate("() => document.activeElement.textContent") == "Pass rate now"


def test_what_is_picked_in_the_open_list_is_chosen_at_once(filters: Any) -> None:
    filters.click("[name=state]")
    filters.keyboard.press("ArrowDown")
    filters.keyboard.press("Enter")
    filters.wait_for_url("**state=active*")
