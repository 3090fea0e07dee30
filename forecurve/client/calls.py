"""Calls of the service over HTTP: asked again where it says so, answers that are objects, lists page after page."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from .errors import ApiError, ClientError
from .http import checked_url, make_http, no_answer, problem
from .patience import Patience

Json = dict[str, Any]
_TOO_MANY = 429
_ID = re.compile(r"[\w-]+", re.ASCII)


class Calls:
    """Calls of the service at `url` with a bearer token; `with` closes it. Its arguments are those of `Api`."""

    def __init__(self, url: str, token: str | None, *, timeout_s: float = 30.0, patience_s: float = 0.0):
        self.url = checked_url(url)
        self._patience_s = patience_s
        self._http = make_http(self.url, token, timeout_s=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Give the connection up."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Json:
        """Any `GET` of the API, such as `/v1/runs:compare`."""
        return _object(self._send("GET", path, params=_asked(path, query)))

    def post(self, path: str, body: Json, *, idempotency_key: str | None = None) -> Json:
        """Any `POST` of the API."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return _object(self._send("POST", path, json=_present(body), headers=headers))

    def patch(self, path: str, **changed: Any) -> Json:
        """Any `PATCH` of the API. What is None is sent: it takes something away."""
        return _object(self._send("PATCH", path, json=changed))

    def delete(self, path: str) -> Json | None:
        """Any `DELETE` of the API; None where it answers nothing."""
        response = self._send("DELETE", path)
        return _object(response) if response.content else None

    def items(self, path: str, *, limit: int | None = None, **query: Any) -> Iterator[Json]:
        """The things of a list, newest first, page after page; at most `limit`."""
        cursor, left = None, limit
        while left is None or left > 0:
            page = self.get(path, cursor=cursor, limit=min(left or 200, 200), **query)
            found = page.get("items")
            if not isinstance(found, list):
                raise _not_ours(f"{self.url}{path}", "no list")
            yield from found
            cursor = page.get("next_cursor")
            left = None if left is None else left - len(found)
            if not cursor:
                return

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The answer, asked for again after a 429 as long as patience lasts and the request may be sent twice."""
        patience = Patience(self._patience_s if _may_be_repeated(method, path, options) else 0.0)
        while True:
            try:
                return self._send_once(method, path, **options)
            except ApiError as error:
                if error.status != _TOO_MANY or not patience.waits(error.retry_after_s, error.detail):
                    raise

    def _send_once(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **options)
        except UnicodeEncodeError as error:
            raise ClientError(f"{_around(error)!r} is no text: what is sent must be UTF-8") from None
        except ValueError as error:
            raise _no_json(options.get("json"), error) from None
        except httpx.HTTPError as error:
            raise no_answer(self.url, error) from error
        if response.status_code >= 400:
            raise problem(response)
        return response


def _may_be_repeated(method: str, path: str, options: Json) -> bool:
    """Whether the same sent twice does no more than once; each call of `Api` that is no POST is so."""
    return method != "POST" or path.endswith(":plan") or "Idempotency-Key" in options.get("headers", {})


def _no_json(body: Any, error: ValueError) -> ClientError:
    """By field and value where a number in it is not finite, as YAML has `.inf`."""
    told = "is no finite number and cannot stand in JSON; give another"
    faults = [{"field": name, "value": str(value), "message": told} for name, value in _not_finite(body)]
    lines = [f"{fault['field']}: {fault['value']} {told}" for fault in faults]
    return ClientError("; ".join(lines) or f"what is sent cannot stand in JSON: {error}", faults)


def _not_finite(body: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Where such numbers are, in dots."""
    if isinstance(body, float) and not math.isfinite(body):
        yield name or "body", body
    inside = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list | tuple) else ()
    for key, value in inside:
        yield from _not_finite(value, f"{name}.{key}" if name else str(key))


def part(given: str) -> str:
    """A part of a path. Servers read `%2F` as a slash: quoting would not keep `../me` from leading elsewhere."""
    if not isinstance(given, str) or not _ID.fullmatch(given):
        raise ClientError(f"id: letters, digits, - and _ are expected, got {given!a}; copy it from a list")
    return given


def _asked(path: str, query: Json) -> httpx.QueryParams:
    """What a path asks for behind its `?`, and what is asked for beside it; httpx alone would drop the first."""
    return httpx.QueryParams(urlsplit(path).query).merge(_present(query))


def _around(error: UnicodeEncodeError) -> str:
    return str(error.object)[max(0, error.start - 20) : error.end + 20]


def _present(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _object(response: httpx.Response) -> Json:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise _not_ours(str(response.request.url), "no JSON object")
    return body


def _not_ours(url: str, answer: str) -> ApiError:
    return ApiError(f"{url} is no Forecurve API: it answered {answer}", code="not-forecurve")
