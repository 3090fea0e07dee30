"""The files for Prometheus and Grafana: they ask for what `/metrics` gives, and show all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

DEPLOY = Path("deploy")
COMPOSE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SCRAPES: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"][0]["rules"]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/forecurve.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
PROMETHEUS_OWN = {"up", "ALERTS"}
_JOB = 'job="forecurve"'

Series = dict[str, list[dict[str, str]]]


def _queries() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


QUERIES = list(_queries())


def selectors(query: str) -> list[tuple[str, str]]:
    """Each series that a PromQL query asks for: its name, and what stands in its braces."""
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", query)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    found = re.findall(r'([A-Za-z_:][\w:]*)\s*(?:\{((?:[^}"]|"[^"]*")*)\}|(?![\w:(]|\s*\())', bare)
    words = {"and", "or", "unless", "bool", "offset"}
    return [(name, within) for name, within in found if name not in words]


@pytest.fixture
def given(api: TestClient, headers: dict[str, dict[str, str]]) -> Series:
    """The labels of every series of a scrape, by its name. The scrape before it was a request like others."""
    for _ in range(2):
        answer = api.get("/metrics", headers=headers["read"])
    series: Series = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            series.setdefault(sample.name, []).append(sample.labels)
    return series


def test_selectors_are_found() -> None:
    query = 'sum by (a) (rate(x_count{j="}",s=~"5.."}[$__rate_interval])) / (y > 0) and max by (job) (up) or vector(0)'
    assert selectors(query) == [("x_count", 'j="}",s=~"5.."'), ("y", ""), ("up", "")]


def test_rules_and_dashboard_ask_for_what_a_scrape_gives(given: Series) -> None:
    assert len(QUERIES) > 30
    for title, query in QUERIES:
        asked = selectors(query)
        assert asked, title
        for name, within in asked:
            if name in PROMETHEUS_OWN:
                continue
            assert name in given, f"{title} asks for {name}"
            labels = set(re.findall(r"(\w+)\s*[=!]~?\s*\"", within)) - {"job"}
            assert labels <= set().union(*given[name]), f"{title}: {within}"
            assert _JOB in within, f"{title} takes {name} of other jobs too"


def test_statuses_of_runs_are_spelt_as_they_are(given: Series) -> None:
    statuses = {labels["status"] for labels in given["forecurve_runs"]}
    asked = [within for _, query in QUERIES for name, within in selectors(query) if name == "forecurve_runs"]
    said = [each for within in asked for each in re.findall(r'status[=!~]+"([^"]*)"', within)]
    named = {status for each in said for status in each.split("|")}
    assert "queued" in named
    assert named <= statuses


def test_all_that_a_scrape_gives_is_shown(given: Series) -> None:
    shown = {name for panel in PANELS for target in panel["targets"] for name, _ in selectors(target["expr"])}
    left_out = {"forecurve_http_request_seconds_created"}  # when counting began
    assert set(given) - left_out <= shown


def test_each_panel_says_what_it_shows() -> None:
    for panel in PANELS:
        assert panel["title"], panel["id"]
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_no_panel_lies_over_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_each_rule_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in RULES:
        assert re.fullmatch(r"\d+m", rule["for"]), rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning"}, rule["alert"]
        assert {"summary", "description"} <= set(rule["annotations"]), rule["alert"]
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)


def test_each_rule_is_tried_silent_and_firing() -> None:
    """By `promtool test rules`, which is not needed here: that no rule is left out is."""
    silent, nothing, firing = yaml.safe_load((DEPLOY / "prometheus/rules_test.yml").read_text())["tests"]
    names = {rule["alert"] for rule in RULES}
    assert {each["alertname"] for each in silent["alert_rule_test"]} == names
    assert {each["alertname"] for each in nothing["alert_rule_test"]} == names
    fired = firing["promql_expr_test"][0]["exp_samples"]
    assert {re.search(r'alertname="(\w+)"', each["labels"])[1] for each in fired} == names  # type: ignore[index]


def test_prometheus_scrapes_the_api_with_its_token() -> None:
    (job,) = SCRAPES["scrape_configs"]
    assert f'job="{job["job_name"]}"' == _JOB
    (target,) = [target for group in job["static_configs"] for target in group["targets"]]
    service, port = target.split(":")
    assert f'"--port", "{port}"'.replace('"', "'") in str(COMPOSE["services"][service]["command"])
    (secret,) = COMPOSE["services"]["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert "environment" in COMPOSE["secrets"][secret]
    assert SCRAPES["rule_files"] == ["rules.yml"]


def test_what_is_mounted_is_there_and_is_where_it_is_looked_for() -> None:
    mounted: dict[str, str] = {}
    for name in ("prometheus", "grafana"):
        assert COMPOSE["services"][name]["profiles"] == ["observe"]
        assert re.search(r":v?\d+\.\d+\.\d+$", COMPOSE["services"][name]["image"])
        for volume in COMPOSE["services"][name]["volumes"]:
            source, target, *_ = volume.split(":")
            if source.startswith("./"):
                assert Path(source).exists(), source
                assert volume.endswith(":ro"), volume
                mounted[target] = source
            else:
                assert source in COMPOSE["volumes"]
    assert "--config.file=/etc/prometheus/prometheus.yml" in COMPOSE["services"]["prometheus"]["command"]
    assert mounted["/etc/prometheus"] == "./deploy/prometheus"
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/forecurve.yml").read_text())["providers"][0]
    assert mounted[f"{provider['options']['path']}/forecurve.json"] == "./deploy/grafana/forecurve.json"
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    assert source["type"] == DASHBOARD["templating"]["list"][0]["query"]


def test_who_uses_no_profile_needs_none_of_its_secrets() -> None:
    """A variable that the file says must be set must be so for everybody: the profile's are secrets of its services."""
    text = Path("docker-compose.yml").read_text()
    example = (DEPLOY / "example.env").read_text()
    for secret, given in COMPOSE["secrets"].items():
        assert f"${{{given['environment']}" not in text, secret
        assert f"# {given['environment']}=\n" in example, "a line that is set and empty would be taken for a secret"
