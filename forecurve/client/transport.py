"""Sending one entry, and what its answer means for the queue."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from .errors import ApiError
from .http import make_http, problem
from .spool import Entry

_OVER = frozenset({"superseded", "over"})
_LATER = frozenset({408, 425, 429})
_IN_PART = frozenset({413, 422})
_ACCESS = frozenset({401, 403})
_LONGEST_PAUSE_S = 300.0
_PATHS = {"metrics": "metrics", "checkpoint": "checkpoints", "outcome": "outcome"}


@dataclass(frozen=True)
class Taken:
    """The service has it."""


@dataclass(frozen=True)
class Later:
    """Try again, not before `after_s` when the service said so. `denied`: access was refused, so not soon."""

    reason: str
    after_s: float | None = None
    denied: bool = False


@dataclass(frozen=True)
class Refused:
    """The service will never take it; `over` when the run or this attempt is over; `in_part` when what it says is
    against something in the body, so that a part of it may be taken."""

    answer: dict[str, Any] = field(default_factory=dict)
    over: bool = False
    in_part: bool = False

    @property
    def detail(self) -> str:
        """Why, in words."""
        return str(self.answer.get("detail", self.answer))


Answer = Taken | Later | Refused


class Transport:
    """The doors of one attempt of one run: metrics, checkpoints, outcome, heartbeat, recipe.

    Args:
        handed_in_by: the later attempt that sends the reports of this one, with its own token.
        http: that of another attempt, which closes it.
    """

    def __init__(
        self,
        url: str,
        token: str,
        run_id: str,
        attempt: int,
        handed_in_by: int | None = None,
        http: httpx.Client | None = None,
    ):
        self.url = url.rstrip("/")
        self.run_id = run_id
        self.attempt = attempt
        self._who = {"attempt": attempt} | ({"handed_in_by": handed_in_by} if handed_in_by else {})
        self._token = token
        self._is_shared = http is not None
        self._http = http or make_http(url, token)

    def handing_in(self, attempt: int) -> Transport:
        """The doors for the reports of an earlier attempt, which this one sends, over the same connections."""
        return Transport(self.url, self._token, self.run_id, attempt, handed_in_by=self.attempt, http=self._http)

    def send(self, entry: Entry) -> Answer:
        """Send an entry; never raises."""
        key = f"{self.run_id}-a{self.attempt}-{entry.n}"
        path = f"/v1/runs/{self.run_id}/{_PATHS[entry.kind]}"
        headers = {} if entry.kind == "metrics" else {"Idempotency-Key": key}  # batches have their own number
        try:
            request = self._http.build_request("POST", path, json=self._who | entry.body, headers=headers)
        except Exception as error:  # noqa: BLE001 - what can never be sent must not hold up what comes after it
            return Refused({"detail": f"it cannot be sent: {type(error).__name__}: {error}", "by": "client"})
        try:
            return read_answer(self._http.send(request))
        except Exception as error:  # noqa: BLE001 - no answer, or one that nobody can read: as if the service were away
            return Later(f"{type(error).__name__}: {error}")

    def beat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send a heartbeat; raises ApiError or httpx.HTTPError."""
        response = self._http.post(f"/v1/runs/{self.run_id}/heartbeat", json={"attempt": self.attempt} | body)
        return _json(response)

    def recipe(self) -> dict[str, Any]:
        """The run's resolved recipe; raises ApiError or httpx.HTTPError."""
        recipe = _json(self._http.get(f"/v1/runs/{self.run_id}/recipe"))["recipe"]
        assert isinstance(recipe, dict)
        return recipe

    def close(self) -> None:
        if not self._is_shared:
            self._http.close()


def read_answer(response: httpx.Response) -> Answer:
    """What an HTTP answer means for the entry that was sent."""
    status = response.status_code
    if status < 300:
        taken = _object(response) is not None
        return Taken() if taken else Later(f"{response.request.url} answered something that is no JSON object")
    error = problem(response)
    after_s = None if error.retry_after_s is None else min(error.retry_after_s, _LONGEST_PAUSE_S)
    if status in _ACCESS:
        return Later(error.detail, after_s, denied=True)
    by_the_service = "code" in error.body  # else by what stands before it while it is away
    if status in _LATER or not 400 <= status < 500 or not (by_the_service or status in _IN_PART):
        return Later(error.detail, after_s)
    return Refused(
        {"status": status, **error.body} if error.body else {"status": status, "detail": error.detail},
        over=error.code in _OVER,
        in_part=status in _IN_PART,
    )


def _object(response: httpx.Response) -> dict[str, Any] | None:
    try:
        body = response.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _json(response: httpx.Response) -> dict[str, Any]:
    if response.status_code >= 400:
        raise problem(response)
    body = _object(response)
    if body is None:
        raise ApiError(f"{response.request.url} answered something that is no JSON object", status=response.status_code)
    return body
