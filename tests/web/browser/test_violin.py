"""The ceiling's posterior in the right margin of a run's chart."""

from __future__ import annotations

import re
from typing import Any

import pytest

from server.forecasts.models import Forecast
from server.runs.models import Run
from tests.web.browsing import MARKS, Site, opened

pytestmark = MARKS
SHAPE = "() => document.querySelector('#plot').layout.shapes.find(({name}) => name === 'ceiling') ?? null"


def outline(page: Any) -> list[tuple[float, float]]:
    """(pixels right of the plot, rate) around the violin."""
    shape = page.evaluate(SHAPE)
    assert (shape["xref"], shape["xanchor"], shape["xsizemode"]) == ("paper", 1, "pixel")
    return [(float(x), float(rate)) for x, rate in re.findall(r"([\d.]+),([\d.]+)", shape["path"])]


def test_the_ceiling_is_drawn_as_wide_as_it_is_likely(page: Any, site: Site) -> None:
    opened(page, f"/runs/{site.control}")
    places = outline(page)
    widest = max(places)
    assert widest[1] == pytest.approx(0.78, abs=0.004)  # the posterior's median
    assert 2 * 16 - widest[0] == pytest.approx(min(places)[0], abs=0.1)  # the same to both sides of its rule
    right = sorted((rate, x) for x, rate in places if x >= 16)
    upto = next(at for at, (rate, _) in enumerate(right) if rate >= widest[1])
    assert [x for _, x in right[:upto]] == sorted(x for _, x in right[:upto])
    assert [x for _, x in right[upto:]] == sorted((x for _, x in right[upto:]), reverse=True)


def test_a_forecast_of_before_its_quantiles_were_kept_has_its_interval_alone(page: Any, site: Site) -> None:
    with site.sessions.begin() as session:
        forecast = session.get_one(Forecast, session.get_one(Run, site.control).forecast_id)
        forecast.summary = {name: said for name, said in forecast.summary.items() if name != "ceiling_quantiles"}
    opened(page, f"/runs/{site.control}")
    assert page.evaluate(SHAPE) is None
    assert page.locator("#plot .annotation", has_text="ceiling").count() == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_ceiling_that_is_a_single_rate_or_not_identified_draws_all_the_same(
    page: Any, site: Site, known: bool
) -> None:
    with site.sessions.begin() as session:
        forecast = session.get_one(Forecast, session.get_one(Run, site.control).forecast_id)
        said = forecast.summary["ceiling_quantiles"]
        single = said | {"values": [0.78] * len(said["values"])}
        forecast.summary = (
            forecast.summary | {"ceiling_known": known} | ({"ceiling_quantiles": single} if known else {})
        )
    opened(page, f"/runs/{site.control}")
    assert (page.evaluate(SHAPE) is None) == known
