"""docker-compose.yml says what the service can read, and binds nothing to the world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import Settings

COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]


def _known_variables() -> set[str]:
    prefix = str(Settings.model_config["env_prefix"])
    fields = Settings.model_fields.items()
    return {str(info.validation_alias or f"{prefix}{name.upper()}") for name, info in fields}


@pytest.mark.parametrize("name", ["migrate", "api", "worker", "scheduler"])
def test_every_variable_of_a_service_is_one_that_the_settings_read(name: str) -> None:
    given = set(SERVICES[name]["environment"])
    assert given <= _known_variables()
    assert {"DATABASE_URL", "REDIS_URL", "FORECURVE_RAY_TOKEN"} <= given


def test_the_broker_never_evicts() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"


def test_ray_asks_for_a_token() -> None:
    assert SERVICES["ray-head"]["environment"]["RAY_AUTH_MODE"] == "token"


def test_published_ports_are_on_loopback() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_every_secret_comes_from_the_environment() -> None:
    example = Path("deploy/example.env").read_text()
    for secret in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "RAY_AUTH_TOKEN"):
        assert f"${{{secret}:?" in Path("docker-compose.yml").read_text()
        assert f"{secret}=\n" in example, "the example must leave secrets empty"


@pytest.mark.parametrize("name", [".dockerignore", ".gitignore"])
def test_the_secrets_get_neither_into_an_image_nor_into_the_history(name: str) -> None:
    """Also those of the data directories that the commands and the pages name: their database and admin token."""
    left_out = {line.rstrip("/") for line in Path(name).read_text().splitlines()}
    assert {".env", ".data", ".demo"} <= left_out


def test_no_log_of_a_container_holds_a_token_or_a_login_link() -> None:
    commands = [" ".join(service.get("command", [])) for service in SERVICES.values()]
    assert not [command for command in commands if "bootstrap" in command]
    assert "--no-access-log" in SERVICES["api"]["command"], "the path of a login link holds its code"


def test_the_services_wait_for_the_migration() -> None:
    for name in ("api", "worker", "scheduler"):
        assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_no_log_fills_the_disk() -> None:
    for name, service in SERVICES.items():
        assert {"max-size", "max-file"} <= set(service["logging"]["options"]), name
