"""The page on which any metric of a run is forecast."""

from __future__ import annotations

import re
import shlex
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert
from sqlalchemy.orm import Session, sessionmaker

from server.metrics.models import MetricPoint
from server.runs.models import Run
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import HOSTILE, assert_clean, text_of
from tests.web.seeding import Truth


@pytest.fixture
def logged(sessions: sessionmaker[Session], seeded: Seeded, clock: Clock) -> str:
    """The control, which has logged another benchmark as a share and in percent, and a metric with an odd name."""
    truth = Truth(A=0.5, R0=0.1)
    with sessions.begin() as session:
        for name, scale in (("eval/aime24", 1.0), ("eval/percent", 100.0), (HOSTILE, 1.0)):
            row = {"run_id": seeded.control, "metric": name, "attempt": 1, "time": clock.now}
            rows = [row | {"step": k, "compute": 2.0 * k, "value": scale * truth(2.0 * k)} for k in range(22)]
            session.execute(insert(MetricPoint), rows)
    return seeded.control


def test_it_says_where_the_metric_will_end_and_what_that_rests_on(site: TestClient, logged: str) -> None:
    html = site.get(f"/runs/{logged}/forecast?metric=eval/aime24").text
    words = text_of(html)
    assert_clean(html)
    assert "eval/aime24" in re.search(r"<h1>(.*?)</h1>", html)[1]  # type: ignore[index]
    assert words.index("Ceiling 0.50") < words.index("Ceiling A")
    for fact in ("Exponent B 1.3", "Curve at 60 CPU-seconds", "Newest value 0.", "step 21", "Values 22"):
        assert fact in words
    assert "It is not kept, no alert rings by it" in words
    url = re.search(r'data-chart="curve" data-url="([^"]+)"', html)
    assert url
    assert url[1] == f"/v1/runs/{logged}/metrics:forecast?metric=eval%2Faime24"


def test_a_range_and_a_budget_stay_in_the_form_and_reach_the_chart(site: TestClient, logged: str) -> None:
    answer = site.get(f"/runs/{logged}/forecast?metric=eval/percent&low=&high=100&budget=90")
    assert answer.status_code == 200
    assert "Curve at 90 CPU-seconds 4" in text_of(answer.text)
    assert 'name="high" value="100"' in answer.text
    assert "metrics:forecast?metric=eval%2Fpercent&amp;high=100.0&amp;budget=90.0" in answer.text


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"metric": "eval/percent"}, 422, "Highest it can be: values from 10 to "),
        ({"metric": "eval/percent", "high": "all"}, 422, "Highest it can be: a number is needed"),
        ({"metric": "eval/percent", "high": "inf"}, 422, "Highest it can be: a number is needed"),
        ({"metric": "eval/aime24", "budget": "-1"}, 422, "Compute: an amount of compute above 0 is needed"),
        ({"metric": "eval/aime24", "low": "2"}, 422, "Highest it can be: a number above low is needed, which is 2"),
        ({"metric": "eval/none"}, 404, "Metric: the run has logged no finite value of it; choose one above"),
    ],
)
def test_what_cannot_be_is_said_beside_the_form_with_what_was_typed(
    site: TestClient, logged: str, query: dict[str, Any], status: int, said: str
) -> None:
    answer = site.get(f"/runs/{logged}/forecast", params=query)
    assert answer.status_code == status
    assert said in text_of(answer.text)
    for name in ("high", "low", "budget"):
        assert f'name="{name}" value="{query.get(name, "")}"' in answer.text


def test_a_metric_that_is_not_there_leaves_no_other_chosen(site: TestClient, logged: str) -> None:
    html = site.get(f"/runs/{logged}/forecast?metric=eval/none").text
    assert '<option value="" selected>choose one</option>' in html
    assert html.count(" selected") == 1


def test_the_command_that_asks_the_same_can_be_copied(site: TestClient, logged: str) -> None:
    html = site.get(
        f"/runs/{logged}/forecast", params={"metric": HOSTILE, "high": "1.23456789012", "budget": "90"}
    ).text
    command = unescape(re.findall(r"<code>(forecurve run forecast .*?)</code>", html)[0])
    flags = ["--range=0,1.23456789012", "--budget=90"]
    assert shlex.split(command) == ["forecurve", "run", "forecast", logged, *flags, "--", HOSTILE]


def test_the_past_runs_are_asked_for_as_this_one_is(
    site: TestClient, sessions: sessionmaker[Session], logged: str, clock: Clock
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, logged)
        past = seeding.add_run(session, now=clock.now, name="earlier", status="succeeded")
        past.task = run.task = "maths"
        row = {"run_id": past.id, "metric": "eval/percent", "attempt": 1, "time": clock.now}
        rows = [row | {"step": k, "compute": 2.0 * k, "value": 60 * Truth()(2.0 * k)} for k in range(31)]
        session.execute(insert(MetricPoint), rows)
        earlier = past.id
    html = site.get(f"/runs/{logged}/forecast?metric=eval/percent&high=100").text
    (link,) = re.findall(r'<a href="([^"]+)">earlier</a>', html)
    assert unescape(link) == f"/runs/{earlier}/forecast?metric=eval%2Fpercent&high=100.0"
    assert site.get(unescape(link)).status_code == 200


def test_of_a_run_that_is_over_nothing_is_advised(
    site: TestClient, logged: str, sessions: sessionmaker[Session]
) -> None:
    assert "By this metric alone" in text_of(site.get(f"/runs/{logged}/forecast?metric=eval/aime24").text)
    with sessions.begin() as session:
        session.get_one(Run, logged).status = "stopped"
    words = text_of(site.get(f"/runs/{logged}/forecast?metric=eval/aime24").text)
    assert "Stopped; last logged at 42 CPU-seconds. Ceiling 0.50" in words
    for told in ("By this metric alone", "Next levels", "Expected"):
        assert told not in words


def test_without_a_metric_one_is_chosen_and_without_any_it_is_said_how_they_come(
    site: TestClient, logged: str, seeded: Seeded
) -> None:
    choose = site.get(f"/runs/{logged}/forecast").text
    assert "Choose one above." in text_of(choose)
    assert "data-chart=" not in choose
    none = text_of(site.get(f"/runs/{seeded.arm}/forecast").text)
    assert "No metric yet." in none
    assert "run.log(" in none


def test_names_of_metrics_are_words_and_no_markup(site: TestClient, logged: str) -> None:
    answer = site.get(f"/runs/{logged}/forecast", params={"metric": HOSTILE})
    assert answer.status_code == 200
    assert_clean(answer.text)
    assert "<script>alert" not in answer.text


def test_few_values_are_drawn_without_a_forecast(
    site: TestClient, sessions: sessionmaker[Session], logged: str, clock: Clock
) -> None:
    with sessions.begin() as session:
        row = {"run_id": logged, "metric": "rare", "attempt": 1, "time": clock.now}
        session.execute(insert(MetricPoint), [row | {"step": k, "compute": 1.0 + k, "value": 0.5} for k in range(2)])
    words = text_of(site.get(f"/runs/{logged}/forecast?metric=rare").text)
    assert "Points so far: 2; a forecast takes 4." in words
    assert "Ceiling A" not in words


def test_the_runs_page_leads_there(site: TestClient, logged: str, sessions: sessionmaker[Session]) -> None:
    assert f'href="/runs/{logged}/forecast"' in site.get(f"/runs/{logged}").text
    with sessions.begin() as session:
        session.get_one(Run, logged).status = "succeeded"
    assert "Ceiling 0.50" in text_of(site.get(f"/runs/{logged}/forecast?metric=eval/aime24").text)
