"""What commands say when they cannot do their work: exit codes, JSON errors, and ways out that are commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forecurve.cli import main
from forecurve.cli.asking.commands_for_calls import in_commands

from .conftest import Forecurve


@pytest.mark.parametrize(
    ("arguments", "code", "fields"),
    [
        (["run", "show", "--json"], "usage", ["RUN"]),
        (["run", "list", "--limit", "none", "--json"], "usage", ["--limit"]),
        (["run", "list", "--bogus", "--json"], "usage", ["--bogus"]),
        (["run", "dance", "--json"], "usage", []),
        (["token", "create", "ci", "--scope", "read", "--expires", "soon", "--json"], "invalid", ["--expires"]),
        (["fit", "curves.csv", "--budget", "-5", "--json"], "invalid", ["--budget"]),
        (["backtest", "curves.csv", "--fractions=0.1,2", "--json"], "invalid", ["--fractions"]),
        (["alert", "show", "../me", "--url", "http://127.0.0.1:9", "--token", "t", "--json"], "invalid", []),
        (["recipe", "validate", "scalerl", "--set", "optimizer.lr=1", "--json"], "invalid", ["optimizer.lr"]),
        (["run", "list", "--json"], "failed", []),
        (["run", "list", "--url", "http://127.0.0.1:9", "--token", "t", "--json"], "unreachable", []),
    ],
)
def test_every_error_has_one_form_with_json(
    forecurve: Forecurve, arguments: list[str], code: str, fields: list[str]
) -> None:
    result = forecurve(*arguments)

    body = json.loads(result.err)
    assert list(body) == ["error", "code", "status", "errors"]
    assert (body["code"], body["status"]) == (code, None)
    assert [fault["field"] for fault in body["errors"]] == fields
    assert result.code == (1 if code in ("failed", "unreachable") else 2)


def test_a_conflict_is_a_failure_and_an_unknown_id_bad_input(forecurve: Forecurve, service: str) -> None:
    run = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]

    conflict = forecurve("run", "resume", run, "--json")
    unknown = forecurve("run", "resume", "run_nope", "--json")

    assert (conflict.code, json.loads(conflict.err)["code"], json.loads(conflict.err)["status"]) == (1, "conflict", 409)
    body = json.loads(unknown.err)
    assert (unknown.code, body["code"], body["status"]) == (2, "not-found", 404)
    assert body["errors"][0]["message"] == "no such run; `forecurve run list` lists them"


@pytest.mark.parametrize(
    ("arguments", "said", "field"),
    [
        (["run", "show", "run_nope"], "RUN: no such run", "run_id"),
        (["run", "list", "--sweep", "a b"], "--sweep: no sweep is called", "sweep_id"),
        (["run", "tag", "mine", "new", "a,b"], "TAG: has a comma", "add_tags.1"),
        (["run", "tag", "mine", "--remove=a,b"], "--remove: has a comma", "remove_tags.0"),
        (["run", "submit", "--preset", "scalerl", "--tag", "a,b"], "--tag: has a comma", "tags.0"),
        (["run", "submit", "--preset", "scalerl", "--note", "\a"], "--note: has ", "note"),
        (["run", "note", "mine", "\a"], "TEXT: has ", "note"),
        (["run", "rename", "mine", ""], "NAME: has nothing", "name"),
        (["alert", "resolve", "alr_nope"], "ALERT: no such alert", "alert_id"),
        (["advice", "dismiss", "rcm_nope", "--reason", "x"], "ADVICE: no such", "recommendation_id"),
        (["run", "submit", "--preset", "scalerl", "--set", "seed=-1"], "seed: must be", "seed"),
    ],
)
def test_what_the_service_refuses_is_told_by_the_flag_or_argument_that_gave_it(
    forecurve: Forecurve, service: str, arguments: list[str], said: str, field: str
) -> None:
    forecurve("run", "submit", "--preset", "scalerl", "--name", "mine")

    told = json.loads(forecurve(*arguments, "--json").err)

    assert told["error"].startswith(said)
    assert told["errors"][0]["field"] == field


def test_calls_are_put_as_commands_where_there_is_one() -> None:
    said = "`GET /v1/recommendations?run_id=run_1&status=open` has the run's present one."
    assert in_commands(said) == "`forecurve advice list --run run_1 --status open` has the run's present one."
    assert in_commands("`GET /v1/forecasts` and GET /v1/runs") == "`GET /v1/forecasts` and GET /v1/runs"


def test_a_reader_that_has_enough_ends_a_command_quietly(tmp_path: Path) -> None:
    script = "import sys; from forecurve.cli import main; sys.exit(main(['recipe', 'schema']))"
    ended = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{script}" | true; echo "${{PIPESTATUS[0]}}"'],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    assert ended.stdout.strip() in ("0", "1")


@pytest.mark.parametrize("given", [["--limit", "0"], ["--limit=many"], ["--limit", "5", "--limit", "0"]])
def test_a_value_of_a_flag_that_does_not_hold_is_named(capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    value = given[-1].removeprefix("--limit=")
    assert main(["run", "list", *given, "--json"]) == 2
    told = json.loads(capsys.readouterr().err)
    assert f"(got '{value}')" in told["error"]
    assert (told["errors"][0]["field"], told["errors"][0]["value"]) == ("--limit", value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "list", "--limit", "0"], "'--limit': must be at least 1 (got '0')"),
        (["run", "list", "--limit", "many"], "'--limit': must be a whole number (got 'many')"),
        (["plan", "curves.csv", "--budget", "much"], "'--budget': must be a number (got 'much')"),
        (["run", "watch", "mine", "--every", "0"], "'--every': must be at least 0.2 (got '0')"),
        (["advice", "list", "--status", "gone"], "'--status': 'gone' is not one of 'open', 'accepted',"),
    ],
)
def test_a_flag_is_refused_in_plain_words(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert f"Invalid value for {said}" in told
    assert "Input should" not in told
    assert "Value error" not in told


def test_a_recipe_without_its_flag_is_told_which_one_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "submit", "mine.yaml"]) == 2
    assert "(mine.yaml); give a recipe's file by --recipe, a preset by --preset (see" in capsys.readouterr().err
    assert main(["run", "list", "mine.yaml"]) == 2
    assert "--recipe" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [("nofile.csv", "nofile.csv: no such file; check the path"), ("x.doc", "x.doc: the name must end")],
)
def test_a_file_at_fault_is_named_once(capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    assert main(["fit", name]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"forecurve: {said}")
    assert told.count(name) == 1


def test_the_flag_that_an_error_names_has_its_value_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", "curves.csv", "--fractions", "0.1,2", "--json"]) == 2
    told = json.loads(capsys.readouterr().err)
    (fault,) = told["errors"]
    assert (fault["field"], fault["value"], fault["message"]) == ("--fractions", "0.1,2", told["error"])
