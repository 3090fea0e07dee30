"""`/metrics` as Prometheus reads it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Delivery
from server.alerts.service import open_alert
from server.events.outbox import enqueue
from tests.conftest import Clock
from tests.server.forecasts.seeds import make_channel, make_run

Headers = dict[str, dict[str, str]]
Sample = tuple[str, tuple[tuple[str, str], ...]]


def scraped(api: TestClient, headers: dict[str, str]) -> dict[Sample, float]:
    answer = api.get("/metrics", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(answer.text)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def at(found: dict[Sample, float], name: str, **labels: str) -> float:
    return found[f"forecurve_{name}", tuple(sorted(labels.items()))]


def test_what_there_is_is_counted_by_its_state(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session], clock: Clock
) -> None:
    empty = scraped(api, headers["read"])
    assert at(empty, "runs", status="running") == at(empty, "runs", status="failed") == 0
    assert at(empty, "open_alerts", level="ALERT") == at(empty, "waiting_deliveries_oldest_seconds") == 0
    with sessions.begin() as session:
        make_channel(session, "https://hooks.example.com/x")
        run = make_run(session, "one")
        open_alert(session, run, kind="fell", level="ALERT", title="t", text="x", now=clock.now)
        run.dirty_at, run.dirty_since = clock.now, clock.now - timedelta(seconds=7)
        make_run(session, "two").status = "failed"
        enqueue(session, "worker.tasks.refit", run.id, not_before=clock.now + timedelta(hours=1))
    clock.advance(30)
    found = scraped(api, headers["read"])
    assert at(found, "runs", status="failed") == 1
    assert at(found, "open_alerts", level="ALERT") == 1
    assert at(found, "waiting_refits") == 1
    assert at(found, "waiting_refits_oldest_seconds") == 37
    assert at(found, "waiting_deliveries") == 1
    assert at(found, "given_up_deliveries") == 0
    with sessions.begin() as session:
        session.execute(update(Delivery).values(status="failed", given_up_at=clock.now))
    assert at(scraped(api, headers["read"]), "given_up_deliveries") == 1
    clock.advance(25 * 3600)
    assert at(scraped(api, headers["read"]), "given_up_deliveries") == 0
    assert at(found, "waiting_tasks") == 1  # to deliver the alert; the other is not due yet


def test_answers_are_timed_by_their_route(api: TestClient, headers: Headers) -> None:
    def counted(found: dict[Sample, float]) -> float:
        labels = {"method": "GET", "route": "/v1/runs/{run_id:id}", "status": "404"}
        name = "forecurve_http_request_seconds_count"
        return found.get((name, tuple(sorted(labels.items()))), 0.0)

    before = counted(scraped(api, headers["read"]))
    for name in ("run_one", "run_two"):
        assert api.get(f"/v1/runs/{name}", headers=headers["read"]).status_code == 404
    assert api.get("/nothing/of/the/kind", headers=headers["read"]).status_code == 404
    found = scraped(api, headers["read"])
    assert counted(found) == before + 2
    assert not any("run_one" in value or "kind" in value for _, labels in found for _, value in labels)


@pytest.mark.parametrize("given", [{}, {"authorization": "Bearer fc_api_unknown"}])
def test_who_may_not_read_gets_no_figures(api: TestClient, given: dict[str, str]) -> None:
    answer = api.get("/metrics", headers=given)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
