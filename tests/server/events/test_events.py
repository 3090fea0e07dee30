"""Events over HTTP: oldest first, none skipped however late its transaction commits."""

from __future__ import annotations

import time
from uuid import uuid4

import psycopg
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event
from server.events.service import current_cursor, read_after, record
from tests.server.reporting import Headers, evaluation, external_run, faults, queued_run

Sessions = sessionmaker[Session]


def test_events_are_read_on_from_a_cursor(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    first = api.get("/v1/events", headers=headers["read"]).json()
    assert [event["kind"] for event in first["items"]] == ["run.created"]
    assert first["items"][0]["evidence"] == {"executor": "external"}
    assert first["items"][0]["actor"].startswith("tok_")
    assert first["items"][0]["actor_name"] == "test operate"
    of_run = api.get(f"/v1/runs/{run.run_id}/events", headers=headers["read"]).json()["items"]
    assert [event["actor_name"] for event in of_run] == ["test operate"]
    run.send(1, evaluation(10))
    queued_run(api, headers)
    since = f"/v1/events?since={first['cursor']}"
    second = api.get(since, headers=headers["read"]).json()
    assert [event["kind"] for event in second["items"]] == ["run.status", "evaluation", "run.created"]
    assert (second["items"][0]["actor"], second["items"][0]["actor_name"]) == ("trainer", None)
    mine = api.get(f"{since}&run_id={run.run_id}", headers=headers["read"]).json()
    assert [event["kind"] for event in mine["items"]] == ["run.status", "evaluation"]
    nothing = api.get(f"/v1/events?since={second['cursor']}", headers=headers["read"]).json()
    assert nothing["items"] == []
    assert nothing["cursor"] >= second["cursor"]


def test_what_happened_at_once_is_never_torn_between_two_pages(api: TestClient, headers: Headers) -> None:
    body = {"preset": "scalerl", "design": {"kind": "leave_one_out", "ingredients": ["cispo", "pipeline"]}}
    sweep = api.post("/v1/sweeps", json=body, headers=headers["operate"]).json()
    api.post(f"/v1/runs/{sweep['runs'][0]['id']}:stop", headers=headers["operate"])
    page = api.get("/v1/events?limit=1", headers=headers["read"]).json()
    assert [event["kind"] for event in page["items"]] == ["sweep.created", *["run.created"] * 3]
    rest = api.get(f"/v1/events?since={page['cursor']}&limit=1", headers=headers["read"]).json()
    assert [event["kind"] for event in rest["items"]] == ["run.desired"]
    of_sweep = api.get(f"/v1/events?sweep_id={sweep['id']}", headers=headers["read"]).json()
    assert len(of_sweep["items"]) == 5


def test_an_event_that_commits_late_is_not_skipped(sessions: Sessions) -> None:
    with sessions() as early, sessions() as late, sessions() as reader:
        record(late, "late", actor="test")
        late.flush()  # draws its id first
        record(early, "early", actor="test")
        early.commit()
        held = read_after(reader, 0)
        assert held.items == [], "a transaction that began before may still write"
        reader.commit()
        late.commit()
        assert [event.kind for event in read_after(reader, held.cursor).items] == ["late", "early"]


def test_ids_drawn_the_other_way_round_lose_nothing_either(sessions: Sessions) -> None:
    with sessions() as first, sessions() as second, sessions() as reader:
        first.execute(select(func.pg_current_xact_id()))  # the older transaction
        record(second, "of the second", actor="test")
        second.flush()  # the lower id in the later transaction
        record(first, "of the first", actor="test")
        first.commit()
        page = read_after(reader, 0)
        assert [event.kind for event in page.items] == ["of the first"]
        reader.commit()
        second.commit()
        assert [event.kind for event in read_after(reader, page.cursor).items] == ["of the second"]


def test_a_transaction_in_another_database_holds_nobody_back(sessions: Sessions, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as elsewhere, sessions() as writer, sessions() as reader:
        elsewhere.execute("SELECT pg_current_xact_id()")  # and stays open
        cursor = current_cursor(reader)
        record(writer, "here", actor="test")
        writer.commit()
        assert [event.kind for event in read_after(reader, cursor).items] == ["here"]


def test_a_transaction_does_not_read_past_what_it_may_still_write(sessions: Sessions) -> None:
    with sessions() as session, sessions() as reader:
        cursor = current_cursor(session)
        record(session, "one", actor="test")
        session.flush()
        page = read_after(session, cursor)
        assert page.items == []
        record(session, "two", actor="test")
        session.commit()
        assert [event.kind for event in read_after(reader, page.cursor).items] == ["one", "two"]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["write", "commit", "read"])), max_size=25))
def test_a_reader_sees_every_event_once_in_any_interleaving(sessions: Sessions, plan: list[tuple[int, str]]) -> None:
    """Events wait for every transaction of the cluster that may still write: those of other tests' databases too."""
    mine = uuid4().hex  # events of the example before may become readable in this one

    def read(reader: Session, cursor: str) -> tuple[list[str], str]:
        page = read_after(reader, cursor, limit=2)
        reader.rollback()
        return [event.kind for event in page.items if event.kind.startswith(mine)], page.cursor

    with sessions() as reader:
        cursor = current_cursor(reader)
        reader.rollback()
        writers: dict[int, Session] = {}
        written, seen = 0, []
        for writer, action in [*plan, *((writer, "commit") for writer in range(4))]:
            if action == "write":
                session = writers.setdefault(writer, sessions())
                record(session, f"{mine} {written}", actor="test")
                session.flush()
                written += 1
            elif action == "commit" and writer in writers:
                session = writers.pop(writer)
                session.commit()
                session.close()
            elif action == "read":
                found, cursor = read(reader, cursor)
                seen += found
        until = time.monotonic() + 30
        while len(seen) < written and time.monotonic() < until:
            found, cursor = read(reader, cursor)
            seen += found
        for _ in range(3):  # and nothing twice
            found, cursor = read(reader, cursor)
            seen += found
    assert sorted(seen) == sorted(f"{mine} {index}" for index in range(written))


def test_a_bad_cursor_is_named(api: TestClient, headers: Headers) -> None:
    for since in ("-1", "soon", str(2**63)):
        assert "since" in faults(api.get(f"/v1/events?since={since}", headers=headers["read"]))


def test_transactions_are_numbers(sessions: Sessions) -> None:
    with sessions.begin() as session:
        event = record(session, "one", actor="test")
        session.flush()
        number = event.transaction
    with sessions() as session:
        assert session.scalars(select(Event.transaction).where(Event.transaction == number)).one() == number > 0
