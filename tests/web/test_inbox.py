"""The inbox of alerts."""

from __future__ import annotations

from fastapi.testclient import TestClient
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Alert, Channel, Delivery
from server.alerts.telling import tell_back
from server.runs.models import Run
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import row_of, text_of


def test_the_inbox_says_what_happened_and_whom_it_told(site: TestClient, seeded: Seeded) -> None:
    row = row_of(site.get("/alerts").text, seeded.alert)
    assert "broken-learning-rate fell below its forecast" in row
    assert "#rl-alerts: delivered" in row
    assert "1 not acknowledged" in text_of(site.get("/runs").text)


def test_the_inbox_says_that_a_channel_does_not_answer(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        session.execute(update(Delivery).values(status="pending", tries=4, response_status=503))
        run_id = session.get_one(Alert, seeded.alert).run_id
    for html in (row_of(site.get("/alerts").text, seeded.alert), text_of(site.get(f"/runs/{run_id}").text)):
        assert "#rl-alerts: pending (503) after 4 tries" in html


def test_the_inbox_says_who_was_told_that_a_run_is_back(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        alert = session.get_one(Alert, seeded.alert)
        tell_back(session, alert, "It has been back since 60 GPU-hours.", clock.now)
        run_id = alert.run_id
    assert "#rl-alerts (back): pending" in row_of(site.get("/alerts").text, seeded.alert)
    assert "#rl-alerts (back): pending" in text_of(site.get(f"/runs/{run_id}").text)


def test_an_alert_below_the_level_of_every_channel_does_not_ask_for_one(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.arm)
        warning = seeding.add_alert(session, run, since=32, at=36, now=clock.now, delivered=False)
        warning.level = "WARN"
        alert = warning.id
    assert "add one" not in row_of(site.get("/alerts").text, alert)
    with sessions.begin() as session:
        session.execute(update(Channel).values(enabled=False))
    assert "no channel · add one" in row_of(site.get("/alerts").text, alert)


def test_an_alert_that_was_acknowledged_stays_in_the_inbox_but_is_not_counted(site: TestClient, seeded: Seeded) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    assert site.post(f"/v1/alerts/{seeded.alert}:acknowledge", headers=same_site).status_code == 200
    html = site.get("/alerts").text
    assert "acknowledged" in row_of(html, seeded.alert)
    assert f"{seeded.alert}:acknowledge" not in html
    assert "not acknowledged" not in text_of(html)


def test_an_alert_that_was_resolved_leaves_the_inbox_and_stays_on_its_runs_page(
    site: TestClient, seeded: Seeded
) -> None:
    same_site = {"Sec-Fetch-Site": "same-origin"}
    assert f'data-action="/v1/alerts/{seeded.alert}:resolve"' in site.get("/alerts").text
    alert = site.post(f"/v1/alerts/{seeded.alert}:resolve", headers=same_site).json()
    assert seeded.alert not in site.get("/alerts").text
    assert "resolved" in row_of(site.get("/alerts?show=all").text, seeded.alert)
    resolved = "1 alert is resolved, by a person, or because the run is over or went on from before it: show all"
    assert resolved in text_of(site.get("/alerts").text)
    page = site.get(f"/runs/{alert['run_id']}").text
    assert seeded.alert in page
    assert f"{seeded.alert}:resolve" not in page
