"""HTTP to the service: one httpx client per process, problems read as RFC 9457."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import httpx

from .errors import ApiError

USER_AGENT = "forecurve-python"


def make_http(url: str, token: str | None, *, timeout_s: float = 10.0, connect_s: float = 5.0) -> httpx.Client:
    """An HTTP client on `url`. A loopback address never goes through a proxy of the environment."""
    headers = {"User-Agent": USER_AGENT} | ({"Authorization": f"Bearer {token}"} if token else {})
    timeout = httpx.Timeout(timeout_s, connect=connect_s)
    return httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=timeout, trust_env=not is_loopback(url))


def is_loopback(url: str) -> bool:
    """True when the URL's host is this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """True when the name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def problem(response: httpx.Response) -> ApiError:
    """The error that an answer of 400 or above stands for."""
    try:
        body = response.json()
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    detail = body.get("detail")
    text = detail if isinstance(detail, str) else f"HTTP {response.status_code} from {response.request.url}"
    return ApiError(
        text,
        status=response.status_code,
        code=str(body.get("code", f"http-{response.status_code}")),
        errors=_faults(body),
        request_id=body.get("request_id"),
        body=body,
    )


def _faults(body: dict[str, Any]) -> list[dict[str, Any]]:
    errors = body.get("errors")
    return [fault for fault in errors if isinstance(fault, dict)] if isinstance(errors, list) else []
