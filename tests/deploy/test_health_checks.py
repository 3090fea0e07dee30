"""The health checks of containers: each is run as it stands in docker-compose.yml, well and ill."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from worker.signs import EVERY_S, sign_of

SERVICES: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())["services"]


def test_every_part_of_the_service_has_one_with_a_limit() -> None:
    for name in ("postgres", "redis", "api", "worker", "scheduler", "ray-head"):
        assert {"test", "interval", "timeout"} <= set(SERVICES[name]["healthcheck"]), name


@pytest.mark.parametrize("who", ["worker", "scheduler"])
def test_a_sign_of_life_is_looked_for_where_it_is_left(
    who: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SERVICES[who]["environment"]["FORECURVE_SIGNS_DIR"]
    monkeypatch.setattr("worker.signs.get_settings", lambda: type("Given", (), {"signs_dir": folder}))
    sign, stand_in = sign_of(who), tmp_path / "sign"
    how, command = SERVICES[who]["healthcheck"]["test"]
    assert how == "CMD-SHELL"
    assert str(sign) in command

    def is_well() -> bool:
        asked = command.replace("$$", "$").replace(str(sign), str(stand_in))
        return subprocess.run(["sh", "-c", asked], stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert not is_well()
    stand_in.touch()
    assert is_well()
    late = time.time() - 6 * EVERY_S  # of a loop that was held up a few times
    os.utime(stand_in, (late, late))
    assert is_well()
    os.utime(stand_in, (late - 60, late - 60))
    assert not is_well()


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path in self.server.ill else 200)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ray() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.ill = set()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_ray_head_is_well_where_both_its_parts_say_so(ray: ThreadingHTTPServer) -> None:
    how, python, flag, program = SERVICES["ray-head"]["healthcheck"]["test"]
    assert (how, python, flag) == ("CMD", "python", "-c")
    for port in ("8265", "52365"):
        assert port in program
        program = program.replace(port, str(ray.server_port))

    def is_well(*ill: str) -> bool:
        ray.ill = set(ill)  # type: ignore[attr-defined]
        return subprocess.run([sys.executable, flag, program], stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert is_well()
    assert not is_well("/api/gcs_healthz")
    assert not is_well("/api/local_raylet_healthz")
