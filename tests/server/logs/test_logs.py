"""Logs over HTTP: the last lines or those after a number, of any attempt, and whose looking makes the worker read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session, sessionmaker

from server.logs.models import AttemptLog
from server.logs.service import keep, note_read, read_log
from server.runs.models import Attempt, Run
from tests.conftest import Clock
from tests.server.reporting import Headers, external_run, faults, queued_run
from worker.executors.job_log import JobLog


def launched(sessions: sessionmaker[Session], run_id: str, number: int = 1, **values: object) -> str:
    """Id of the run's attempt of this number, which is its newest."""
    with sessions.begin() as session:
        attempt = Attempt(run_id=run_id, number=number, external_ref=f"{run_id}-a{number}", **values)
        session.add(attempt)
        session.get_one(Run, run_id).attempt = number
        session.flush()
        return attempt.id


def printed(sessions: sessionmaker[Session], attempt_id: str, *lines: str, first: int = 0, whole: bool = False) -> None:
    with sessions.begin() as session:
        note_read(session, [attempt_id], session.get_one(Attempt, attempt_id).created_at, 0.01)
        keep(session, attempt_id, JobLog(first, lines), whole=whole)


def test_the_last_lines_are_given_or_those_after_a_number(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    run = queued_run(api, headers)
    printed(sessions, launched(sessions, run), *(f"step {at}" for at in range(30)), first=70)

    def ask(**query: int) -> dict[str, object]:
        return api.get(f"/v1/runs/{run}/logs", params=query, headers=headers["read"]).json()

    whole = ask()
    assert (whole["first"], whole["next"], whole["kept"], whole["whole"]) == (70, 100, 70, False)
    assert whole["lines"] == [f"step {at}" for at in range(30)]
    assert ask(limit=2)["lines"] == ["step 28", "step 29"]
    page = ask(after=75, limit=3)
    assert (page["first"], page["lines"], page["next"]) == (75, ["step 5", "step 6", "step 7"], 78)
    assert ask(after=3, limit=1)["first"] == 70  # what came before is not kept
    assert (ask(after=100)["lines"], ask(after=100)["next"]) == ([], 100)
    assert (ask(after=900)["lines"], ask(after=900)["next"]) == ([], 100)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(count=st.integers(0, 12), first=st.integers(0, 5), limit=st.integers(1, 6), start=st.integers(0, 20))
def test_whoever_goes_on_from_next_gets_every_line_once(
    sessions: sessionmaker[Session], count: int, first: int, limit: int, start: int
) -> None:
    lines = [f"{'' if at % 3 else 'line'} {at}".strip() for at in range(count)]  # some are empty
    with sessions() as session:
        run = Run(name="a", compute_unit="steps", attempt=1)
        session.add(run)
        session.flush()
        attempt = Attempt(run_id=run.id, number=1, external_ref="a")
        session.add(attempt)
        session.flush()
        note_read(session, [attempt.id], run.created_at, 0.0)
        keep(session, attempt.id, JobLog(first, tuple(lines)), whole=True)
        got, after = [], start
        while (page := read_log(session, run.id, None, after=after, limit=limit, now=run.created_at)).lines:
            got += page.lines
            after = page.next
        session.rollback()
    assert got == lines[max(start - first, 0) :]


def test_of_a_run_that_was_not_launched_there_is_nothing_yet(api: TestClient, headers: Headers) -> None:
    run = queued_run(api, headers)
    answer = api.get(f"/v1/runs/{run}/logs", headers=headers["read"]).json()
    assert (answer["attempt"], answer["lines"], answer["whole"], answer["read_at"]) == (0, [], False, None)
    api.post(f"/v1/runs/{run}:cancel", headers=headers["operate"])
    refused = api.get(f"/v1/runs/{run}/logs", params={"attempt": 1}, headers=headers["read"])
    assert (refused.status_code, set(faults(refused))) == (404, {"attempt"})


def test_a_run_that_its_user_launched_prints_where_nobody_reads(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers).run_id
    refused = api.get(f"/v1/runs/{run}/logs", headers=headers["read"])
    assert refused.status_code == 404
    assert "look where it was started" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("query", "field"),
    [({"attempt": 0}, "attempt"), ({"after": -1}, "after"), ({"limit": 0}, "limit"), ({"limit": 5001}, "limit")],
)
def test_bad_numbers_are_refused_by_name(api: TestClient, headers: Headers, query: dict[str, int], field: str) -> None:
    run = queued_run(api, headers)
    refused = api.get(f"/v1/runs/{run}/logs", params=query, headers=headers["read"])
    assert (refused.status_code, set(faults(refused))) == (422, {field})


def test_who_looks_is_noted_at_most_every_few_seconds_and_not_of_a_log_that_is_whole(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = queued_run(api, headers)
    attempt_id = launched(sessions, run)

    def asked() -> object:
        api.get(f"/v1/runs/{run}/logs", headers=headers["read"])
        with sessions() as session:
            return session.get_one(AttemptLog, attempt_id).asked_at

    first = clock.now
    assert asked() == first
    clock.now += timedelta(seconds=2)
    assert asked() == first
    clock.now += timedelta(seconds=4)
    again = clock.now
    assert asked() == again
    printed(sessions, attempt_id, "the end", whole=True)
    clock.now += timedelta(minutes=1)
    assert asked() == again


def test_a_log_that_nobody_read_since_its_attempt_ended_is_waited_for_no_longer(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = queued_run(api, headers)
    attempt_id = launched(sessions, run, ended_at=clock.now)
    printed(sessions, attempt_id, "step 0")
    whole = [api.get(f"/v1/runs/{run}/logs", headers=headers["read"]).json()["whole"]]
    clock.now += timedelta(minutes=3)
    whole.append(api.get(f"/v1/runs/{run}/logs", headers=headers["read"]).json()["whole"])
    assert whole == [False, True]
