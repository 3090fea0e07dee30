"""POST to a URL that a user chose, without being led into our own network.

The host is resolved once, every address is judged, and the connection goes to the judged address: a name that answers
differently the second time (DNS rebinding) gains nothing. Redirects are not followed, proxies from the environment
are not used, and no more of the answer is read than is kept.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import httpx

from forecurve.client.http import retry_after
from server.alerts.addresses import Address, is_private, parse_address, refusal

KEPT_BYTES = 2048
"""How much of an answer is read."""

Resolve = Callable[[str, int], list[str]]


class Refused(Exception):
    """The URL leads where nothing is sent to."""


@dataclass(frozen=True)
class Answer:
    """What the receiver said: HTTP status, the first KEPT_BYTES of the body, seconds to wait if it asked for that."""

    status: int
    text: str
    retry_after_s: float | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def resolve_host(host: str, port: int) -> list[str]:
    """Every address of `host`, in the system's order, without repetition."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allow_private: bool,
    timeout_s: float = 10.0,
    resolve: Resolve = resolve_host,
    verify: ssl.SSLContext | bool = True,
) -> Answer:
    """Send `body` and return the receiver's answer, whatever its status.

    Raises:
        Refused: the URL or one of the host's addresses is not allowed.
        httpx.HTTPError, OSError: there was no answer, or not its head within `timeout_s` of an address that answers.
    """
    target = httpx.URL(url)
    addresses = _allowed_addresses(target, allow_private=allow_private, resolve=resolve)
    timeout = httpx.Timeout(timeout_s, connect=min(5.0, timeout_s))
    with httpx.Client(timeout=timeout, verify=verify, trust_env=False, follow_redirects=False) as client:
        for last, address in _mark_last(addresses):
            try:
                with _Cut(timeout_s) as cut:
                    return _post_pinned(client, target, address, body, headers, cut)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if last:
                    raise
    raise AssertionError("there is always a last address")


def _allowed_addresses(target: httpx.URL, *, allow_private: bool, resolve: Resolve) -> list[Address]:
    if target.scheme not in ("https", "http") or not target.host:
        raise Refused(f"{target.scheme or 'no scheme'}:// is not delivered to; use https://")
    literal = parse_address(target.host)
    texts = [target.host] if literal is not None else resolve(target.host, _port(target))
    addresses = [address for text in texts if (address := parse_address(text)) is not None]
    if not addresses:
        raise Refused(f"{target.host} has no address")
    for address in addresses:
        reason = refusal(address, allow_private=allow_private)
        if reason is None and target.scheme == "http" and not (allow_private and is_private(address)):
            reason = f"http:// goes only to private addresses, {address} is public"
        if reason is not None:
            raise Refused(f"{target.host}: {reason}")
    return addresses[:3]


def _post_pinned(
    client: httpx.Client,
    target: httpx.URL,
    address: Address,
    body: bytes,
    headers: Mapping[str, str],
    cut: _Cut,
) -> Answer:
    request = client.build_request(
        "POST",
        target.copy_with(host=str(address)),
        content=body,
        headers={**headers, "host": target.netloc.decode(), "accept-encoding": "identity"},
        # The certificate must be the name's, though we connect to the address.
        extensions={"sni_hostname": target.host, "trace": cut.trace},
    )
    response = client.send(request, stream=True)
    kept = b""
    try:
        for chunk in response.iter_raw():
            kept += chunk
            if len(kept) >= KEPT_BYTES:
                break
    except httpx.TransportError:
        if not cut.is_over:  # the head has been read, and tells enough
            raise
    finally:
        response.close()
    return Answer(response.status_code, _readable(kept[:KEPT_BYTES]), retry_after(response))


class _Cut:
    """Ends the connection of a request after so many seconds. The limits of httpx are those of each read: whoever
    answers a byte at a time could hold a worker for as long as its task may take."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True
        self._socket: socket.socket | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """What httpx tells of a request: here, its connection."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")

    def _end(self) -> None:
        self.is_over = True
        if self._socket is not None:
            with suppress(OSError):  # it has ended by itself
                self._socket.shutdown(socket.SHUT_RDWR)


def _mark_last(addresses: list[Address]) -> list[tuple[bool, Address]]:
    return [(position == len(addresses) - 1, address) for position, address in enumerate(addresses)]


def _port(target: httpx.URL) -> int:
    return target.port or (443 if target.scheme == "https" else 80)


def _readable(raw: bytes) -> str:
    return raw.decode(errors="replace").replace("\x00", "")  # Postgres keeps no NUL in text
