"""A sweep is extended, put away and taken out again from the command line, against the real API."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding

from .conftest import Forecurve

SWEEP = """
name: ablation
preset: scalerl
changes: {budget.compute: 5}
design: {kind: leave_one_out, ingredients: [cispo, pipeline]}
"""


@pytest.fixture
def sweep(forecurve: Forecurve, service: str, tmp_path: Path) -> dict[str, Any]:
    """A control and two arms, one seed each."""
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP)
    submitted: dict[str, Any] = forecurve("sweep", "submit", file, "--json").json
    return submitted


def undecided(sessions: sessionmaker[Session], sweep: dict[str, Any], seeds_needed: int) -> None:
    with sessions.begin() as session:
        open_ = {
            "verdict": "undecided",
            "direction": None,
            "seeds_needed": seeds_needed,
            "reason": "no-cispo: undecided.",
        }
        seeding.add_comparison(session, session.get_one(Sweep, sweep["id"]), "no-cispo", now=datetime.now(UTC), **open_)


def names(forecurve: Forecurve, sweep: dict[str, Any]) -> list[str]:
    return [run["name"] for run in forecurve("sweep", "show", sweep["id"], "--json").json["runs"]][3:]


def test_arms_get_further_seeds(forecurve: Forecurve, sweep: dict[str, Any]) -> None:
    out = forecurve("sweep", "add-seeds", "ablation", "--seeds", "1", "--arm", "no-cispo", "--control-seeds", "2").out
    assert [line.split("  ")[1] for line in out.splitlines()[:3]] == ["control s1", "control s2", "no-cispo s1"]
    assert out.splitlines()[-1].startswith("3 runs queued  http://")
    assert len(forecurve("sweep", "add-seeds", "ablation", "--seeds", "1").out.splitlines()) == 4


def test_what_would_decide_an_arm_is_shown_and_queued(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    early = forecurve("sweep", "add-seeds", "ablation", "--decide", "no-cispo")
    assert (early.code, "not compared yet" in early.err) == (1, True)
    undecided(sessions, sweep, seeds_needed=2)
    shown = forecurve("sweep", "show", "ablation").out
    command = f"forecurve sweep add-seeds {sweep['id']} --decide no-cispo"
    assert f"To decide no-cispo (2 runs, 10 CPU-seconds): {command}" in shown
    assert forecurve(*command.split()[1:]).code == 0
    assert names(forecurve, sweep) == ["control s1", "no-cispo s1"]
    shown = [line.split()[:2] for line in forecurve("sweep", "show", "ablation").out.splitlines()]
    assert shown[1] == ["arm", "seed"]
    assert shown[5:7] == [["control", "1"], ["no-cispo", "1"]]
    again = forecurve("sweep", "add-seeds", "ablation", "--decide", "no-cispo")
    assert (again.code, "on their way" in again.err) == (1, True)
    assert "To decide" not in forecurve("sweep", "show", "ablation").out


def test_an_arm_is_added(forecurve: Forecurve, sweep: dict[str, Any]) -> None:
    assert forecurve("sweep", "add-arm", "ablation", "--set", "optimizer.learning_rate=1e-4").code == 0
    assert forecurve("sweep", "add-arm", "ablation", "--set", "algorithm.loss=grpo", "--name", "GRPO").code == 0
    assert names(forecurve, sweep) == ["learning_rate=0.0001", "GRPO"]


def test_a_sweep_is_put_away_and_found_by_its_name_all_the_same(
    forecurve: Forecurve, sweep: dict[str, Any], sessions: sessionmaker[Session]
) -> None:
    early = forecurve("sweep", "archive", "ablation")
    assert (early.code, "stop it" in early.err) == (1, True)
    with sessions.begin() as session:
        for run in session.scalars(select(Run)):
            run.status, run.finished_at = "failed", datetime.now(UTC)
    assert "forecurve sweep restore" in forecurve("sweep", "archive", "ablation").out
    assert "No sweeps." in forecurve("sweep", "list").out
    assert [one["id"] for one in forecurve("sweep", "list", "--archived", "--json").json["items"]] == [sweep["id"]]
    refused = forecurve("sweep", "add-seeds", "ablation", "--seeds", "1")
    assert (refused.code, "restore it first" in refused.err) == (1, True)
    assert "listed again, with 3 runs" in forecurve("sweep", "restore", "ablation").out
    assert forecurve("sweep", "list", "--archived").out == "No archived sweeps.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add-seeds", "ablation"], ["--seeds", "--decide ARM"]),
        (["add-seeds", "ablation", "--seeds", "1", "--decide", "no-cispo"], ["--decide", "given with --seeds"]),
        (["add-seeds", "ablation", "--decide", "no-such"], ["no such arm", "no-cispo"]),
        (["add-seeds", "ablation", "--seeds", "1", "--arm", "no-cisp"], ["--arm: ", "did you mean `no-cispo`"]),
        (["add-arm", "ablation"], ["--set", "FIELD=VALUE"]),
        (["add-arm", "ablation", "--set", "optimizer.lr=1"], ["optimizer.lr", "learning_rate"]),
    ],
)
def test_what_cannot_be_meant_is_refused(
    forecurve: Forecurve, sweep: dict[str, Any], arguments: list[str], words: list[str]
) -> None:
    forecurve("sweep", *arguments).check_is_bad_input(words)
    assert names(forecurve, sweep) == []
