"""Wrong secrets are limited by the address that they come from.

An address may send so many different secrets that nobody knows within a minute. Then it is refused what was not let in
before, unread: the database is not asked, and a right guess is not found to be one. What this process has let in before
goes on, so that a neighbour with an old token shuts nobody out who is at work. The same wrong secret again is no
guess: it gets its first answer again, from memory.

All of it is in the memory of the process that serves (decision 0037).
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from server.errors import Unauthenticated

WINDOW = timedelta(minutes=1)
MOST_KNOWN = 10_000
"""Secrets that are remembered as let in; those unused for longest are forgotten first."""

_DOOR = "door"


class Unknown(Unauthenticated):
    """A secret that may have been a guess: of no token, or of a login link that is good no more."""


class TooManyTries(Unauthenticated):
    status, code, title = 429, "too-many-tries", "Too many unknown tokens"

    def __init__(self, address: str, wait_s: int):
        way_out = f"check which program there sends them, and send yours again in {wait_s} s"
        super().__init__(f"Too many unknown tokens or login links came from {address}; {way_out}.")
        self.retry_after_s = wait_s


class Tries:
    """Wrong secrets of the present minute by address, and what was let in; secrets are known by their hash."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._wrong: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by address: why each was refused
        self._began: datetime | None = None

    def check(self, address: str, secret: str, now: datetime) -> None:
        """Raise TooManyTries when the address has used up its tries, Unknown when this very secret was refused."""
        with self._lock:
            left = self._left(now)
            wrong = self._wrong.get(address, {})
            if secret in wrong:
                raise Unknown(wrong[secret])
            if len(wrong) >= self._most and secret not in self._known:
                raise TooManyTries(address, max(1, math.ceil(left.total_seconds())))

    def refuse(self, address: str, secret: str, why: str) -> None:
        with self._lock:
            self._wrong[address][secret] = why

    def let_in(self, secret: str) -> None:
        with self._lock:
            self._known[secret] = None
            self._known.move_to_end(secret)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def _left(self, now: datetime) -> timedelta:
        """What is left of the minute; a new one begins when it is over, or when the clock was set back."""
        if self._began is None or not self._began <= now < self._began + WINDOW:
            self._began = now
            self._wrong.clear()
        return self._began + WINDOW - now


@dataclass(frozen=True)
class _Door:
    tries: Tries
    address: str


def come_from(session: Session, tries: Tries, host: str | None) -> None:
    """Note where the request of this session comes from. Sessions of the service's own come from nowhere."""
    session.info[_DOOR] = _Door(tries, _neighbourhood(host))


@contextmanager
def limited(session: Session, secret: str, now: datetime) -> Iterator[None]:
    """Around the judging of a secret, given as its hash, by what raises Unknown.

    Raises:
        TooManyTries: it is not to be judged now.
    """
    door: _Door | None = session.info.get(_DOOR)
    if door is None:
        yield
        return
    door.tries.check(door.address, secret, now)
    try:
        yield
    except Unknown as refusal:
        door.tries.refuse(door.address, secret, refusal.detail)
        raise
    door.tries.let_in(secret)


def let_in(session: Session, secret: str) -> None:
    """A secret, given as its hash, that was made for whoever asks just now."""
    door: _Door | None = session.info.get(_DOOR)
    if door is not None:
        door.tries.let_in(secret)


def _neighbourhood(host: str | None) -> str:
    """An address as tries are counted: of IPv6 the network of 64 bits, any of which one machine may take."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return host or "nowhere"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False))
