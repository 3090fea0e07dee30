"""Every change of status goes through one door: allowed, guarded, and on record."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.access.service import authenticate, mint
from server.errors import Conflict, Unauthenticated
from server.events.models import Event
from server.runs.lifecycle import INGEST_GRACE, transition
from server.runs.models import Run
from server.runs.states import TERMINAL, TRANSITIONS, Status
from server.runs.ticks import healthy_since, tick

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def a_run(session: Session, status: Status = Status.QUEUED) -> Run:
    run = Run(name="baseline", compute_unit="CPU-seconds", status=status, attempt=2)
    session.add(run)
    session.flush()
    return run


@pytest.mark.parametrize("to", Status)
@pytest.mark.parametrize("came_from", Status)
def test_a_status_follows_another_only_as_the_states_allow(session: Session, came_from: Status, to: Status):
    run = a_run(session, came_from)
    if to in TRANSITIONS[came_from]:
        assert transition(session, run, to, actor="test", reason="so", now=NOW).status == to
    else:
        with pytest.raises(Conflict) as raised:
            transition(session, run, to, actor="test", reason="so", now=NOW)
        assert raised.value.extra == {
            "state": str(came_from),
            "allowed": sorted(str(status) for status in TRANSITIONS[came_from]),
        }
        assert run.status == came_from


def test_a_transition_is_on_record_with_its_reason_and_evidence(session: Session):
    run = a_run(session)
    transition(session, run, Status.LAUNCHING, actor="admission", reason="its turn", now=NOW, place=1)
    event = session.scalars(select(Event).where(Event.run_id == run.id)).one()
    assert (event.kind, event.actor, event.from_state, event.to_state, event.reason) == (
        "run.status",
        "admission",
        "queued",
        "launching",
        "its turn",
    )
    assert event.evidence == {"attempt": 2, "place": 1}
    assert (run.version, run.reason) == (2, "its turn")


def test_the_start_is_the_first_time_it_ran_and_the_end_is_kept(session: Session):
    run = a_run(session)
    steps = [Status.LAUNCHING, Status.RUNNING, Status.SUSPECT, Status.RUNNING, Status.SUCCEEDED]
    for minute, status in enumerate(steps):
        transition(session, run, status, actor="test", reason=None, now=NOW + timedelta(minutes=minute))
    assert (run.started_at, run.finished_at) == (NOW + timedelta(minutes=1), NOW + timedelta(minutes=4))


def test_whoever_decided_on_an_older_version_must_decide_anew(sessions: sessionmaker[Session]):
    with sessions.begin() as session:
        run_id = a_run(session, Status.RUNNING).id
    with sessions() as late, sessions.begin() as early:
        stale = late.get_one(Run, run_id)
        transition(early, early.get_one(Run, run_id), Status.STOPPING, actor="early", reason=None, now=NOW)
        early.commit()
        with pytest.raises(Conflict, match="changed by another process"):
            transition(late, stale, Status.SUSPECT, actor="late", reason=None, now=NOW)


def test_of_many_that_move_a_run_at_once_one_succeeds(sessions: sessionmaker[Session]):
    with sessions.begin() as session:
        run_id = a_run(session, Status.RUNNING).id
    start, results = threading.Barrier(8), []

    def move(to: Status) -> None:
        with sessions() as session:
            run = session.get_one(Run, run_id)
            start.wait()
            try:
                transition(session, run, to, actor="test", reason=None, now=NOW)
                session.commit()
                results.append(str(to))
            except Conflict:
                session.rollback()

    ends = [Status.SUCCEEDED, Status.FAILED, Status.STOPPED, Status.SUSPECT] * 2
    threads = [threading.Thread(target=move, args=(to,)) for to in ends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with sessions() as session:
        assert [session.get_one(Run, run_id).status] == results
        assert len(session.scalars(select(Event)).all()) == 1


@pytest.mark.parametrize("end", sorted(TERMINAL))
def test_the_tokens_of_a_run_that_is_over_are_good_for_a_grace(session: Session, end: Status):
    run = a_run(session, Status.RUNNING)
    _, secret = mint(session, kind="ingest", name="i", scopes=["ingest"], now=NOW, run_id=run.id, attempt=2)
    other, _ = mint(session, kind="ingest", name="o", scopes=["ingest"], now=NOW, run_id=None)
    transition(session, run, end, actor="test", reason=None, now=NOW)
    assert authenticate(session, secret, NOW + INGEST_GRACE - timedelta(seconds=1)).run_id == run.id
    with pytest.raises(Unauthenticated):
        authenticate(session, secret, NOW + INGEST_GRACE)
    session.refresh(other)
    assert other.expires_at is None


def test_health_lasts_until_a_gap(session: Session):
    gap = timedelta(seconds=15)
    for second in (0, 10, 20, 35):
        assert tick(session, "t", NOW + timedelta(seconds=second), gap=gap) == NOW
    assert healthy_since(session, "t", NOW + timedelta(seconds=50), gap=gap) == NOW
    late = NOW + timedelta(seconds=51)
    assert healthy_since(session, "t", late, gap=gap) == late
    assert tick(session, "t", late, gap=gap) == late
    assert tick(session, "t", late + gap, gap=gap) == late


def test_a_clock_that_is_set_back_ends_the_time_of_health(session: Session):
    gap = timedelta(seconds=15)
    tick(session, "t", NOW - timedelta(hours=1), gap=gap)
    tick(session, "t", NOW, gap=gap)
    back = NOW - timedelta(minutes=30)
    assert healthy_since(session, "t", back, gap=gap) == back
    assert tick(session, "t", back, gap=gap) == back
    late = back + timedelta(seconds=16)
    assert tick(session, "t", late, gap=gap) == late, "an outage after it is seen as one"


def test_what_never_ticked_is_healthy_since_now(session: Session):
    assert healthy_since(session, "t", NOW, gap=timedelta(seconds=1)) == NOW
