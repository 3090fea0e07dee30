"""`forecurve plan`: a table for a person, one JSON object for a script, one line and exit 2 for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forecurve.cli import main
from tests.forecurve.cli.conftest import Forecurve

CEILINGS = {"low": 0.45, "high": 0.65, "middle": 0.56}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.csv"
    lines = ["series,compute,reward,prompts,samples"]
    for at, (name, ceiling) in enumerate(CEILINGS.items()):
        compute = np.linspace(0, 60, 16)
        with np.errstate(divide="ignore"):
            reward = 0.2 + (ceiling - 0.2) / (1 + (30 / compute) ** 1.7)
        reward = reward + np.random.default_rng(at).normal(0, 0.003, 16)
        lines += [f"{name},{c},{r:.5f},1000,16" for c, r in zip(compute, reward, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_json_names_the_choice_and_keeps_to_the_budget(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), "--budget", "300", "--horizon", "200", "--unit", "hours", "--json"]) in (0, None)
    body = json.loads(capsys.readouterr().out)
    assert body["choice"] == "high"
    assert body["unit"] == "hours"
    assert body["horizon"] == 200
    assert sum(row["spend"] for row in body["allocation"]) <= 300
    assert "low" in body["dominated"]
    assert {row["arm"] for row in body["arms"]} == set(CEILINGS)


def test_a_person_reads_a_table_and_a_sentence(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), "--budget", "300", "--horizon", "200"]) in (0, None)
    out = capsys.readouterr().out
    assert "P(best)" in out
    assert "high ends highest at 200" in out.splitlines()[-1]


def test_a_horizon_has_all_its_digits(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), "--budget", "300", "--horizon", "212.5", "--unit", "hours"]) in (0, None)
    assert "at 212.5 hours (90 %)" in capsys.readouterr().out.splitlines()[0]


def test_a_small_budget_goes_further_than_where_it_begins(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(file), "--budget", "0.25", "--horizon", "200", "--unit", "hours"]) in (0, None)
    out = capsys.readouterr().out
    assert "high    60  60.2  finish" in out
    assert "on the way to 60.2 hours" in out


def test_only_the_series_asked_for_are_arms(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--series", "low", "--series", "middle", "--prior", "none", "--json"]
    assert main(["plan", str(file), "--budget", "300", *arguments]) in (0, None)
    body = json.loads(capsys.readouterr().out)
    assert {row["arm"] for row in body["arms"]} == {"low", "middle"}
    assert body["choice"] == "middle"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "-5"], ("--budget", "-5")),
        (["--budget", "100", "--horizon", "nan"], ("--horizon", "nan")),
        (["--budget", "100", "--horizon", "1e300"], ("--horizon", "to 1e+40 is needed, got 1e+300")),
        (["--budget", "1e-300"], ("--budget", "got 1e-300")),
        (["--budget", "100", "--delta", "0"], ("--delta", "0")),
        (["--budget", "100", "--delta", "1e9"], ("--delta", "got 1e+09; rewards here have a range of 1")),
        (["--budget", "100", "--price", "1e308"], ("--price", "got 1e+308")),
        (["--budget", "100", "--series", "absent"], ("series", "absent")),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    forecurve: Forecurve, file: Path, arguments: list[str], says: tuple[str, str]
) -> None:
    forecurve("plan", file, *arguments).check_is_bad_input(says)


@pytest.fixture
def seeded(tmp_path: Path) -> Path:
    """The highest run is one of the arm whose other seed is low."""
    path = tmp_path / "seeded.csv"
    lines = ["series,compute,reward,prompts,samples,seed"]
    for name, seed, ceiling in (("even", 1, 0.6), ("even", 2, 0.6), ("uneven", 1, 0.66), ("uneven", 2, 0.48)):
        compute = np.linspace(4, 60, 15)
        reward = 0.2 + (ceiling - 0.2) / (1 + (30 / compute) ** 1.7)
        reward = reward + np.random.default_rng(seed).normal(0, 0.003, 15)
        lines += [f"{name},{c},{r:.5f},1000,16,{seed}" for c, r in zip(compute, reward, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_seeds_of_a_series_are_one_arm(forecurve: Forecurve, seeded: Path) -> None:
    asked = ["plan", seeded, "--budget", "300", "--horizon", "200"]
    body = json.loads(forecurve(*asked, "--json").out)
    assert body["chosen_arm"] == "even"
    assert body["choice"] in ("even (seed 1)", "even (seed 2)")
    assert [row["seed_of"] for row in body["arms"]] == ["even", "even", "uneven", "uneven"]
    shown = forecurve(*asked).out
    assert shown.split()[:2] == ["run", "now"]
    assert "P(best arm)" in shown
    assert "even, the mean of 2 seeds, ends highest at 200 compute units" in shown


def test_a_seed_that_is_asked_for_keeps_its_name(forecurve: Forecurve, seeded: Path) -> None:
    asked = ["--series", "uneven (seed 1)", "--series", "even", "--budget", "300", "--json"]
    body = json.loads(forecurve("plan", seeded, *asked).out)
    assert [(row["arm"], row["seed_of"]) for row in body["arms"]] == [
        ("even (seed 1)", "even"),
        ("even (seed 2)", "even"),
        ("uneven (seed 1)", None),
    ]
    assert body["choice"] == body["chosen_arm"] == "uneven (seed 1)"
