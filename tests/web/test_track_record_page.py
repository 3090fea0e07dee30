"""The page of the track record: how good the forecasts were, and when there is something to say of it."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.forecasts.models import Forecast
from server.runs.models import Run
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import HOSTILE, assert_clean, row_of, text_of

Sessions = sessionmaker[Session]


def finish(session: Session, clock: Clock, *, name: str, at: tuple[float, ...], **more: object) -> list[Forecast]:
    """A run of its own that is over, with forecasts made at these computes of 60."""
    run = seeding.add_run(session, now=clock.now, name=name, status="succeeded", **more)  # type: ignore[arg-type]
    seeding.add_evaluations(session, run, seeding.Truth(), until=60, now=clock.now)
    return [seeding.add_forecast(session, run, seeding.Truth(), at=one, now=clock.now) for one in at]


def test_the_page_says_in_a_sentence_how_good_the_forecasts_were(
    site: TestClient, sessions: Sessions, clock: Clock
) -> None:
    with sessions.begin() as session:
        early, late = finish(session, clock, name=HOSTILE, at=(16.0, 50.0))
        (missed,) = finish(session, clock, name="off", at=(16.0,))
        ends = missed.summary["ends_ahead"].items()
        off = {name: [value + 0.2 * (name != "compute") for value in values] for name, values in ends}
        missed.summary = missed.summary | {"ends_ahead": off}
    html = site.get("/track-record").text
    assert_clean(html)
    said = text_of(html)
    assert "Of 2 forecasts made at about a quarter of what their runs spent the 90 % interval held 1; " in said
    assert "3 forecasts of 2 finished runs" in said
    assert re.search(r"about a quarter 18 to 38 % 2 of 2 runs 50 % \d+ to \d+ %, mean of 2 runs held 1 of 2", said)
    assert "later from 75 % 1 of 1 run 100 %" in said
    assert f'href="/runs/{early.run_id}?at={early.id}"' in html
    assert " held " in row_of(html, late.id)
    assert " missed " in row_of(html, missed.id)
    assert 'aria-current="page">Track record' in html


def test_a_sweep_in_the_url_narrows_it(site: TestClient, sessions: Sessions, clock: Clock) -> None:
    with sessions.begin() as session:
        sweep = seeding.add_sweep(session, now=clock.now)
        finish(session, clock, name="of the sweep", at=(16.0,), sweep=sweep)
        finish(session, clock, name="of none", at=(16.0,))
    html = site.get(f"/track-record?sweep={sweep.id}").text
    assert ("of the sweep" in html, "of none" in html) == (True, False)
    assert f'<option value="{sweep.id}" selected>' in html
    assert f'data-sweep="{sweep.id}"' in html
    assert site.get("/track-record?sweep=swp_no").status_code == 404


def test_an_empty_store_says_what_is_counted_and_what_to_type(site: TestClient) -> None:
    said = text_of(site.get("/track-record").text)
    assert "No forecast can be scored yet. There is something here once a run that was forecast is over." in said
    assert "Runs that go on and archived ones are not." in said
    assert "forecurve score" in said
    assert "data-chart" not in site.get("/track-record").text


def test_what_was_withheld_is_said_to_count(site: TestClient, sessions: Sessions, clock: Clock) -> None:
    words = "A forecast that was withheld for a misfit counts with the interval that it would have had."
    with sessions.begin() as session:
        finish(session, clock, name="one", at=(16.0,))
    assert words not in text_of(site.get("/track-record").text)
    with sessions.begin() as session:
        (said,) = finish(session, clock, name="fell", at=(16.0,))
        said.summary = said.summary | {"misfit": "collapse"}
    assert words in text_of(site.get("/track-record").text)


def test_forecasts_that_wait_are_counted_and_a_sweep_without_any_can_be_left(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/track-record?sweep={seeded.sweep}").text
    assert "No forecast of loo-scalerl can be scored yet. 3 forecasts wait" in text_of(html)
    assert "forecurve run list" in html
    assert '<a class="button" href="/track-record">Clear</a>' in html


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        ("conformal", "calibrated on 12 past runs"),
        ("adjusted", "adjusted by 12 past runs"),
        ("posterior", "the fit itself"),
    ],
)
def test_what_an_interval_rests_on_is_said_in_words(
    site: TestClient, sessions: Sessions, clock: Clock, calibration: str, words: str
) -> None:
    with sessions.begin() as session:
        (said,) = finish(session, clock, name="one", at=(16.0,))
        runs = 0 if calibration == "posterior" else 5 if calibration == "adjusted" else 12
        at_budget = said.summary["at_budget"]
        conformal = at_budget["conformal"] | {"runs": runs, "shift": 0.0, "factor": 1.0}
        said.summary = said.summary | {"at_budget": at_budget | {"conformal": conformal}}
    assert words.replace("12", str(runs)) in row_of(site.get("/track-record").text, said.id)


def test_an_archived_run_leaves_the_track_record(site: TestClient, sessions: Sessions, clock: Clock) -> None:
    with sessions.begin() as session:
        (said,) = finish(session, clock, name="put away", at=(16.0,))
        session.get_one(Run, said.run_id).archived_at = clock.now
    assert "put away" not in site.get("/track-record").text
