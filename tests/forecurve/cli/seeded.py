"""Runs with evaluations, advice and alerts, written beside the API, for the commands that show them."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from tests.web import seeding


def seeded_run(
    sessions: sessionmaker[Session],
    name: str = "control",
    *,
    until: float = 40.0,
    status: str = "running",
    seed: int = 0,
    executor: str = "ray",
) -> str:
    """Id of a run whose evaluations go up to `until`; none of them where that is 0."""
    with sessions.begin() as session:
        run = seeding.add_run(session, now=datetime.now(UTC), name=name, status=status)
        run.seed, run.executor = seed, executor
        if until:
            seeding.add_evaluations(session, run, seeding.Truth(), until=until, now=datetime.now(UTC), seed=seed)
        return str(run.id)


def seeded_advice(sessions: sessionmaker[Session], run_id: str, action: str = "stop") -> str:
    """Id of open advice on the run."""
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        forecast = seeding.add_forecast(session, run, seeding.Truth(), at=40.0, now=datetime.now(UTC), action=action)
        return str(seeding.add_recommendation(session, run, forecast).id)


def seeded_alert(sessions: sessionmaker[Session], run_id: str) -> str:
    """Id of an open alert of the run, which was delivered to a channel."""
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        alert = seeding.add_alert(session, run, since=31.0, at=33.0, now=datetime.now(UTC))
        points = [{"compute": float(at), "reward": 0.1} for at in range(40)]
        alert.evidence = {"run_length": 7, "deepest": 0.123456, "points": points, "log_tail": "first\n\x1b[31mlast"}
        alert.evidence |= {"e_value": 1.0161101448376816e27, "expected": {"lower": 0.54757655, "median": 0.57885802}}
        return str(alert.id)
