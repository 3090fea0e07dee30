"""`forecurve run logs` against the real API; the worker's part, reading from the cluster, is played by the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli.showing import logs
from server.logs.models import AttemptLog
from server.logs.service import keep, note_read
from server.runs.models import Attempt, Run
from worker.executors.job_log import JobLog

from .conftest import Forecurve
from .seeded import seeded_run

Print = Callable[..., None]


@pytest.fixture
def run_id(service: str, sessions: sessionmaker[Session]) -> str:
    return seeded_run(sessions)


@pytest.fixture
def printed(sessions: sessionmaker[Session], run_id: str) -> Print:
    """Says what the job of an attempt has printed by now."""

    def says(*lines: str, number: int = 1, whole: bool = False, first: int = 0, unfinished: str = "") -> None:
        with sessions.begin() as session:
            mine = select(Attempt).where(Attempt.run_id == run_id, Attempt.number == number)
            attempt = session.scalar(mine)
            if attempt is None:
                attempt = Attempt(run_id=run_id, number=number)
                session.add(attempt)
                session.get_one(Run, run_id).attempt = number
                session.flush()
            note_read(session, [attempt.id], datetime.now(UTC), 0.01)
            keep(session, attempt.id, JobLog(first, lines, unfinished), whole=whole)

    return says


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens, one after another, while the command waits."""
    acts: list[Callable[[], None]] = []
    monkeypatch.setattr(logs, "wait", lambda _: acts.pop(0)() if acts else pytest.fail("waits for nothing"))
    return acts


def over(sessions: sessionmaker[Session], run_id: str) -> None:
    with sessions.begin() as session:
        session.get_one(Run, run_id).status = "succeeded"


def test_a_log_is_printed_as_it_is_when_the_worker_has_looked(
    forecurve: Forecurve, run_id: str, printed: Print, waiting: list[Callable[[], None]]
) -> None:
    printed("step 0")
    waiting += [lambda: None, lambda: printed("step 0", "step\t5")]
    assert forecurve("run", "logs", run_id).out == "step 0\nstep    5\n"


def test_where_the_worker_does_not_look_it_is_said_of_when_the_log_is(
    forecurve: Forecurve,
    run_id: str,
    printed: Print,
    sessions: sessionmaker[Session],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logs, "_FRESH_S", 0.0)
    unread = forecurve("run", "logs", run_id)
    assert (unread.code, unread.out) == (0, "")
    assert "not read yet; if it stays so, `forecurve status` says whether there is a worker" in unread.err
    printed("step 0")
    old = forecurve("run", "logs", run_id)
    assert old.out == "step 0\n"
    assert old.err == "forecurve: as it was 0 s ago\n"
    with sessions.begin() as session:
        session.execute(update(AttemptLog).values(read_at=datetime.now(UTC) - timedelta(hours=2)))
    assert "as it was 2 h ago; `forecurve status` says" in forecurve("run", "logs", run_id).err


def test_so_many_lines_of_so_many_an_attempt(forecurve: Forecurve, run_id: str, printed: Print) -> None:
    printed("one", "two", "three", whole=True)
    printed(number=2, whole=True)
    assert forecurve("run", "logs", run_id, "--attempt", "1", "--tail", "2").out == "two\nthree\n"
    newest = forecurve("run", "logs", "control")  # by its name
    assert (newest.out, newest.err) == ("", "Nothing is known of what attempt 2 printed.\n")
    found = forecurve("run", "logs", run_id, "--attempt", "1", "--json").json
    assert (found["lines"], found["next"], found["whole"]) == (["one", "two", "three"], 3, True)
    forecurve("run", "logs", run_id, "--attempt", "3").check_is_bad_input(["attempt", "launched 2 times"])


def test_what_a_terminal_would_obey_is_shown(forecurve: Forecurve, run_id: str, printed: Print) -> None:
    printed("\x1b]0;a title\x07 of it", whole=True)
    assert "\x1b" not in forecurve("run", "logs", run_id).out


def test_a_log_is_followed_from_attempt_to_attempt_until_the_run_is_over(
    forecurve: Forecurve,
    run_id: str,
    printed: Print,
    waiting: list[Callable[[], None]],
    sessions: sessionmaker[Session],
) -> None:
    printed("step 0")
    waiting += [
        lambda: printed("step 0", "step 1"),
        lambda: printed("from step 1", number=2),
        lambda: printed("step 0", "step 1", "killed", whole=True),  # read after the next one has begun
        lambda: printed("from step 1", "done", number=2, whole=True),
        lambda: over(sessions, run_id),
    ]
    followed = forecurve("run", "logs", run_id, "--follow")
    assert followed.out.split("\n") == ["step 0", "step 1", "killed", "from step 1", "done", ""]
    assert followed.err == "forecurve: attempt 2\n"
    lines = [json.loads(line) for line in forecurve("run", "logs", run_id, "-f", "--json").out.splitlines()]
    assert lines == [
        {"attempt": 2, "line": 0, "text": "from step 1"},
        {"attempt": 2, "line": 1, "text": "done"},
    ]


def test_what_has_no_end_yet_is_shown_and_lines_that_are_gone_are_counted(
    forecurve: Forecurve, run_id: str, printed: Print, waiting: list[Callable[[], None]]
) -> None:
    waiting += [lambda: printed("step 0", unfinished="10 %|#   |")]
    assert forecurve("run", "logs", run_id).out == "step 0\n10 %|#   |\n"
    waiting += [lambda: printed("step 1000", first=1000, whole=True)]
    followed = forecurve("run", "logs", run_id, "--follow", "--attempt", "1")
    assert followed.out == "step 0\nstep 1000\n"
    assert followed.err == "forecurve: 999 lines came meanwhile that are not kept\n"


def test_one_attempt_is_followed_to_its_own_end(
    forecurve: Forecurve, run_id: str, printed: Print, waiting: list[Callable[[], None]]
) -> None:
    printed("step 0")
    waiting += [lambda: printed("step 0", "killed", whole=True)]
    assert forecurve("run", "logs", run_id, "--follow", "--attempt", "1").out == "step 0\nkilled\n"


def test_a_run_that_waits_in_the_queue_is_waited_for(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], waiting: list[Callable[[], None]]
) -> None:
    run_id = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    assert forecurve("run", "logs", run_id).err == "Not launched yet.\n"

    def cancelled() -> None:
        forecurve("run", "cancel", run_id)
        with sessions.begin() as session:
            run = session.get_one(Run, run_id)
            run.status, run.finished_at = "stopped", datetime.now(UTC) - timedelta(seconds=1)

    waiting += [lambda: None, cancelled]
    forecurve("run", "logs", run_id, "--follow")
    assert waiting == []
    assert forecurve("run", "logs", run_id).err == "Never launched.\n"
