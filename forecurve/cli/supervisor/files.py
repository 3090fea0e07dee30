"""Small JSON files of the data directory: written whole or not at all, secrets for their owner only."""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO

HELD_BACK = range(20_000, 32_768)
"""Ports that no system hands out by itself (Linux does from 32,768 on, macOS from 49,152) nor Ray to its workers (up to
19,999): a port from the system's own may be given away again before its server listens."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in the file; {} when there is none."""
    try:
        body = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


def write_json(path: Path, body: dict[str, Any]) -> None:
    """Replace the file in one step; it is for its owner only."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(body, file, indent=2)
            file.write("\n")
        temporary.replace(path)
    except OSError:
        temporary.unlink()
        raise


def kept_secret(path: Path, name: str) -> str:
    """The secret of that name in the secrets file, minted on first use."""
    body = read_json(path)
    if name not in body:
        body[name] = secrets.token_urlsafe(32)
        write_json(path, body)
    return str(body[name])


def kept_ports(path: Path, names: list[str]) -> dict[str, int]:
    """A free loopback port for every name: the same as last time where it is still free.

    Asked for right before its servers start: until they listen, a port is anybody's. None is another name's, whose
    server may not listen yet.
    """
    before = read_json(path)
    ports: dict[str, int] = {}
    for name in names:
        port = before.get(name)
        taken = {other for its, other in (before | ports).items() if its != name}
        usable = isinstance(port, int) and port not in taken and is_free(port)
        ports[name] = port if usable and isinstance(port, int) else free_port(taken)
    write_json(path, before | ports)
    return ports


def is_free(port: int) -> bool:
    """True when a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port(taken: Collection[int] = ()) -> int:
    """A loopback port nobody listens on; not one of `taken`. Drawn from HELD_BACK, so that it most likely stays free
    until its server starts."""
    drawn = (HELD_BACK[secrets.randbelow(len(HELD_BACK))] for _ in range(10_000))
    try:
        return next(port for port in drawn if port not in taken and is_free(port))
    except StopIteration:
        raise OSError(f"no port from {HELD_BACK[0]} to {HELD_BACK[-1]} is free on 127.0.0.1") from None


def open_log(path: Path) -> BinaryIO:
    """A log to append to at once, for its owner only, also where it was there before. What is no file keeps its mode:
    /dev/null is everybody's."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab", buffering=0)


def tail(path: Path, lines: int = 12) -> str:
    """The last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
