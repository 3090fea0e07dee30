"""A sweep and a run composed, planned and submitted by a person."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web.browsing import MARKS, Site, refreshed, widths

pytestmark = MARKS


def shown(page: Any) -> list[str]:
    """The names of the fields that can be seen."""
    names = page.locator("#compose [name]:visible").evaluate_all("all => all.map((each) => each.name)")
    return sorted(set(names))


def test_a_sweep_is_composed_planned_and_submitted(page: Any, site: Site) -> None:
    page.goto("/sweeps")
    page.click("text=New sweep")
    assert shown(page) == ["base", "changes", "ingredient", "kind", "name", "note", "policy", "seeds", "tags"]
    assert page.inner_text("#planned .primary") == "Submit 9 runs"
    page.check("[value=one_factor]")
    assert shown(page) == ["base", "changes", "factors", "kind", "name", "note", "policy", "seeds", "tags"]
    assert page.is_hidden("#planned .primary")
    assert page.is_visible("[data-stale]")
    page.fill("[name=factors]", "optimizer.learning_rate = 1e-4, 1e-3")
    page.fill("[name=changes]", "budget.compute = 5")
    page.fill("[name=seeds]", "0-2")
    page.fill("[name=name]", "learning rates")
    page.fill("[name=tags]", "paper")
    page.keyboard.press("Enter")
    page.wait_for_selector("#planned .primary:has-text('Submit 9 runs')")
    assert parse_qs(urlsplit(page.url).query)["seeds"] == ["0-2"]
    assert page.input_value("[name=factors]") == "optimizer.learning_rate = 1e-4, 1e-3"
    page.fill("[name=name]", "another name")
    assert page.is_hidden("#planned .primary")
    refreshed(page)
    assert page.is_hidden("#planned .primary")
    assert page.input_value("[name=name]") == "another name"
    page.fill("[name=name]", "learning rates")
    page.click("#planned .primary")
    page.wait_for_url("**/sweeps/swp_*")
    assert page.inner_text("h1") == "learning rates"
    with site.sessions() as session:
        sweep = session.get_one(Sweep, page.url.rpartition("/")[2])
        assert sweep.design["seeds"] == [0, 1, 2]
        assert sweep.tags == ["paper"]


def test_a_run_is_submitted_likewise_and_what_the_service_refuses_is_said(
    page: Any, site: Site, faults: list[str]
) -> None:
    page.goto("/runs")
    page.click("text=New run")
    assert shown(page) == ["base", "changes", "kind", "name", "note", "tags"]
    page.route("**/v1/runs", lambda route: route.abort())
    page.click("#planned .primary")
    page.wait_for_selector("#notice:has-text('The server does not answer')")
    faults.clear()
    page.unroute("**/v1/runs")
    page.click("#planned .primary")
    page.wait_for_url("**/runs/run_*")
    with site.sessions() as session:
        assert session.get_one(Run, page.url.rpartition("/")[2]).status == "queued"


def test_a_budget_is_asked_for_where_runs_share_one(page: Any, site: Site) -> None:
    page.goto("/new")
    assert page.is_hidden("[name=budget_compute]")
    page.select_option("[name=policy]", "allocate")
    page.fill("[name=budget_compute]", "240")
    page.keyboard.press("Enter")
    page.wait_for_selector("#planned .sentence:has-text('share 240 CPU-seconds')")
    assert page.input_value("[name=budget_compute]") == "240"
    page.check("[value=run]")
    assert page.is_hidden("[name=budget_compute]")


@pytest.mark.parametrize("width", widths(360, 1280))
def test_the_form_fits_its_window_and_a_fault_is_seen(page: Any, site: Site, width: int, faults: list[str]) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for kind in ("run", "leave_one_out", "grid"):
        page.goto(f"/new?kind={kind}&sent=true&changes={'n' * 300}&factors={'n' * 300}")
        assert page.evaluate("() => document.documentElement.scrollWidth") == width
        assert page.is_visible("#faults")
        assert page.get_attribute("[name=changes]", "aria-invalid") == "true"
    faults[:] = [fault for fault in faults if "422" not in fault]  # the browser's own note of the refusal
