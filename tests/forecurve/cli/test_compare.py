"""`forecurve compare`: a table for a person, one JSON object for a script, one line and exit 2 for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from forecurve.cli import main
from tests.forecurve.cli.conftest import Forecurve

HEADER = "series,compute,reward,prompts,samples,seed\n"


def _series(name: str, seed: int | None, ceiling: float, noise: int, mid: float = 30) -> str:
    compute = np.linspace(0, 200, 21)
    with np.errstate(divide="ignore"):
        reward = 0.2 + (ceiling - 0.2) / (1 + (mid / compute) ** 1.7)
    reward = reward + np.random.default_rng(noise).normal(0, 0.003, 21)
    label = "" if seed is None else seed
    return "".join(f"{name},{c},{r:.5f},1000,16,{label}\n" for c, r in zip(compute, reward, strict=True))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.csv"
    base = [_series("base", seed, 0.60, seed) for seed in (1, 2)]
    low = [_series("low", seed, 0.50, 10 + seed) for seed in (1, 2)]
    path.write_text(HEADER + "".join([*base, *low, _series("once", None, 0.60, 20)]))
    return path


def test_seeds_of_a_series_are_one_arm(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(file), "--control", "base", "--unit", "steps", "--json"]) in (0, None)
    out = capsys.readouterr().out
    assert "NaN" not in out
    body = json.loads(out)
    assert (body["control"], body["control_seeds"], body["unit"], body["replicates"]) == ("base", 2, "steps", 2)
    low, once = body["arms"]
    assert (low["arm"], low["seeds"], low["verdict"], low["direction"]) == ("low", 2, "ceiling", "down")
    assert low["difference"]["lower"] < -0.10 < low["difference"]["upper"]
    assert once["seeds"] == 1
    assert once["seed_note"].startswith("single seed")


def test_an_arm_that_has_just_begun_is_left_out_by_name_but_not_the_control(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text() + "begun,1,0.1,,,\nbegun,2,0.1,,,\n")
    assert main(["compare", str(file), "--control", "base", "--json"]) in (0, None)
    captured = capsys.readouterr()
    assert [arm["arm"] for arm in json.loads(captured.out)["arms"]] == ["low", "once"]
    assert "begun is left out: 2 of the 3 evaluations" in captured.err
    for arguments in (["--control", "begun"], ["--control", "base", "--series", "begun"]):
        assert main(["compare", str(file), *arguments]) == 2
        assert "'begun', compute: at least 3 are needed, got 2 evaluations" in capsys.readouterr().err


def test_a_control_that_is_too_short_is_named_and_no_other_series(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{name},{compute},0.1,,,\n" for name in ("also begun", "begun") for compute in (1, 2))
    file.write_text(file.read_text() + rows)
    assert main(["compare", str(file), "--control", "begun"]) == 2
    assert "'begun', compute: at least 3 are needed, got 2 evaluations" in capsys.readouterr().err


def test_a_single_seed_may_be_the_control(file: Path, forecurve: Forecurve) -> None:
    file.write_text(file.read_text() + _series("base", 3, 0.60, 3))
    told = forecurve("compare", file, "--control", "base (seed 1)", "--json")
    assert told.code == 0, told.err
    assert (told.json["control"], told.json["control_seeds"]) == ("base (seed 1)", 1)
    assert {arm["arm"]: arm["seeds"] for arm in told.json["arms"]} == {"base": 2, "low": 2, "once": 1}
    of_two = forecurve("compare", file, "--control", "base (seed 1)", "--series", "base (seed 3)", "--json")
    assert [arm["arm"] for arm in of_two.json["arms"]] == ["base (seed 3)"]
    file.write_text(file.read_text() + "base,1,0.1,,,4\n")
    forecurve("compare", file, "--control", "base (seed 4)").check_is_bad_input(["'base (seed 4)'", "at least 3"])


def test_the_documented_keys_are_the_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compare", str(file), "--control", "base", "--json"])
    body = json.loads(capsys.readouterr().out)
    page = (Path(__file__).parents[3] / "docs" / "reference" / "compare-json.md").read_text()
    for key in [*body, *body["arms"][0], *body["arms"][0]["multiplier"], *body["arms"][0]["paper"]]:
        assert f"`{key}`" in page, key


def test_a_person_gets_a_table_and_sentences(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(file), "--control", "base"]) in (0, None)
    out = capsys.readouterr().out
    assert "the paper's way" in out
    assert "low: ceiling lower, -0.10" in out
    assert "Against base: ceiling down: low (-0.10)" in out


def test_only_some_arms_and_a_known_spread(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--series", "once", "--seed-sd", "0.001", "--rope", "0.03", "--level", "0.9", "--json"]
    assert main(["compare", str(file), "--control", "base", *options]) in (0, None)
    body = json.loads(capsys.readouterr().out)
    assert [arm["arm"] for arm in body["arms"]] == ["once"]
    assert body["arms"][0]["verdict"] == "no difference shown"
    assert (body["rope"], body["level"], body["seed_spread"]) == (0.03, 0.9, {"sd": 0.001, "dof": None, "past": 0})


def test_past_sweeps_tell_how_far_seeds_lie_apart(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past.csv"
    runs = [
        _series(name, seed, 0.55 + 0.02 * at, 30 + 5 * at + seed) for at, name in enumerate("xyz") for seed in range(4)
    ]
    past.write_text(HEADER + "".join(runs))
    assert main(["compare", str(file), "--control", "base", "--past", str(past), "--json"]) in (0, None)
    body = json.loads(capsys.readouterr().out)
    assert body["seed_spread"]["past"] == 9
    assert body["seed_spread"]["sd"] < 0.0125
    assert body["seed_note"].endswith("by replicates (2 here and 9 in past sweeps)")
    assert main(["compare", str(file), "--control", "base", "--past", str(past)]) in (0, None)
    assert f"S{body['seed_note'][1:]}.\n" in capsys.readouterr().out


def test_a_run_counts_once_however_many_files_of_past_sweeps_have_it(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past, again = tmp_path / "past.csv", tmp_path / "again.csv"
    past.write_text(HEADER + "".join(_series("old", seed, 0.58, 40 + seed) for seed in range(4)))
    again.write_text(past.read_text() + file.read_text().removeprefix(HEADER))  # and the sweep itself
    seen = []
    for files in ([past], [past, again], [again]):
        told = [argument for one in files for argument in ("--past", str(one))]
        assert main(["compare", str(file), "--control", "base", *told, "--json"]) in (0, None)
        seen.append(json.loads(capsys.readouterr().out)["seed_spread"])
    assert seen[0]["past"] == 3
    assert seen == [seen[0]] * 3


def test_a_past_without_seeds_says_that_it_tells_nothing(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = tmp_path / "past.csv"
    past.write_text(HEADER + _series("x", None, 0.6, 1) + _series("y", None, 0.5, 2))
    assert main(["compare", str(file), "--control", "base", "--past", str(past), "--json"]) in (0, None)
    captured = capsys.readouterr()
    assert "--past: beside the sweep's own runs no arm in it has two seeds" in captured.err
    assert json.loads(captured.out)["seed_spread"]["past"] == 0


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--control", "nobody"], ["--control: the arms are base, low, once", "'nobody'"]),
        (["--control", "nobody", "--json"], ['"field": "--control"', '"value": "nobody"']),
        (["--control", "base", "--series", "nobody"], ["series", "nobody"]),
        (["--control", "base", "--series", "base"], ["at least one arm beside the control"]),
        (["--control", "base", "--rope", "-1"], ["--rope: a positive number", "got -1"]),
        (["--control", "base", "--rope", "2"], ["--rope", "got 2", "a range of 1"]),
        (["--control", "base", "--level", "2"], ["--level", "2"]),
        (["--control", "base", "--seed-sd", "0"], ["--seed-sd", "0"]),
        (["--control", "base", "--seed-sd", "inf"], ["--seed-sd", "inf"]),
        (["--control", "base", "--seed-sd", "1e9"], ["--seed-sd", "from 1e-09 to 1 ", "got 1e+09", "--range"]),
        (["--control", "base", "--seed-sd", "0.9"], ["--seed-sd: an sd from", "got 0.9"]),
        (["--control", "base", "--seed-sd", "1e-300"], ["--seed-sd", "got 1e-300"]),
        (["--control", "base", "--seed-sd", "0.01", "--past", "p.csv"], ["--seed-sd", "0.01", "--past"]),
        (["--control", "base", "--past", "gone.csv"], ["gone.csv"]),
        (["--control", "base", "--past", "{file}"], ["--past", "the sweep itself"]),
        ([], ["--control"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    forecurve: Forecurve, file: Path, options: list[str], parts: list[str]
) -> None:
    forecurve("compare", file, *(option.format(file=file) for option in options)).check_is_bad_input(parts)


def test_an_error_is_the_last_line_behind_what_was_left_out(forecurve: Forecurve, tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text(HEADER + _series("base", None, 0.6, 1) + "begun,1,0.2,,,\n")
    told = forecurve("compare", path, "--control", "base", "--json")
    note, error = told.err.splitlines()
    assert (told.code, told.out) == (2, "")
    assert note.startswith("begun is left out: 1 of the 3 evaluations")
    assert json.loads(error)["error"].startswith("arms: at least one arm beside the control is needed")
