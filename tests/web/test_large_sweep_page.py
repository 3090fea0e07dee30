"""The page of a sweep of more than a hundred runs: a part of its table, a few of its curves, and what is left out."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from tests.server.counting import counted
from tests.server.sweeps.large import Large, large_sweep
from tests.web.reading import row_of, text_of

Sessions = sessionmaker[Session]


@pytest.fixture
def large(sessions: Sessions) -> Large:
    with sessions.begin() as session:
        return large_sweep(session)


def rows(html: str) -> list[str]:
    return re.findall(r'<tr id="(\w+)" data-arm', html)


def link(html: str, label: str) -> str:
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>{label}</a>', html)
    assert found, label
    return unescape(found[1]).partition("#")[0]


def test_every_run_is_on_one_page_of_the_table(site: TestClient, large: Large) -> None:
    first = site.get(f"/sweeps/{large.id}").text
    assert "1 to 100 of 120 runs" in text_of(first)
    second = site.get(link(first, "Next page")).text
    assert "101 to 120 of 120 runs" in text_of(second)
    assert rows(first) + rows(second) == large.runs
    assert rows(site.get(link(second, "First page")).text) == rows(first)


def test_an_order_holds_over_pages(site: TestClient, large: Large) -> None:
    first = site.get(f"/sweeps/{large.id}?sort=-end").text
    assert rows(first)[:4] == large.arms["arm 29"][::-1]
    second = site.get(link(first, "Next page")).text
    assert rows(second)[-1] == large.arms["arm 28"][0]
    assert "101 to 120 of 120 runs" in text_of(second)


def test_the_table_is_narrowed_to_a_name_or_an_arm(site: TestClient, large: Large) -> None:
    found = site.get(f"/sweeps/{large.id}?text=ARM 7").text
    assert rows(found) == large.arms["arm 7"]
    assert "4 of 120 runs" in text_of(found)
    none = text_of(site.get(f"/sweeps/{large.id}?text=<b>").text)
    assert "0 of 120 runs" in none
    assert "No run of this sweep has “<b>” in its name or arm." in none


def test_the_page_says_which_curves_are_drawn_and_how_many_are_not(site: TestClient, large: Large) -> None:
    html = site.get(f"/sweeps/{large.id}").text
    words = text_of(html)
    assert "the control, the 9 arms forecast highest, the one in the middle and the lowest, each by its middle" in words
    assert "the other 108: 90 % of them, half of them, median" in words
    series = json.loads(unescape(re.search(r'data-series="([^"]+)"', html)[1]))  # type: ignore[index]
    assert list(series.values()) == [None, *range(11)]
    curves = unescape(re.search(r'data-curves="([^"]+)"', html)[1])  # type: ignore[index]
    drawn = site.get(curves).json()
    assert [one["run"]["id"] for one in drawn["runs"]] == list(series)
    assert drawn["others"]["runs"] == 108
    assert html.count("data-key=") == 12


def test_another_run_is_drawn_beside_those_by_a_press_in_its_row(site: TestClient, large: Large) -> None:
    other = large.arms["arm 7"][3]
    html = site.get(f"/sweeps/{large.id}?text=arm 7").text
    row = re.search(rf'<tr id="{other}".*?</tr>', html, flags=re.S)[0]  # type: ignore[index]
    more = site.get(unescape(re.search(r'class="draw"[^>]*href="([^"]+)"', row)[1])).text  # type: ignore[index]
    series = json.loads(unescape(re.search(r'data-series="([^"]+)"', more)[1]))  # type: ignore[index]
    assert list(series)[-1] == other
    assert len(series) == 13
    assert "the other 107" in text_of(more)
    assert link(more, "Draw the best") == f"/sweeps/{large.id}?text=arm+7"


def test_at_most_twenty_are_drawn_the_last_ones_and_strangers_are_not(site: TestClient, large: Large) -> None:
    asked = ["run_nobody", *large.runs[:22]]
    html = site.get(f"/sweeps/{large.id}?show={','.join(asked)}").text
    assert re.findall(r'data-key="(\w+)"', html) == large.runs[2:22]
    assert site.get(f"/sweeps/{large.id}?show=none").text.count("data-key=") == 12


@pytest.mark.parametrize("cursor", ["x", "-1", "99999", "9" * 30])
def test_a_place_that_the_table_does_not_have_is_its_beginning(cursor: str, site: TestClient, large: Large) -> None:
    html = site.get(f"/sweeps/{large.id}?cursor={cursor}").text
    assert rows(html) == large.runs[:100]


def test_a_sweep_of_too_many_runs_says_so_in_place_of_not_yet(
    site: TestClient, large: Large, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not compared yet" in row_of(site.get(f"/sweeps/{large.id}").text, large.arms["arm 1"][0])
    monkeypatch.setattr("server.comparisons.find.MOST_RUNS", 100)
    assert "not compared: too many runs" in row_of(site.get(f"/sweeps/{large.id}").text, large.arms["arm 1"][0])


def test_twice_as_many_runs_cost_as_many_statements(
    site: TestClient, sessions: Sessions, engine: Engine, large: Large
) -> None:
    with sessions.begin() as session:
        larger = large_sweep(session, arms=60)
    for sweep in (large, larger):
        site.get(f"/sweeps/{sweep.id}")  # what its forecasts say is remembered
    sent = []
    for sweep in (large, larger):
        with counted(engine) as statements:
            assert site.get(f"/sweeps/{sweep.id}?sort=-end").status_code == 200
        sent.append(len(statements))
    assert sent[0] == sent[1]
