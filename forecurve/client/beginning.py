"""Asking the service for a run, or for the next attempt of one, with the token for its reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .api import Api
from .errors import ApiError, ClientError
from .values import plain


@dataclass(frozen=True)
class Reached:
    """The newest evaluation of a run that goes on, as the service had it then."""

    step: int
    compute: float
    reward: float


@dataclass(frozen=True)
class Begun:
    """An attempt that the service has begun, and the token for its reports."""

    run_id: str
    attempt: int
    ingest_token: str
    reached: Reached | None


def begin(api: Api, run_id: str | None, attempt: Mapping[str, Any]) -> Begun:
    """Have the service make the run, or begin the next attempt of run `run_id`: once, however often this is called
    with the same `attempt`.

    Raises:
        ApiError: it refused, could not be reached, or is no Forecurve.
        ClientError: run `run_id` is of another project.
    """
    if run_id is None:
        return _begun(api, api.create_run(attempt["request"], idempotency_key=attempt["key"]))
    _check_project(_run(api, run_id), attempt.get("project"))
    return _begun(api, api.begin_attempt(run_id, attempt["request"], idempotency_key=attempt["key"]))


def _run(api: Api, run_id: str) -> Mapping[str, Any]:
    try:
        return api.run(run_id)
    except ApiError as error:
        if error.code != "not-found":
            raise
        way_out = "`forecurve run list` shows those that there are; without resume= a new one is begun"
        detail = f"resume is {run_id!r}, and {api.url} has no such run; {way_out}"
        raise ApiError(detail, status=error.status, code=error.code) from None


def _check_project(run: Mapping[str, Any], project: str | None) -> None:
    name, wanted = str(run.get("name")), plain(project or "")  # of a name the service drops the blanks at its ends
    if project and name != wanted.strip() and not name.startswith(f"{wanted.lstrip()}/"):
        has = repr(name.rpartition("/")[0]) if "/" in name else "none"
        raise ClientError(
            f"project is {project!r}, and run {run.get('id')} ({name}) is of project {has}; give its own or none, or "
            "the id of another run"
        )


def _begun(api: Api, answer: Mapping[str, Any]) -> Begun:
    run_id, token, attempt = answer.get("id"), answer.get("ingest_token"), answer.get("attempt") or 1
    if not (isinstance(run_id, str) and re.fullmatch(r"[\w-]+", run_id) and isinstance(token, str) and token):
        raise ApiError(
            f"url is {api.url}, which answered something else than a run: it is no Forecurve; give the address "
            "that `forecurve up` shows (argument url, --url or FORECURVE_URL)",
            code="not-forecurve",
        )
    return Begun(run_id, int(attempt), token, _reached(answer))


def _reached(answer: Mapping[str, Any]) -> Reached | None:
    step, compute, reward = (answer.get(name) for name in ("last_step", "last_compute", "last_reward"))
    return None if step is None or compute is None or reward is None else Reached(step, compute, reward)
