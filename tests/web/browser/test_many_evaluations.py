"""Runs of thousands of evaluations laid over one another: what is drawn of them, and that the page stays in hand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import insert

from server.metrics.models import Evaluation
from tests.web import seeding
from tests.web.browsing import MARKS, TRUTH, Site, opened

pytestmark = MARKS

EACH = 3000
DRAWN = "() => document.querySelector('#plot').data.filter(t => t.meta).map(({meta, x, y}) => ({meta, x, y}))"


@pytest.fixture
def long_runs(site: Site) -> list[str]:
    """Three runs; the first has one evaluation far below its others, and one far above them."""
    with site.sessions.begin() as session:
        runs = [seeding.add_run(session, now=site.now, name=f"long {k}", budget=None) for k in range(3)]
        for run in runs:
            rates = [TRUTH(k / 50) + 0.01 * (-1) ** k for k in range(EACH)]
            if run is runs[0]:
                rates[1501], rates[2000] = 0.05, 0.95
            told = {"run_id": run.id, "attempt": 1, "prompts": 256, "samples": 4, "variance": 2e-4, "time": site.now}
            session.execute(
                insert(Evaluation),
                [{**told, "step": k, "compute": k / 50, "reward": rate} for k, rate in enumerate(rates)],
            )
            run.last_step, run.last_compute, run.last_reward = EACH - 1, (EACH - 1) / 50, rates[-1]
        return [run.id for run in runs]


def test_of_very_many_evaluations_the_outermost_are_drawn_and_a_zoom_draws_them_all(
    page: Any, long_runs: list[str]
) -> None:
    opened(page, "/compare?" + "&".join(f"run={run}" for run in long_runs) + "&x=linear")
    drawn = page.evaluate(DRAWN)
    count = sum(len(trace["x"]) for trace in drawn)
    assert 1000 < count <= 4000
    said = f"{count:,} of 9,000 evaluations drawn: zoom in for the others"
    assert page.locator("[data-thinned]").inner_text() == said
    first = next(trace for trace in drawn if trace["meta"] == long_runs[0])
    assert (min(first["y"]), max(first["y"])) == (0.05, 0.95)
    assert all(trace["x"][0] == 0 and trace["x"][-1] == (EACH - 1) / 50 for trace in drawn)

    page.evaluate("() => Plotly.relayout('plot', {'xaxis.range': [20, 24]})")  # as a drag does
    page.wait_for_selector("[data-thinned]", state="hidden")
    for trace in page.evaluate(DRAWN):
        assert sum(20 <= x <= 24 for x in trace["x"]) == 201
    page.locator("#plot").dblclick(position={"x": 500, "y": 200})
    page.wait_for_selector("[data-thinned]:visible")


def test_there_is_an_axis_for_more_evaluations_than_a_call_takes_arguments(page: Any, site: Site) -> None:
    page.goto("/runs")
    modules = page.evaluate("() => performance.getEntriesByType('resource').map(r => r.name)")
    script = next(name for name in modules if name.endswith("/js/main.js")).replace("main.js", "chart/axis.js")
    ranges = page.evaluate(
        """async (script) => {
            const { computeAxis, rateRange } = await import(script);
            const many = Array.from({ length: 200_000 }, (_, k) => k / 199_999);
            return [computeAxis("linear", many).range, rateRange(many)];
        }""",
        script,
    )
    assert ranges == [[pytest.approx(-0.015), pytest.approx(1.03)], [pytest.approx(-0.012), pytest.approx(1.012)]]
