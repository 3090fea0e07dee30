"""The manifests for Kubernetes: they name what the service reads, and run it as docker-compose.yml does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from server.settings import Settings, variable

FOLDER = Path("deploy/kubernetes")
COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())["services"]
SERVICE: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "service.yaml").read_text()))
RAY: list[dict[str, Any]] = list(yaml.safe_load_all((FOLDER / "ray-cluster.yaml").read_text()))
CLUSTER = next(one for one in RAY if one["kind"] == "RayCluster")
DEPLOYMENTS = {one["metadata"]["name"]: one for one in SERVICE if one["kind"] == "Deployment"}
CONFIG = next(one for one in SERVICE if one["kind"] == "ConfigMap")["data"]


def _container(name: str) -> dict[str, Any]:
    (container,) = DEPLOYMENTS[f"forecurve-{name}"]["spec"]["template"]["spec"]["containers"]
    return container


def _pods() -> Iterator[dict[str, Any]]:
    for group in (CLUSTER["spec"]["headGroupSpec"], *CLUSTER["spec"]["workerGroupSpecs"]):
        yield group["template"]["spec"]
    for one in SERVICE:
        if one["kind"] == "Deployment":
            yield one["spec"]["template"]["spec"]


def test_every_setting_is_one_that_the_service_reads() -> None:
    known = {variable(name, info) for name, info in Settings.model_fields.items()}
    own = {each["name"] for name in ("api", "worker", "scheduler") for each in _container(name)["env"]}
    assert set(CONFIG) | own <= known


@pytest.mark.parametrize("name", ["api", "worker", "scheduler"])
def test_each_part_is_begun_as_in_containers(name: str) -> None:
    command = COMPOSE[name]["command"]
    begun = command[: command.index("--forwarded-allow-ips")] if "--forwarded-allow-ips" in command else command
    assert _container(name)["command"] == begun


@pytest.mark.parametrize("name", ["api", "worker", "scheduler"])
def test_the_database_is_migrated_before_each_part_begins(name: str) -> None:
    (first,) = DEPLOYMENTS[f"forecurve-{name}"]["spec"]["template"]["spec"]["initContainers"]
    assert first["command"] == COMPOSE["migrate"]["command"]
    assert first["image"] == _container(name)["image"]
    assert DEPLOYMENTS[f"forecurve-{name}"]["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("name", ["worker", "scheduler"])
def test_probes_look_for_the_same_signs_of_life(name: str) -> None:
    shell, flag, asked = _container(name)["livenessProbe"]["exec"]["command"]
    assert (shell, flag) == ("sh", "-c")
    assert asked == COMPOSE[name]["healthcheck"]["test"][1].replace("$$", "$")
    assert CONFIG["FORECURVE_SIGNS_DIR"] == COMPOSE[name]["environment"]["FORECURVE_SIGNS_DIR"]


def test_ray_is_of_the_version_that_everything_here_installs() -> None:
    locked = re.search(r"^ray==(.*)$", Path("constraints.txt").read_text(), re.MULTILINE)
    assert locked
    assert CLUSTER["spec"]["rayVersion"] == locked[1]


def test_both_sides_know_one_another() -> None:
    assert CONFIG["FORECURVE_RAY_URL"] == f"http://{CLUSTER['metadata']['name']}-head-svc:8265"
    api = next(one for one in SERVICE if one["kind"] == "Service")
    assert CONFIG["FORECURVE_TRAINER_URL"] == f"http://{api['metadata']['name']}:{api['spec']['ports'][0]['port']}"
    secret = CLUSTER["spec"]["authOptions"]["secretName"]
    for name in ("api", "worker", "scheduler"):
        (token,) = _container(name)["env"]
        assert token["valueFrom"]["secretKeyRef"] == {"name": secret, "key": "auth_token"}


def test_runs_keep_their_checkpoints_on_the_heads_volume() -> None:
    (head,) = CLUSTER["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    assert Path(CONFIG["FORECURVE_TRAINER_DIR"]).is_relative_to(head["volumeMounts"][0]["mountPath"])
    claims = {one["metadata"]["name"] for one in RAY if one["kind"] == "PersistentVolumeClaim"}
    for pod in _pods():
        mounted = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
        volumes = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod.get("volumes", [])}
        assert mounted == set(volumes)
        assert set(volumes.values()) <= claims


def test_the_head_ends_its_jobs_before_its_time_is_over() -> None:
    pod = CLUSTER["spec"]["headGroupSpec"]["template"]["spec"]
    (head,) = pod["containers"]
    program = head["lifecycle"]["preStop"]["exec"]["command"][2]
    compile(program, "preStop", "exec")
    (wait,) = head["env"]
    assert wait == {"name": "RAY_JOB_STOP_WAIT_TIME_S", "value": re.findall(r"(\d+)\)$", program)[0]}
    assert pod["terminationGracePeriodSeconds"] >= float(wait["value"]) + 10


def test_no_pod_has_a_key_to_the_cluster_or_variables_that_nobody_set() -> None:
    for pod in _pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False, "of a Service `forecurve-api` comes FORECURVE_API_PORT"
