"""Where the service can be reached: the broker and its password, ports that stay, addresses that are refused."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from forecurve.cli.supervisor import redis
from forecurve.cli.supervisor.files import kept_ports, kept_secret
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.listener import listen
from forecurve.cli.supervisor.options import CannotStart, UpOptions

from .conftest import spawn
from .services import clean_environment, wait_until

pytestmark = pytest.mark.usefixtures("own_short_paths")


def test_the_broker_without_a_binary_answers_and_runs_lua(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from redis import Redis

    monkeypatch.setattr(redis, "find_binary", lambda: None)
    layout = Layout.of(tmp_path)
    layout.make()
    port = kept_ports(layout.ports, ["redis"])["redis"]
    part, url = redis.redis_part(layout, port, dict(os.environ))
    part.start()
    try:
        wait_until(part.is_ready, 30)
        client = Redis.from_url(url)
        assert client.eval("return redis.call('incr', KEYS[1])", 1, "counter") == 1
        client.close()
    finally:
        part.stop(2.0)
    assert not part.is_alive()


def test_the_broker_needs_its_password_and_never_evicts(tmp_path: Path) -> None:
    from redis import AuthenticationError, Redis

    layout = Layout.of(tmp_path)
    layout.make()
    port = kept_ports(layout.ports, ["redis"])["redis"]
    part, url = redis.redis_part(layout, port, dict(os.environ))
    part.start()
    try:
        wait_until(part.is_ready, 30)
        with pytest.raises(AuthenticationError):
            Redis(port=port, retry=None).ping()  # a refusal stays one
        client = Redis.from_url(url)
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        client.close()
    finally:
        part.stop(2.0)
    assert (layout.redis / "redis.conf").stat().st_mode & 0o077 == 0


def test_ports_and_secrets_stay_the_same_from_start_to_start(tmp_path: Path) -> None:
    names = ["redis", "ray_gcs"]
    first = kept_ports(tmp_path / "ports.json", names)
    assert kept_ports(tmp_path / "ports.json", names) == first
    assert len(set(first.values())) == 2
    assert kept_ports(tmp_path / "ports.json", ["redis"]) == {"redis": first["redis"]}
    assert kept_secret(tmp_path / "secrets.json", "a") == kept_secret(tmp_path / "secrets.json", "a")

    with socket.socket() as other:
        other.bind(("127.0.0.1", first["redis"]))
        other.listen()
        assert kept_ports(tmp_path / "ports.json", names)["redis"] != first["redis"]


def test_a_bind_that_others_can_reach_is_refused_without_consent_and_without_a_token(tmp_path: Path) -> None:
    asked = ("up", "--data-dir", tmp_path / "d", "--host", "0.0.0.0", "--port", "0")
    without_consent = spawn(*asked, env=clean_environment())
    without_token = spawn(*asked, "--allow-remote", env=clean_environment())

    assert without_consent.returncode == without_token.returncode == 2
    assert "--allow-remote" in without_consent.stderr
    assert "no token exists yet" in without_token.stderr


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = spawn("up", "--data-dir", tmp_path / "d", "--port", str(port), env=clean_environment())

    assert ended.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use" in ended.stderr
    assert not (tmp_path / "d" / "postgres").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_port_is_held_from_the_moment_it_is_chosen(host: str) -> None:
    with listen(UpOptions(host=host, port=0)) as held:
        port = held.getsockname()[1]
        with pytest.raises(CannotStart, match=f"port {port} on {host} is in use"):
            listen(UpOptions(host=host, port=port))


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "a..b"])
def test_a_host_that_is_none_of_this_machine_is_refused_by_name(host: str) -> None:
    with pytest.raises(CannotStart, match=f"--host {host} is no address of this machine"):
        listen(UpOptions(host=host, port=0))
