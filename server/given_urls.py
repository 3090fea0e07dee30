"""The URLs of the settings, looked at when a process starts: one that cannot be meant would fail much later, and as
something else. What is refused is not shown where a password may stand in it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from forecurve.client.http import url_fault
from server.database import psycopg_url

_BROKERS = ("redis", "rediss", "redis+socket")


def _database(url: str) -> str:
    psycopg_url(url)
    return url


def _broker(url: str) -> str:
    wanted = "it must be redis://:PASSWORD@HOST:6379/0, or rediss:// with TLS"
    try:
        parts = urlsplit(url)
        _ = parts.port  # is read only when asked for
    except ValueError:
        raise ValueError(f"cannot be read; {wanted}, with / # ? @ in its password as %2F %23 %3F %40") from None
    if parts.scheme not in _BROKERS or not (parts.hostname or parts.path.strip("/")):
        raise ValueError(f"is no address of a Redis; {wanted}")
    return url


def _http(url: str) -> str:
    found = url.strip().rstrip("/")
    if fault := url_fault(found):
        raise ValueError(f"{fault}; it must be http:// or https:// and a host")
    scheme, _, rest = found.partition("://")
    return f"{scheme.lower()}://{rest}"


DatabaseUrl = Annotated[str, AfterValidator(_database)]
BrokerUrl = Annotated[str, AfterValidator(_broker)]
HttpUrl = Annotated[str, AfterValidator(_http)]
HttpUrlOrNone = Annotated[str, AfterValidator(lambda url: _http(url) if url else url)]
