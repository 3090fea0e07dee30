"""docker-compose.yml says what the service can read, and binds nothing to the world; its images hold what is needed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import Settings

COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
PYPROJECT: dict[str, Any] = tomllib.loads(Path("pyproject.toml").read_text())


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


def test_the_secrets_do_not_get_into_the_history() -> None:
    """Also those of the data directories that the commands and the pages name: their database and admin token."""
    left_out = {line.rstrip("/") for line in Path(".gitignore").read_text().splitlines()}
    assert {".env", ".data", ".demo"} <= left_out


def test_only_sources_get_into_an_image() -> None:
    """No secret, no data directory and no dump that lies beside them, and none of the packages is forgotten."""
    rules = [rule for rule in Path(".dockerignore").read_text().splitlines() if not rule.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    wheel = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    packages = {*wheel["packages"], *wheel["force-include"]}
    run = {word for service in SERVICES.values() for word in service.get("command", []) if word.startswith("deploy/")}
    assert let_in == packages | run | {"pyproject.toml", "constraints.txt", "README.md", "LICENSE"}


def test_images_carry_what_makes_fits_and_training_fast() -> None:
    extras = re.findall(r"pip install .*'\.\[(.*)\]'", Path("deploy/Dockerfile").read_text())
    assert len(extras) == 2
    assert all({"fast"} < set(each.split(",")) <= set(PYPROJECT["project"]["optional-dependencies"]) for each in extras)


def test_the_image_of_the_service_is_built_once_and_never_pulled() -> None:
    of_service = {name: service for name, service in SERVICES.items() if service.get("image") == "forecurve-service"}
    assert set(of_service) == {"migrate", "api", "worker", "scheduler"}
    assert [name for name, service in of_service.items() if "build" in service] == ["migrate"]
    assert all(service["pull_policy"] == "never" for service in of_service.values())


def test_the_cluster_ends_before_the_api_and_after_its_jobs() -> None:
    head = SERVICES["ray-head"]
    assert "api" in head["depends_on"], "what depends on it is stopped before it"
    jobs_have = float(head["environment"]["RAY_JOB_STOP_WAIT_TIME_S"])
    assert float(head["stop_grace_period"].removesuffix("s")) >= jobs_have + 10


def test_ended_jobs_leave_no_zombies() -> None:
    """Each run left two behind that nobody waited for, under a head that was the container's first process."""
    assert SERVICES["ray-head"]["init"] is True


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
