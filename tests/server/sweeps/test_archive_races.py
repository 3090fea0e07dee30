"""A sweep is put away while it is extended and one of its new runs ends: nobody waits for the other for ever."""

from __future__ import annotations

from threading import Thread

import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Delivery
from server.errors import Conflict
from server.runs.states import Status
from server.sweeps import archive, service
from server.sweeps.models import Sweep
from server.sweeps.service import lock_sweep
from tests.forecurve.cli.services import wait_until
from tests.server.forecasts.seeds import START, make_channel, make_run, make_sweep
from tests.server.reporting import move

WAITS = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")


def test_a_run_that_is_new_and_ends_does_not_wait_for_who_puts_its_sweep_away(
    sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.begin() as session:
        make_channel(session, "https://hook.example/x", hears=["ends"])
        sweep = make_sweep(session).id
        make_run(session, "control", sweep_id=sweep, status="succeeded")
    ending: list[Thread] = []

    def waits() -> bool:
        with sessions() as session:  # anew: a transaction goes on seeing the activity that it saw first
            return session.scalar(WAITS) == 1

    def extended_meanwhile(session: Session, sweep_id: str) -> Sweep:
        with sessions.begin() as other:
            new = make_run(other, "control s1", sweep_id=sweep_id).id
        found = lock_sweep(session, sweep_id)
        ending.append(Thread(target=move, args=(sessions, new, Status.SUCCEEDED, START)))
        ending[0].start()
        wait_until(waits)  # it holds its run, and waits for the sweep
        return found

    monkeypatch.setattr(service, "lock_sweep", extended_meanwhile)
    with pytest.raises(Conflict, match="not over"), sessions.begin() as session:
        archive.archive_sweep(session, sweep, actor="t", now=START)
    ending[0].join(20)
    with sessions() as session:
        assert session.scalars(select(Delivery.event)).all() == ["sweep.over"]
