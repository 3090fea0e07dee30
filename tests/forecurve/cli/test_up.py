"""`forecurve up`, `status`, `down` on real processes, all but Ray (tests/end_to_end has Ray too)."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from forecurve.cli.supervisor.files import read_json
from forecurve.cli.supervisor.layout import Layout
from forecurve.client import Api

from .conftest import spawn
from .services import UpProcess, clean_environment, processes_of, wait_until

pytestmark = pytest.mark.timeout(400)  # one service for the module, tests in order


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("data") / "service"
    yield directory
    spawn("down", "--data-dir", directory, env=clean_environment())


@pytest.fixture(scope="module")
def up(data_dir: Path) -> Iterator[UpProcess]:
    """A service without Ray, started once for this module."""
    service = UpProcess(data_dir, "--without-ray", "--workers", "1")
    try:
        for name in ("api", "worker", "scheduler"):
            service.wait_for("ready", part=name)
        yield service
    finally:
        service.process.kill()
        service.process.wait()


def status(data_dir: Path) -> dict:  # type: ignore[type-arg]
    import json

    ended = spawn("status", "--data-dir", data_dir, "--json", env=clean_environment())
    return json.loads(ended.stdout)


def parts(data_dir: Path) -> dict:  # type: ignore[type-arg]
    return read_json(Layout.of(data_dir).state)["parts"]


def test_the_first_start_mints_an_admin_token_and_a_login_link_that_opens_the_pages(
    up: UpProcess, data_dir: Path
) -> None:
    where = up.wait_for("where")
    with Api(where["url"], where["admin_token"]) as api:
        assert "admin" in api.get("/v1/me")["scopes"]

    with httpx.Client(follow_redirects=True, timeout=30) as browser:
        anonymous = browser.get(where["url"])
        page = browser.get(where["login_url"])

    assert "session" not in anonymous.cookies
    assert page.status_code == 200
    assert page.url.path == "/"
    assert (data_dir / "secrets.json").stat().st_mode & 0o077 == 0


def test_everything_listens_on_loopback_only(up: UpProcess) -> None:
    family = [psutil.Process(up.process.pid), *psutil.Process(up.process.pid).children(recursive=True)]
    listening = [
        connection.laddr.ip
        for process in family
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]

    assert listening
    assert set(listening) <= {"127.0.0.1", "::1"}


def test_status_shows_the_parts_the_runs_and_a_fresh_link(up: UpProcess, data_dir: Path) -> None:
    report = status(data_dir)
    shown = spawn("status", "--data-dir", data_dir, env=clean_environment())

    assert report["running"]
    assert {part["name"]: part["state"] for part in report["parts"]} == dict.fromkeys(
        ("postgres", "redis", "api", "worker", "scheduler"), "running"
    )
    assert report["runs"] == {}
    assert report["login_url"] != up.wait_for("where")["login_url"]
    assert httpx.get(report["login_url"], timeout=30).status_code in (200, 302, 303)
    assert "Log in" in shown.stdout
    assert shown.returncode == 0


def test_commands_find_the_running_service_by_its_data_directory(up: UpProcess, data_dir: Path) -> None:
    ended = spawn("run", "list", "--data-dir", data_dir, env=clean_environment())

    assert ended.returncode == 0, ended.stderr
    assert "No runs" in ended.stdout


def test_a_second_up_on_the_same_directory_says_who_is_there_and_ends(up: UpProcess, data_dir: Path) -> None:
    ended = spawn("up", "--data-dir", data_dir, env=clean_environment())

    assert ended.returncode == 2
    assert f"pid {up.process.pid}" in ended.stderr
    assert up.wait_for("where")["url"] in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert up.process.poll() is None


def test_a_part_that_is_killed_is_started_again(up: UpProcess, data_dir: Path) -> None:
    before = parts(data_dir)["scheduler"]
    os.kill(before["pid"], signal.SIGKILL)
    up.wait_for("crashed", part="scheduler")

    def restarted() -> bool:
        now = parts(data_dir)["scheduler"]
        return now["pid"] not in (None, before["pid"]) and now["state"] == "running" and now["restarts"] == 1

    wait_until(restarted)


def test_who_asks_while_the_api_is_started_again_is_answered_and_its_port_stays_its_own(
    up: UpProcess, data_dir: Path
) -> None:
    where = up.wait_for("where")
    api_process = psutil.Process(parts(data_dir)["api"]["pid"])
    api_process.kill()
    api_process.wait(10)
    with Api(where["url"], where["admin_token"]) as api:
        assert "admin" in api.get("/v1/me")["scopes"]

    up.wait_for("crashed", part="api")
    address = httpx.URL(where["url"])
    with pytest.raises(OSError, match="in use"):
        socket.create_server((address.host, address.port))


def test_a_killed_supervisor_leaves_a_mess_that_the_next_up_cleans_and_its_data_stay_and_down_leaves_nothing(
    up: UpProcess, data_dir: Path
) -> None:
    pids = {name: part["pid"] for name, part in parts(data_dir).items()}
    token = up.wait_for("where")["admin_token"]
    up.stop(signal.SIGKILL)
    dead = status(data_dir)

    again = UpProcess(data_dir, "--without-ray", "--workers", "1")
    try:
        where = again.wait_for("where")
        assert not dead["running"]
        assert dead["phase"] == "dead"
        assert [name for name, pid in pids.items() if psutil.pid_exists(pid) and _is_alive(pid)] == ["postgres"]
        assert where["admin_token"] is None  # minted once
        with Api(where["url"], token) as api:
            assert "admin" in api.get("/v1/me")["scopes"]
        again.wait_for("ready", part="worker")
        ended = spawn("down", "--data-dir", data_dir, env=clean_environment())
        code = again.process.wait(10)
    finally:
        again.process.kill()

    assert ended.returncode == 0, ended.stderr
    assert code == 0
    assert processes_of(data_dir) == []
    assert not _is_alive(pids["postgres"])
    assert "Nothing is running" in spawn("down", "--data-dir", data_dir, env=clean_environment()).stdout
    assert spawn("status", "--data-dir", data_dir, env=clean_environment()).returncode == 1


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
