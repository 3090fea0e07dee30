"""A sweep whose runs come to share compute: chosen on its page, refused at its field, and followed live."""

from __future__ import annotations

from typing import Any

import pytest

from server.events.service import record
from server.sweeps.models import Sweep
from tests.web import seeding
from tests.web.browsing import MARKS, Site, opened, refreshed, widths

pytestmark = MARKS
ROW = "[id^=shared-run_]"


def plan(site: Site, arm_goes_to: float | None) -> None:
    """The worker has said who trains on, and tells it as its event does."""
    with site.sessions.begin() as session:
        sweep = session.get_one(Sweep, site.sweep)
        goes = {"control": 54.0} | ({} if arm_goes_to is None else {"no-<b>cispo</b>": arm_goes_to})
        seeding.add_allocation(session, sweep, now=site.now, goes=goes)
        record(session, "comparison", actor="compare", sweep_id=sweep.id)


def test_compute_is_shared_from_the_page_and_what_is_refused_is_said_at_its_field(
    page: Any, site: Site, faults: list[str]
) -> None:
    opened(page, f"/sweeps/{site.sweep}")
    page.click("text=Add an arm to the sweep")
    page.fill("#new-arm [name=changes]", "no change")
    page.click("#new-arm button")
    page.wait_for_selector("#notice:visible")  # of another form: it goes with the next refusal
    page.focus("a[href='#new-policy']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#policy[open]")
    assert page.is_hidden("[name=budget_compute]")
    page.select_option("#policy [name=policy]", "allocate")
    page.fill("[name=budget_compute]", "1,000")
    page.keyboard.press("Enter")
    page.wait_for_selector("#policy [data-fault=budget_compute]:not([hidden])")
    assert page.inner_text("[data-fault=budget_compute]") == "must be a number"
    assert page.evaluate("() => document.activeElement.name") == "budget_compute"
    assert page.get_attribute("[name=budget_compute]", "aria-invalid") == "true"
    assert page.is_hidden("#notice")
    refreshed(page)
    assert page.input_value("[name=budget_compute]") == "1,000"
    page.fill("[name=budget_compute]", "100")
    page.keyboard.press("Enter")
    page.wait_for_selector("#allocation")
    page.wait_for_selector(".head:has-text('shares its compute')")
    assert page.get_attribute("[role=meter]", "aria-valuetext") == "72 of 100 CPU-seconds"
    assert page.input_value("[name=budget_compute]") == "100"
    page.select_option("#policy [name=policy]", "advise")
    assert page.is_hidden("[name=budget_compute]")
    page.click("#policy button")
    page.wait_for_selector(".head:has-text('advises only')")
    assert page.is_hidden("#allocation")
    with site.sessions() as session:
        assert session.get_one(Sweep, site.sweep).budget_compute is None
    faults[:] = [fault for fault in faults if "422" not in fault]  # the browser's own note of the refusal


@pytest.mark.parametrize("width", widths(360, 700, 1280))
def test_a_plan_is_shown_when_it_comes_and_fits_its_window(page: Any, site: Site, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    plan(site, arm_goes_to=None)
    opened(page, f"/sweeps/{site.sweep}")
    page.wait_for_selector("[data-live-sign][data-state=live]")
    assert page.locator(ROW).count() == 2
    assert "held at 30 CPU-seconds" in page.inner_text(f"#shared-{site.arm}")
    assert page.evaluate("() => document.documentElement.scrollWidth") == width
    plan(site, arm_goes_to=36.0)
    page.wait_for_selector(f"#shared-{site.arm}:has-text('36 CPU-seconds')")
