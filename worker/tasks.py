"""The Celery tasks: each names ids only, may be delivered twice, and leaves the work to a function of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from server.database import transaction
from server.settings import get_settings
from worker import notify
from worker import refit as refitting
from worker.admit import admit as admit_runs
from worker.app import app, ring
from worker.compare import compare_sweep
from worker.context import Context, make_context, utc_now
from worker.dispatch import dispatch
from worker.launch import launch as launch_attempt
from worker.locks import only_one
from worker.read_logs import read_logs as read_due_logs
from worker.reconcile import reconcile as reconcile_all
from worker.reconcile import reconcile_run as reconcile_one
from worker.sweep_up import sweep_up as sweep

Function = TypeVar("Function", bound=Callable[..., None])


def task(name: str) -> Callable[[Function], Function]:
    """Register a function as the Celery task `worker.tasks.<name>`; it can still be called directly."""
    register: Any = app.task(name=f"worker.tasks.{name}")
    return register  # type: ignore[no-any-return]


def context() -> Context:
    """This process's surroundings. A forked child makes its own: sockets must not be shared over a fork."""
    return _context_of(os.getpid())


@lru_cache(maxsize=4)
def _context_of(_process: int) -> Context:
    return make_context(get_settings(), ring)


@task("tick")
def tick() -> None:
    """The periodic round: publish what the outbox holds, give away free places, compare wanted with observed."""
    surroundings = context()
    dispatch(surroundings, utc_now())
    admit()
    with only_one(surroundings.sessions, "reconcile") as mine:
        if mine:
            reconcile_all(surroundings, utc_now())


@task("admit")
def admit() -> None:
    surroundings = context()
    with transaction(surroundings.sessions) as session:
        admit_runs(session, surroundings.settings, utc_now())


@task("launch")
def launch(attempt_id: str) -> None:
    launch_attempt(context(), attempt_id, utc_now())


@task("reconcile_run")
def reconcile_run(run_id: str) -> None:
    reconcile_one(context(), run_id, utc_now())


@task("refit")
def refit(run_id: str) -> None:
    surroundings = context()
    refitting.refit(surroundings.sessions, surroundings.settings, run_id, utc_now())


@task("compare")
def compare(sweep_id: str) -> None:
    surroundings = context()
    compare_sweep(surroundings.sessions, surroundings.settings, sweep_id, utc_now())


@task("deliver")
def deliver(delivery_id: str) -> None:
    surroundings = context()
    notify.deliver(surroundings.sessions, surroundings.settings, delivery_id, utc_now())


@task("read_logs")
def read_logs() -> None:
    surroundings = context()
    with only_one(surroundings.sessions, "read_logs") as mine:
        if mine:
            read_due_logs(surroundings, utc_now())


@task("sweep_up")
def sweep_up() -> None:
    surroundings = context()
    with only_one(surroundings.sessions, "sweep_up") as mine:
        if mine:
            sweep(surroundings, utc_now())
