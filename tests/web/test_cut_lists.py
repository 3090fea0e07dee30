"""A list that shows its first alone says how many there are, and leads to the rest."""

from __future__ import annotations

import re
from html import unescape

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert, select
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Alert, Channel
from server.checkpoints.models import Checkpoint
from server.forecasts.models import Recommendation
from server.runs.models import Attempt, Run
from server.sweeps.models import Sweep
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import text_of

ROW = '<tr id="alr_'


@pytest.fixture
def long_lived(sessions: sessionmaker[Session], clock: Clock, seeded: Seeded) -> str:
    """A run with 26 attempts, alerts (one of them open) and checkpoints, 25 forks and decisions."""
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.fallen)
        for number in range(26):
            seeding.add_checkpoint(session, run, step=100 + number, compute=20.0 + number, now=clock.now)
        session.flush()
        begin = session.scalars(select(Checkpoint).where(Checkpoint.run_id == run.id).limit(1)).one()
        said = {"run_id": run.id, "level": "ALERT", "title": "t", "text": "t", "evidence": {}, "opened_at": clock.now}
        decided = {"status": "dismissed", "decided_at": clock.now, "numbers": {}, "reason": "no"}
        for number in range(2, 27):
            session.add(Attempt(run_id=run.id, number=number, created_at=clock.now))
            session.add(Alert(kind="failed", resolved_at=clock.now, **said))
            fork = seeding.add_run(session, now=clock.now, name="a fork", changes={"seed": number})
            fork.parent_run_id, fork.parent_checkpoint_id, fork.parent_step = run.id, begin.id, begin.step
            session.add(Recommendation(run_id=run.id, forecast_id=run.forecast_id, action="stop", **decided))
        return run.id


def test_the_lists_of_a_run_lead_to_the_rest(site: TestClient, long_lived: str) -> None:
    page = site.get(f"/runs/{long_lived}").text
    links = re.findall(r"(?:The newest (\d+) of )?(\d+)(?: in all)?: <a href=\"([^\"]+)\">", page)
    counts = [(shown, count) for shown, count, _ in links]
    assert counts == [("10", "25"), ("20", "26"), ("", "26"), ("20", "25"), ("20", "26")]
    decisions, inbox, *others = [unescape(address) for *_, address in links]
    for address, (_, count) in zip([decisions, *others], [counts[0], *counts[2:]], strict=True):
        assert len(site.get(address).json()["items"]) == int(count)
    assert site.get(inbox).text.count(ROW) == 26


@pytest.mark.parametrize("path", ["/runs", "/track-record"])
def test_the_choice_of_sweeps_has_the_newest_and_the_one_that_is_chosen(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, path: str
) -> None:
    with sessions.begin() as session:
        values = {"base_recipe_id": session.get_one(Sweep, seeded.sweep).base_recipe_id, "design": {}, "plan_hash": "0"}
        session.add_all(Sweep(name=f"later {number}", **values) for number in range(101))
    page = site.get(f"{path}?sweep={seeded.sweep}").text
    assert f'<option value="{seeded.sweep}" selected>loo-scalerl</option>' in page
    assert page.count(">later ") == 100
    assert "<option disabled>1 older: see Sweeps</option>" in page


def test_the_inbox_of_one_run_keeps_to_it(site: TestClient, long_lived: str, seeded: Seeded) -> None:
    page = site.get(f"/alerts?run={long_lived}&show=all").text
    assert "of broken-learning-rate" in text_of(page)
    (opened,) = re.findall(r'<a href="([^"]+)">open only', page)
    assert site.get(unescape(opened)).text.count(ROW) == 1
    other = site.get(f"/alerts?run={seeded.control}").text
    assert ROW not in other
    assert "No open alert" in text_of(other)
    assert site.get("/alerts?run=run_no").status_code == 404


def test_the_inbox_leads_to_an_alert_that_is_older_than_those_its_run_shows(
    site: TestClient, sessions: sessionmaker[Session], long_lived: str, seeded: Seeded
) -> None:
    inbox = site.get(f"/alerts?run={long_lived}&show=all").text
    links = re.findall(rf'<a href="(/runs/{long_lived}[^"]*)#(alr_[^"]+)"', inbox)
    assert len(links) == 26
    for address, alert in (links[0], links[-1]):
        page = site.get(unescape(address)).text
        assert page.count(f'<div class="panel" id="{alert}"') == 1
    assert f'id="{links[-1][1]}"' not in site.get(f"/runs/{long_lived}").text
    assert f'id="{links[-1][1]}"' not in site.get(f"/runs/{seeded.control}?alert={links[-1][1]}").text


def test_channels_that_are_too_many_to_list_are_counted(site: TestClient, sessions: sessionmaker[Session]) -> None:
    with sessions.begin() as session:
        values = {"kind": "slack", "url": "https://hooks.example.com/x", "secret": "whsec_eA=="}
        session.add_all(Channel(name=f"channel {number}", **values) for number in range(201))
    page = site.get("/settings").text
    assert 'The newest 200 of 201: <a href="/v1/channels?limit=1000">all as JSON' in page.replace("&amp;", "&")


@pytest.mark.parametrize(("more", "says"), [(975, "all as JSON"), (976, "the newest 1,000 as JSON")])
def test_a_link_to_more_than_one_page_of_json_says_so(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, long_lived: str, more: int, says: str
) -> None:
    with sessions.begin() as session:
        values = [{"run_id": long_lived, "number": 27 + at, "created_at": clock.now} for at in range(more - 1)]
        session.execute(insert(Attempt), values)
    page = site.get(f"/runs/{long_lived}").text
    assert f'<a href="/v1/runs/{long_lived}/attempts?limit=1000">{says}</a>' in page
