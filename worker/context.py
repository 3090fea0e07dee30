"""What a task works with: the database, the settings, the executor, the bell. Built once per process."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import httpx
from sqlalchemy.orm import Session, sessionmaker

from server.database import Patience, make_engine, make_sessions
from server.settings import Settings
from worker.executors.base import Executor
from worker.executors.ray_jobs import RayJobs, certificates

log = logging.getLogger(__name__)

TASK_S = 60
"""How long a task may take."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class BrokerDown(Exception):
    """The broker did not take a message. Nothing is lost: the outbox and the sweep ring again."""


class Ring(Protocol):
    """Publishes a task to the broker. `expires_s`: nobody needs to hear it after that."""

    def __call__(self, task: str, *args: object, expires_s: float | None = None) -> None:
        """Raises BrokerDown."""
        ...


@dataclass(frozen=True)
class Context:
    """The surroundings of a task. Tests give fakes for `executor`, `ring`, `reachable` and `clock`."""

    sessions: sessionmaker[Session]
    settings: Settings
    executor: Executor
    ring: Ring
    reachable: Callable[[], bool]
    """Whether trainers can reach the API, as far as can be told from here."""
    clock: Callable[[], datetime] = utc_now


def make_context(settings: Settings, ring: Ring) -> Context:
    """The real surroundings. Nothing is connected before it is used."""
    token = settings.ray_token.get_secret_value() if settings.ray_token else None
    # A task that ends at its time limit leaves its statement, and what that has locked, to Postgres.
    patience = Patience(statement_s=TASK_S, idle_s=settings.idle_transaction_timeout_s)
    sessions = make_sessions(make_engine(settings.database_url, patience, pool_size=3, max_overflow=5))
    return Context(sessions, settings, RayJobs(settings.ray_url, token), ring, _api_probe(settings))


def _api_probe(settings: Settings) -> Callable[[], bool]:
    """Asks the API's health where trainers reach it. An API that this machine cannot reach counts as down, and the
    reconciler is patient for as long; so the log says it, once each time."""
    url = (settings.trainer_url or settings.public_url).rstrip("/")
    client = httpx.Client(timeout=2.0, trust_env=False, verify=certificates(url))
    was_reachable = True

    def reachable() -> bool:
        nonlocal was_reachable
        fault = _fault(client, f"{url}/healthz")
        if fault and was_reachable:
            log.warning(
                "%s does not answer here (%s): until it does, no silence of a run and no deadline counts. "
                "FORECURVE_TRAINER_URL is to be an address that trainers and the worker reach.",
                url,
                fault,
            )
        was_reachable = not fault
        return was_reachable

    return reachable


def _fault(client: httpx.Client, url: str) -> str | None:
    """Why it does not answer as it should; None when it does."""
    try:
        answer = client.get(url)
    except httpx.HTTPError as error:
        return str(error) or type(error).__name__
    return None if answer.is_success else f"status {answer.status_code}"
