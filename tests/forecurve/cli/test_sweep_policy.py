"""Runs that share compute, from the command line, against the real API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.sweeps.models import Sweep, SweepComparison
from tests.web import seeding

from .conftest import Forecurve

SWEEP = """
name: ablation
preset: scalerl
design: {kind: leave_one_out, ingredients: [cispo, pipeline]}
policy: allocate
budget_compute: 90
"""


@pytest.fixture
def sweep(forecurve: Forecurve, service: str, tmp_path: Path) -> dict[str, Any]:
    """A control and two arms that share 90 of their 180 CPU-seconds."""
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP)
    assert "3 runs, which share 90 CPU-seconds; the sum of their budgets" in forecurve("sweep", "plan", file).out
    submitted: dict[str, Any] = forecurve("sweep", "submit", file, "--json").json
    return submitted


def plan(sessions: sessionmaker[Session], sweep: dict[str, Any]) -> dict[str, str]:
    """The control goes to 54, no-cispo is held at 30, and the last one has no evaluation yet; ids by names."""
    now = datetime.now(UTC)
    with sessions.begin() as session:
        runs = session.scalars(select(Run).where(Run.sweep_id == sweep["id"]).order_by(Run.id)).all()
        for run, until in zip(runs, (42, 30), strict=False):
            seeding.add_evaluations(session, run, seeding.Truth(), until=until, now=now)
        found = session.get_one(Sweep, sweep["id"])
        goes = {"control": 54.0}
        seeding.add_allocation(session, found, now=now, budget=90.0, goes=goes, dropped=["no-cispo"])
        return {run.name: run.id for run in runs}


def test_a_sweep_file_says_what_the_runs_share(forecurve: Forecurve, sweep: dict[str, Any]) -> None:
    assert (sweep["policy"], sweep["budget_compute"]) == ("allocate", 90)
    assert {(run["allocated"], run["goes_to"]) for run in sweep["runs"]} == {(True, 0)}
    shown = forecurve("sweep", "show", "ablation").out
    assert "Shared compute: 0 of 90 CPU-seconds spent.\nEvery run trains until it can be forecast" in shown
    assert shown.count("waits to train until it can be forecast") == 3
    assert "allocate" in forecurve("sweep", "list").out


def test_a_sweep_shows_what_becomes_of_each_run(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    ids = plan(sessions, sweep)
    shown = forecurve("sweep", "show", "ablation").out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "Shared compute: 72 of 90 CPU-seconds spent." in lines
    assert "control ends highest at 60 CPU-seconds with 90 %." in lines
    assert "run now at 60 CPU-seconds (90 %) P(best) because" in lines
    assert "control trains to 54 CPU-seconds 0.73 (0.70 to 0.76) 90 % it may pass the others" in lines
    assert "no-cispo held at 30 CPU-seconds 0.68 (0.65 to 0.71) 30 % can be dropped" in lines
    assert "no-pipeline waits to train until it can be forecast – – not compared" in lines
    assert "paused (held)" in forecurve("run", "list").out
    held = forecurve("run", "show", ids["no-cispo"]).out
    assert f"sweep       {sweep['id']}, which shares its compute: held at 30 CPU-seconds" in held
    data = forecurve("sweep", "show", "ablation", "--json").json["allocation"]
    assert [one["run_id"] for one in data["runs"]] == [ids["control"], ids["no-cispo"]]


def test_odds_are_the_arms_where_one_has_several_seeds(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    plan(sessions, sweep)
    with sessions.begin() as session:
        row = session.get_one(SweepComparison, sweep["id"])
        assert row.allocation is not None
        runs = [one | {"seed_of": "control"} for one in row.allocation["runs"]]
        row.allocation = row.allocation | {"runs": runs}
    assert "P(best arm)" in forecurve("sweep", "show", "ablation").out


def test_what_a_person_asks_of_a_run_is_told(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    ids = plan(sessions, sweep)
    assert forecurve("run", "pause", ids["no-cispo"]).code == 0
    assert "its user's, paused" in forecurve("sweep", "show", "ablation").out
    shown = forecurve("run", "show", ids["no-cispo"]).out
    assert "shares its compute" not in shown
    assert "(held)" not in shown


def test_a_sweep_gets_another_policy_and_another_budget(forecurve: Forecurve, sweep: dict[str, Any]) -> None:
    def asked(*arguments: str) -> str:
        result = forecurve("sweep", "policy", "ablation", *arguments)
        assert result.code == 0
        return result.out

    assert asked("allocate", "--budget", "120.5") == f"{sweep['id']}  allocate; its runs share 120.5 CPU-seconds\n"
    assert asked("allocate") == f"{sweep['id']}  allocate; its runs share 120.5 CPU-seconds\n"
    assert asked("auto") == f"{sweep['id']}  auto\n"
    assert asked("allocate") == f"{sweep['id']}  allocate; its runs share 180 CPU-seconds\n"
    assert forecurve("sweep", "policy", "ablation", "advise", "--json").json["allocation"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ablation", "shared"], ["'shared' is not one of", "allocate"]),
        (["ablation", "advise", "--budget", "9"], ["--budget: ", "9", "policy `allocate` alone"]),
        (["ablation", "allocate", "--budget", "0"], ["--budget", "a positive number", "the sweep's unit"]),
        (["ablation", "allocate", "--budget", "nan"], ["--budget", "nan"]),
        (["no such", "allocate"], ["no sweep is called"]),
    ],
)
def test_what_cannot_be_meant_is_refused(
    forecurve: Forecurve, sweep: dict[str, Any], arguments: list[str], words: list[str]
) -> None:
    forecurve("sweep", "policy", *arguments).check_is_bad_input(words)
    assert forecurve("sweep", "show", "ablation", "--json").json["budget_compute"] == 90


def test_a_file_that_shares_with_another_policy_is_refused(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP.replace("allocate", "auto"))
    forecurve("sweep", "submit", file).check_is_bad_input(["budget_compute", "policy `allocate` alone"])


@pytest.mark.parametrize("field", ["budget_compute: .nan", "budget_compute: 1\nchanges: {budget.compute: .inf}"])
def test_a_file_with_a_number_that_is_not_finite_is_refused(
    forecurve: Forecurve, service: str, tmp_path: Path, field: str
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP.replace("budget_compute: 90", field))
    named = field.split()[-2].strip("{:")
    forecurve("sweep", "submit", file).check_is_bad_input([f"{named}: ", "cannot stand in JSON"])
    told = json.loads(forecurve("sweep", "plan", file, "--json").err)
    assert told["errors"][0]["field"].endswith(named)


def test_a_plan_says_what_the_runs_share_and_refuses_what_a_submission_would(
    forecurve: Forecurve, service: str, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP)
    assert ", which share 90 CPU-seconds; the sum of their budgets is " in forecurve("sweep", "plan", file).out
    assert forecurve("sweep", "plan", file, "--json").json["budget_compute"] == 90
    file.write_text(SWEEP.replace("allocate", "auto"))
    forecurve("sweep", "plan", file).check_is_bad_input(["budget_compute", "policy `allocate` alone"])
    file.write_text(SWEEP.replace("allocate", "share"))
    forecurve("sweep", "plan", file).check_is_bad_input(["policy: must be one of advise, auto, allocate"])


def test_further_seeds_of_a_spent_budget_are_refused_with_the_command_that_helps(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    plan(sessions, sweep)
    forecurve("sweep", "policy", "ablation", "allocate", "--budget", "70")
    refused = forecurve("sweep", "add-seeds", "ablation", "--seeds", "1")
    assert refused.code == 1
    assert f"`forecurve sweep policy {sweep['id']} allocate --budget` takes a larger one" in refused.err
