"""`forecurve up` on a Ray cluster that somebody else runs: what it must be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecurve.cli.supervisor.cluster import given_cluster
from forecurve.cli.supervisor.layout import Layout
from forecurve.cli.supervisor.options import CannotStart, UpOptions
from forecurve.cli.supervisor.services import service_environment

HEAD = "http://ray-head:8265"
NAMES = ("RAY_ADDRESS", "RAY_AUTH_TOKEN", "FORECURVE_RAY_TOKEN", "FORECURVE_TRAINER_URL", "FORECURVE_PUBLIC_URL")


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*NAMES, "FORECURVE_TRAINER_COMMAND", "FORECURVE_TRAINER_PATH", "FORECURVE_TRAINER_DIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def tell(told: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        told.setenv(name, value)


def test_without_an_address_there_is_nothing_to_know() -> None:
    assert given_cluster(UpOptions()) == {}


def test_a_cluster_on_this_machine_reaches_the_api_where_it_listens(told: pytest.MonkeyPatch) -> None:
    tell(told, RAY_ADDRESS="http://127.0.0.1:8265", FORECURVE_PUBLIC_URL="https://forecurve.example.org")
    found = given_cluster(UpOptions(port=8500))
    assert found == {"FORECURVE_RAY_URL": "http://127.0.0.1:8265", "FORECURVE_TRAINER_URL": "http://127.0.0.1:8500"}


@pytest.mark.parametrize(
    ("more", "options", "url"),
    [
        ({"FORECURVE_TRAINER_URL": "http://10.0.0.5:8400"}, UpOptions(), "http://10.0.0.5:8400"),
        ({"FORECURVE_PUBLIC_URL": "https://forecurve.example.org/"}, UpOptions(), "https://forecurve.example.org"),
        ({}, UpOptions(host="10.0.0.5", port=8400), "http://10.0.0.5:8400"),
    ],
)
def test_a_cluster_elsewhere_reports_to_where_it_is_told(
    told: pytest.MonkeyPatch, more: dict[str, str], options: UpOptions, url: str
) -> None:
    tell(told, RAY_ADDRESS=HEAD, RAY_AUTH_TOKEN="secret", **more)
    assert given_cluster(options) == {
        "FORECURVE_RAY_URL": HEAD,
        "FORECURVE_TRAINER_URL": url,
        "FORECURVE_RAY_TOKEN": "secret",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"RAY_ADDRESS": "auto"}, "RAY_ADDRESS is auto; it must be the URL of a Jobs API"),
        ({"RAY_ADDRESS": HEAD}, "another machine, and there is no token for it; set RAY_AUTH_TOKEN"),
        (
            {"RAY_ADDRESS": HEAD, "RAY_AUTH_TOKEN": "secret"},
            "trainers on http://ray-head:8265 cannot report to http://127.0.0.1:8400.* set FORECURVE_TRAINER_URL",
        ),
    ],
)
def test_what_could_not_work_is_refused_with_the_way_out(
    told: pytest.MonkeyPatch, values: dict[str, str], message: str
) -> None:
    tell(told, **values)
    with pytest.raises(CannotStart, match=message):
        given_cluster(UpOptions())


def test_the_trainer_of_another_machine_is_named_by_the_environment(told: pytest.MonkeyPatch, tmp_path: Path) -> None:
    layout = Layout.of(tmp_path)
    ours = service_environment(layout, UpOptions(), tmp_path, {})
    assert (ours["FORECURVE_TRAINER_PATH"], ours["FORECURVE_TRAINER_URL"]) == (str(tmp_path), "http://127.0.0.1:8400")
    elsewhere = {"FORECURVE_TRAINER_COMMAND": "python3 -m trainer", "FORECURVE_TRAINER_PATH": ""}
    tell(told, **elsewhere, FORECURVE_TRAINER_DIR="/scratch/runs")
    env = service_environment(layout, UpOptions(), tmp_path, {"FORECURVE_TRAINER_URL": "http://10.0.0.5:8400"})
    assert env.items() >= (elsewhere | {"FORECURVE_TRAINER_DIR": "/scratch/runs"}).items()
    assert env["FORECURVE_TRAINER_URL"] == "http://10.0.0.5:8400"
