"""Sweeps, runs and alerts from the command line against the real API."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import Api
from server.alerts.service import open_alert
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web import seeding

from .conftest import Forecurve

SWEEP = """
name: ablation
preset: scalerl
changes: {budget.compute: 5}
design: {kind: leave_one_out, ingredients: [cispo, pipeline], seeds: [0, 1]}
"""


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP)
    return file


def test_a_plan_shows_arms_and_compute_and_creates_nothing(
    forecurve: Forecurve, service: str, sweep_file: Path
) -> None:
    planned = forecurve("sweep", "plan", sweep_file, "--json").json
    shown = forecurve("sweep", "plan", sweep_file)

    assert [arm["name"] for arm in planned["arms"]] == ["control", "no-cispo", "no-pipeline"]
    assert planned["compute"] == {"total": 30.0, "unit": "CPU-seconds"}
    assert "6 runs, 30 CPU-seconds in all" in shown.out
    assert forecurve("sweep", "list", "--json").json == {"items": [], "more": False}


def test_a_sweep_is_submitted_listed_shown_and_stopped(forecurve: Forecurve, service: str, sweep_file: Path) -> None:
    submitted = forecurve("sweep", "submit", sweep_file, "--json").json

    listed = forecurve("sweep", "list", "--json").json["items"]
    shown = forecurve("sweep", "show", submitted["id"])
    runs = forecurve("run", "list", "--sweep", submitted["id"], "--json").json["items"]
    stopped = forecurve("sweep", "stop", submitted["id"], "--reason", "enough", "--json")

    assert [item["id"] for item in listed] == [submitted["id"]]
    assert 'algorithm.loss="dapo"' in shown.out
    assert len(runs) == 6
    assert stopped.code == 0
    after = forecurve("run", "list", "--sweep", submitted["id"], "--json").json["items"]
    assert {run["desired_state"] for run in after} == {"stop"}


def test_a_sweep_is_shown_with_what_each_arm_changed(
    forecurve: Forecurve, service: str, sweep_file: Path, sessions: sessionmaker[Session]
) -> None:
    submitted = forecurve("sweep", "submit", sweep_file, "--json").json
    assert submitted["comparison"] is None
    with sessions.begin() as session:
        seeding.add_comparison(session, session.get_one(Sweep, submitted["id"]), "no-cispo", now=datetime.now(UTC))
    shown = forecurve("sweep", "show", submitted["id"]).out
    assert "6 runs: 6 queued. Best at 60 CPU-seconds: control (98 % sure). Dominated: no-cispo. " in shown
    assert " Against control: ceiling down: no-cispo (-0.16)." in shown
    assert "  no-cispo: ceiling lower, -0.16 (90 %: -0.20 to -0.12)." in shown
    heads, *rows = shown.splitlines()[1:8]
    assert heads.split()[:2] == ["arm", "seed"]
    assert sorted(row.split()[:2] for row in rows[:6])[:2] == [["control", "0"], ["control", "1"]]


def test_a_stale_plan_is_refused(forecurve: Forecurve, service: str, sweep_file: Path) -> None:
    result = forecurve("sweep", "submit", sweep_file, "--plan-hash", "0" * 64)

    assert result.code == 1
    assert "look at `forecurve sweep plan` again" in result.err
    assert forecurve("sweep", "list", "--json").json == {"items": [], "more": False}


def test_a_sweep_over_a_field_that_does_not_exist_is_bad_input(
    forecurve: Forecurve, service: str, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("preset: scalerl\ndesign: {kind: one_factor, factors: {optimizer.learnin_rate: [1]}}\n")

    result = forecurve("sweep", "submit", file)

    assert result.code == 2
    assert "optimizer.learnin_rate" in result.err
    assert "did you mean" in result.err
    assert len(result.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("preset: scalerl\n", "design: is missing"),
        ("preset: scalerl\ndesing: {kind: leave_one_out}\n", "did you mean `design`"),
    ],
)
def test_a_sweep_file_that_is_not_whole_says_what_is_missing(
    forecurve: Forecurve, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(text)

    result = forecurve("sweep", "plan", file)

    assert result.code == 2
    assert words in result.err


def test_a_run_that_does_not_react_is_cancelled(forecurve: Forecurve, service: str) -> None:
    submitted = forecurve("run", "submit", "--preset", "scalerl", "--json").json
    forecurve("run", "stop", submitted["id"])
    cancelled = forecurve("run", "cancel", submitted["id"], "--reason", "it hangs")
    assert cancelled.code == 0
    assert "cancel is asked" in cancelled.out
    assert forecurve("run", "show", submitted["id"], "--json").json["desired_state"] == "cancel"


def test_a_list_that_goes_on_says_so(forecurve: Forecurve, service: str) -> None:
    for name in ("first", "second", "third"):
        forecurve("run", "submit", "--preset", "scalerl", "--name", name)
    two = forecurve("run", "list", "--limit", "2")
    assert "second" in two.out
    assert "first" not in two.out
    assert "The newest 2; there are more" in two.err
    assert forecurve("run", "list", "--limit", "2", "--json").json["more"] is True
    three = forecurve("run", "list", "--limit", "3")
    assert "first" in three.out
    assert three.err == ""


def test_a_run_is_submitted_shown_and_stopped(forecurve: Forecurve, service: str) -> None:
    submitted = forecurve("run", "submit", "--preset", "scalerl", "--set", "seed=3", "--name", "mine", "--json").json

    listed = forecurve("run", "list")
    shown = forecurve("run", "show", submitted["id"])
    stopped = forecurve("run", "stop", submitted["id"], "--reason", "seen enough")

    assert submitted["seed"] == 3
    assert "mine" in listed.out
    assert "queued" in shown.out
    assert "stop is asked" in stopped.out
    assert forecurve("run", "show", submitted["id"], "--json").json["desired_state"] == "stop"


def test_a_run_is_paused_and_resumed(forecurve: Forecurve, service: str, sessions: sessionmaker[Session]) -> None:
    waits = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    runs = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    with sessions.begin() as session:
        session.get_one(Run, runs).status = "running"

    paused = forecurve("run", "pause", waits, "--reason", "others first")
    asked = forecurve("run", "pause", runs)
    shown = forecurve("run", "show", runs)
    resumed = forecurve("run", "resume", waits)
    refused = forecurve("run", "resume", runs)

    assert paused.out.split() == [waits, "paused"]
    assert asked.out.strip() == f"{runs}  running; pause is asked"
    assert "running (pause asked)" in shown.out
    assert resumed.out.split() == [waits, "queued"]
    assert refused.code == 1
    assert "resume it when its status is paused" in refused.err


def test_a_run_is_forked_from_one_of_its_checkpoints(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    parent = _with_checkpoint(forecurve, sessions, step=100)

    made = forecurve("run", "fork", parent, "--set", "optimizer.learning_rate=1e-4", "--name", "slower", "--json").json
    said = forecurve("run", "fork", parent, "--step", "100")
    shown = forecurve("run", "show", made["id"])

    assert made["parent"]["run_id"] == parent
    assert (made["name"], made["changes"]) == ("slower", {"optimizer.learning_rate": 1e-4})
    assert f"queued; begins at step 100 of {parent}" in said.out
    assert f"{parent} at step 100" in shown.out
    assert forecurve("run", "fork", parent, "--checkpoint", made["parent"]["checkpoint_id"]).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--step", "75"], "step: run"),
        (["--step", "-1"], "--step"),
        (["--set", "optimizer.learnin_rate=1"], "did you mean"),
        (["--set", "optimizer.learning_rate"], "field=value"),
        (["--set", "budget.max_steps=100"], "budget.max_steps: the checkpoint is of step 100 already"),
    ],
)
def test_a_fork_that_cannot_be_is_bad_input(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], arguments: list[str], words: str
) -> None:
    parent = _with_checkpoint(forecurve, sessions, step=100)

    result = forecurve("run", "fork", parent, *arguments)

    assert result.code == 2
    assert words in result.err
    assert len(forecurve("run", "list", "--json").json["items"]) == 1


def test_an_id_leads_nowhere_else(forecurve: Forecurve, service: str) -> None:
    run = forecurve("run", "submit", "--preset", "scalerl", "--json").json
    for wrong in ("../me", f"{run['id']}/curve", f"{run['id']}?x=1", f"{run['id']}#x"):
        result = forecurve("run", "show", wrong)
        assert result.code == 2
        assert f"no run is called '{wrong}'" in result.err
    aside = forecurve("alert", "show", "../me")
    assert (aside.code, "got '../me'; copy it from a list" in aside.err) == (2, True)


def test_names_with_commands_to_a_terminal_are_refused(forecurve: Forecurve, service: str) -> None:
    run = forecurve("run", "submit", "--preset", "scalerl", "--json").json
    result = forecurve("run", "rename", run["id"], "a\nb\x1b]0;owned\x07")
    assert result.code == 2
    assert "a command to a terminal" in result.err
    assert forecurve("run", "rename", run["id"], "\N{WOMAN}\u200d\N{PERSONAL COMPUTER} עברית").code == 0


def test_lists_say_what_was_asked_for(
    forecurve: Forecurve, service: str, sweep_file: Path, sessions: sessionmaker[Session]
) -> None:
    assert "forecurve run submit" in forecurve("run", "list").out
    sweep = forecurve("sweep", "submit", sweep_file, "--json").json["id"]
    assert forecurve("run", "list", "--status", "launching").out.startswith("No such runs.")
    both = forecurve("run", "list", "--status", "launching", "--status", "queued", "--json").json["items"]
    assert len(both) == 6
    of_arm = forecurve("run", "list", "--arm", "no-cispo", "--json").json["items"]
    assert [run["arm"] for run in of_arm] == ["no-cispo", "no-cispo"]
    of_name = forecurve("run", "list", "--arm", "no-cispo", "--name", of_arm[0]["name"], "--json").json["items"]
    assert of_name == of_arm[:1]
    assert "--arm, --name" in forecurve("run", "list", "--name", "nobody's").out
    assert "6 of its 6 runs asked to stop" in forecurve("sweep", "stop", sweep).out
    with sessions.begin() as session:
        for run in both:
            session.get_one(Run, run["id"]).status = "stopped"
    assert "none of its 6 runs goes on" in forecurve("sweep", "stop", sweep).out


def test_a_run_needs_a_recipe_and_only_one(forecurve: Forecurve, service: str) -> None:
    assert "--preset" in forecurve("run", "submit").err
    assert forecurve("run", "submit", "--preset", "scalerl", "--recipe", "x.yaml").code == 2


def test_an_unknown_run_is_bad_input(forecurve: Forecurve, service: str) -> None:
    result = forecurve("run", "show", "run_nope")

    assert result.code == 2
    assert "run_nope" in result.err


def test_watch_prints_each_evaluation_and_ends_with_the_run(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = _external_run(service, reward=0.25)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.status, run.finished_at = "failed", datetime.now(UTC)

    watched = forecurve("run", "watch", run_id, "--every", "0.2")
    as_json = forecurve("run", "watch", run_id, "--every", "0.2", "--json")

    assert watched.code == 1  # the run failed
    assert "pass rate 0.250" in watched.out
    assert json.loads(as_json.out.splitlines()[-1])["status"] == "failed"


def test_a_run_is_renamed_archived_and_restored(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = _external_run(service, reward=0.25)
    early = forecurve("run", "archive", run_id)
    assert (early.code, "stop it first" in early.err) == (1, True)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        run.status, run.finished_at = "failed", datetime.now(UTC)

    assert "second try" in forecurve("run", "rename", run_id, "second try").out
    nameless = forecurve("run", "rename", run_id, " ")
    assert nameless.code == 2
    assert nameless.err.endswith("has nothing that can be seen; give a letter or a digit at least (got ' ')\n")
    assert "forecurve run restore" in forecurve("run", "archive", run_id).out
    assert forecurve("run", "list", "--json").json["items"] == []
    assert [one["name"] for one in forecurve("run", "list", "--archived", "--json").json["items"]] == ["second try"]
    assert "archived" in forecurve("run", "show", run_id).out
    assert "listed again" in forecurve("run", "restore", run_id).out
    assert "No archived runs." in forecurve("run", "list", "--archived").out
    assert len(forecurve("run", "list", "--json").json["items"]) == 1


def test_a_run_without_a_recipe_is_said_to_be_of_a_task(forecurve: Forecurve, service: str) -> None:
    run_id = _external_run(service, reward=0.25)
    assert "of no task" in forecurve("run", "task", run_id).out
    assert forecurve("run", "task", run_id, "gsm8k", "--json").json["task"] == "gsm8k"
    assert "gsm8k" in forecurve("run", "show", run_id).out
    assert [one["id"] for one in forecurve("run", "list", "--task", "gsm8k", "--json").json["items"]] == [run_id]
    assert "--task" in forecurve("run", "list", "--task", "maze").out
    both = forecurve("run", "task", run_id, "maze", "--none")
    assert (both.code, "'maze'" in both.err) == (2, True)
    assert forecurve("run", "task", run_id, "--none", "--json").json["task"] is None


def test_alerts_are_listed_and_can_be_only_the_open_ones(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = _external_run(service, reward=0.25)
    now = datetime.now(UTC)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        alert = open_alert(
            session, run, kind="run_failed", level="ALERT", title="It fell", text="It fell over.", now=now
        )
        alert.resolved_at = now

    assert "It fell over." in forecurve("alerts").out
    assert forecurve("alerts", "--open").out.strip() == "No alerts."
    assert [item["run_id"] for item in forecurve("alerts", "--run", run_id, "--json").json["items"]] == [run_id]


def test_of_a_curve_that_is_no_sigmoid_no_ceiling_is_shown(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id = _external_run(service, reward=0.25)
    with sessions.begin() as session:
        run = session.get_one(Run, run_id)
        seeding.add_forecast(session, run, seeding.Truth(), at=42.0, now=datetime.now(UTC), misfit="collapse")

    assert re.search(r"^  ceiling +withheld$", forecurve("run", "show", run_id).out, re.MULTILINE)
    assert "withheld" in forecurve("run", "list").out
    assert forecurve("run", "show", run_id, "--json").json["ceiling"] is None


def _with_checkpoint(forecurve: Forecurve, sessions: sessionmaker[Session], *, step: int) -> str:
    """A queued run for which a checkpoint was reported."""
    run_id: str = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    with sessions.begin() as session:
        seeding.add_checkpoint(session, session.get_one(Run, run_id), step=step, compute=20.0, now=datetime.now(UTC))
    return run_id


def _external_run(url: str, *, reward: float) -> str:
    """A run with one evaluation."""
    import os

    from forecurve.client import init

    run = init("watched", unit="GPU-hours", url=url, token=os.environ["FORECURVE_TOKEN"])
    run.log_evaluation(step=10, compute=1.0, reward=reward)
    run.flush()
    run._heart.close()  # type: ignore[union-attr]
    with Api(url, os.environ["FORECURVE_TOKEN"]) as api:
        assert api.run(str(run.id))["last_reward"] == reward
    return str(run.id)
