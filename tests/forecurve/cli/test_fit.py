"""`forecurve fit`: a table for a person, one JSON object for a script, one line and exit 2 for bad input."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecurve.cli import main
from forecurve.science import Estimate
from forecurve.science.wording import interval_text, level_text
from tests.forecurve.cli.conftest import Forecurve

HEADER = "series,compute,reward,prompts,samples,seed\n"


def _series(name: str, last: float, points: int, seed: int, ceiling: float = 0.6) -> str:
    compute = np.linspace(0, last, points)
    with np.errstate(divide="ignore"):
        reward = 0.2 + (ceiling - 0.2) / (1 + (30 / compute) ** 1.7)
    reward = reward + np.random.default_rng(seed).normal(0, 0.004, points)
    return "".join(f"{name},{c},{r:.5f},1000,16,\n" for c, r in zip(compute, reward, strict=True))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    arms = [_series(f"arm{at}", 200, 30, at, 0.6 + 0.01 * at) for at in range(3)]
    path.write_text(HEADER + "".join(arms) + _series("young", 14, 6, 9))
    return path


def _json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["fit", *arguments, "--json"]) in (0, None)
    out = capsys.readouterr().out
    assert "NaN" not in out
    body = json.loads(out)
    assert isinstance(body, dict)
    return body


def test_json_is_one_object_with_every_series(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = _json(capsys, str(file), "--budget", "250", "--unit", "steps")
    assert list(body) == ["series"]
    assert [one["series"] for one in body["series"]] == ["arm0", "arm1", "arm2", "young"]
    first = body["series"][0]
    assert first["A"]["lower"] < 0.6 < first["A"]["upper"]
    assert first["points"] == 30
    assert first["at_budget"]["compute"] == 250
    assert first["at_budget"]["curve"]["lower"] > first["at_budget"]["evaluation"]["lower"]
    assert first["advice"]["action"] == "stop"
    assert body["series"][3]["advice"]["action"] in {"undecided", "continue"}


def test_how_the_other_series_turned_out_moves_the_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five series that grew again at 120 steps, and one that has not come so far."""
    steps = np.linspace(5, 200, 40)
    path = tmp_path / "late.csv"
    lines = [f"run{at},{c},{_late(c, at):.5f},1000,16,\n" for at in range(6) for c in steps[: 24 if at == 5 else None]]
    path.write_text(HEADER + "".join(lines))
    asked = (str(path), "--series", "run5", "--budget", "200")
    alone, told = (_json(capsys, *asked, "--prior", prior)["series"][0]["advice"] for prior in ("none", "siblings"))
    assert alone["action"] == "stop"
    assert told["action"] != "stop"
    assert "by what 5 past runs gained" in told["reason"]
    assert main(["fit", *asked, "--prior", "siblings"]) in (0, None)
    assert "on top to the end by 5 past runs" in capsys.readouterr().out


def _late(step: float, at: int) -> float:
    noise = 0.003 * np.sin(step * (3 + at))
    return float(0.2 + 0.3 / (1 + (8 / step) ** 3) + 0.06 / (1 + (150 / step) ** 12) + noise)


def test_one_series_and_a_target(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = _json(capsys, str(file), "--series", "arm1", "--target", "0.99")
    (only,) = body["series"]
    assert only["series"] == "arm1"
    assert only["at_budget"] is None
    assert only["target"]["p_never"] > 0.97
    assert only["target"]["median"] is None
    assert only["target"]["p_by_budget"] is None
    by_budget = _json(capsys, str(file), "--series", "young", "--target", "0.4", "--budget", "60")["series"][0][
        "target"
    ]
    assert 0 < by_budget["p_by_budget"] <= 1 - by_budget["p_never"]


def test_siblings_narrow_a_young_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = _json(capsys, str(file), "--series", "young")["series"][0]
    helped = _json(capsys, str(file), "--series", "young", "--prior", "siblings")["series"][0]
    assert helped["A"]["upper"] - helped["A"]["lower"] < 0.7 * (alone["A"]["upper"] - alone["A"]["lower"])
    assert helped["A"]["lower"] < 0.61 < helped["A"]["upper"]


def test_with_a_budget_the_other_series_tell_how_a_run_will_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By two seeds of its own arm more than by the others: they end at .7, where all others do at .6."""
    path = tmp_path / "seeds.csv"
    ceilings = {"plain": 0.6, "other": 0.6, "better": 0.7}
    rows = [
        _series(
            arm, 200 if (arm, seed) != ("better", 2) else 40, 30 if (arm, seed) != ("better", 2) else 7, at, ceiling
        )
        for at, ((arm, ceiling), seed) in enumerate((one, seed) for one in ceilings.items() for seed in range(3))
    ]
    seeded = [row.replace("16,\n", f"16,{at % 3}\n") for at, row in enumerate(rows)]
    path.write_text(HEADER + "".join(seeded))
    asked = (str(path), "--series", "better", "--budget", "200")
    assert _json(capsys, *asked)["series"][2]["ending"]["calibration"] == "without past runs"
    told = _json(capsys, *asked, "--prior", "siblings")["series"][2]["ending"]
    assert (told["compute"], told["calibration"]) == (200, "adjusted by 8 past runs, 2 of its arm")
    assert told["lower"] < 0.68 < told["upper"]
    assert told["upper"] - told["lower"] < 0.06
    assert main(["fit", *asked, "--prior", "siblings"]) in (0, None)
    out = capsys.readouterr().out
    assert re.search(r"Expected to end at 0\.6[78]\d? \(90 %, adjusted by 8 past runs, 2 of its arm: 0\.6", out)


def test_series_far_ahead_tell_of_a_budget_and_those_beside_a_run_once_it_is_on_its_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sweep at 14 of 200 steps, of which three arms are at 110."""
    path, ahead = tmp_path / "live.csv", [_series(f"arm{at}", 110, 18, at, 0.6 + 0.01 * at) for at in range(3)]
    path.write_text(HEADER + "".join(ahead) + "".join(_series(f"young{at}", 14, 6, 9 + at) for at in range(3)))
    asked = (str(path), "--budget", "200", "--prior", "siblings", "--json")
    assert main(["fit", *asked]) in (0, None)
    told = capsys.readouterr()
    series = {one["series"]: one for one in json.loads(told.out)["series"]}
    alone = {one["series"]: one for one in _json(capsys, str(path), "--budget", "200")["series"]}
    for name in ("arm0", "arm1", "arm2"):  # at a half, and beside one another
        assert _width(series[name]["A"]) < _width(alone[name]["A"])
        assert series[name]["ending"]["calibration"] == "with 2 runs as far along"
    for name in ("young0", "young1", "young2"):
        assert _width(series[name]["A"]) < 0.5 * _width(alone[name]["A"])
        assert series[name]["ending"]["calibration"] == "with 3 runs as far along"
    assert told.err == ""
    assert main(["fit", str(path), "--budget", "500", "--prior", "siblings", "--json"]) in (0, None)
    said = "arm0, arm1, arm2, young0, young1 and 1 more: no other series has risen and is over, or far enough along"
    assert capsys.readouterr().err.startswith(said)  # in one line, however many


def test_one_seed_of_a_series_is_asked_for_by_the_name_that_the_answer_gives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "seeds.csv"
    rows = [_series("e", 200, 30, seed).replace("16,\n", f"16,{seed}\n") for seed in (1, 2)]
    path.write_text(HEADER + "".join(rows) + _series("only", 200, 30, 3).replace("16,\n", "16,4\n"))
    every = {one["series"]: one for one in _json(capsys, str(path))["series"]}
    assert list(every) == ["e (seed 1)", "e (seed 2)", "only"]
    for prior in ("none", "siblings"):
        asked = (str(path), "--series", "e (seed 2)", "--prior", prior)
        assert [one["series"] for one in _json(capsys, *asked)["series"]] == ["e (seed 2)"]
    one = _json(capsys, str(path), "--series", "e (seed 2)")["series"][0]
    assert one["A"] == every["e (seed 2)"]["A"]
    both = _json(capsys, str(path), "--series", "e (seed 2)", "--series", "only")["series"]
    assert [one["series"] for one in both] == ["e (seed 2)", "only"]
    for missing in ("e (seed 3)", "only (seed 4)"):
        assert main(["fit", str(path), "--series", missing]) == 2
        assert "has no such series" in capsys.readouterr().err


def test_a_series_whose_name_looks_like_a_seed_of_the_one_asked_for_is_not_answered_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "names.csv"
    path.write_text(HEADER + "".join(_series(name, 200, 30, at) for at, name in enumerate(("e", "e (seed 3)", "f"))))
    for asked in ("e", "e (seed 3)"):
        for prior in ("none", "siblings"):
            body = _json(capsys, str(path), "--series", asked, "--prior", prior)
            assert [one["series"] for one in body["series"]] == [asked]


def test_what_was_given_is_shown_with_all_its_digits(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--budget", "1250.5", "--target", "0.5123456"]
    assert main(["fit", str(file), "--series", "arm0", "--unit", "steps", *given]) in (0, None)
    header = capsys.readouterr().out.splitlines()[0]
    assert "at 1,250.5 steps (90 %)" in header
    assert "steps to 0.5123456 (90 %)" in header
    assert main(["fit", str(file), "--target", "1.0000001"]) == 2
    assert "no reward can be 1.0000001; rewards here are from 0 to 1" in capsys.readouterr().err


def test_where_no_ceiling_can_be_read_the_table_shows_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flat.csv"
    path.write_text("series,compute,reward\n" + "".join(f"flat,{step},0.3\n" for step in range(1, 31)))
    assert main(["fit", str(path), "--budget", "60", "--target", "0.5"]) in (0, None)
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split()[3:6] == ["withheld"] * 3


def _width(interval: dict[str, float]) -> float:
    return interval["upper"] - interval["lower"]


def test_without_usable_siblings_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.csv"
    path.write_text(HEADER + _series("only", 100, 12, 0))
    assert main(["fit", str(path), "--prior", "siblings"]) in (0, None)
    assert "only: no other series has risen" in capsys.readouterr().err


def test_a_person_gets_a_table_and_a_sentence_a_series(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(file), "--budget", "250", "--target", "0.5", "--unit", "steps"]) in (0, None)
    out = capsys.readouterr().out
    assert "ceiling (90 %)" in out
    assert "at 250 steps (90 %)" in out
    assert "arm0: Ceiling 0.6" in out
    young = _json(capsys, str(file), "--budget", "250")["series"][3]
    row = next(line for line in out.splitlines() if line.startswith("young "))
    assert f"not known ({interval_text(Estimate(**young['A']))})" in row
    end = Estimate(*(young["ending"][name] for name in ("median", "lower", "upper")))
    assert level_text(end).replace("90 %: ", "") in row
    assert "steps more would buy +0.01, the budget less: stop." in out


@pytest.mark.parametrize("arguments", [[], ["--prior", "siblings"]])
def test_a_series_that_has_just_begun_is_left_out_by_name_and_the_others_are_fitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    path = tmp_path / "sweep.csv"
    path.write_text(
        HEADER + "begun,1,0.1,,,\nbegun,2,0.1,,,\n" + "".join(_series(f"arm{i}", 100, 12, i) for i in range(3))
    )
    assert main(["fit", str(path), "--json", *arguments]) in (0, None)
    captured = capsys.readouterr()
    assert [one["series"] for one in json.loads(captured.out)["series"]] == ["arm0", "arm1", "arm2"]
    assert "begun is left out: 2 of the 3 evaluations that a forecast needs at least" in captured.err
    assert main(["fit", str(path), "--series", "begun", *arguments]) == 2
    assert "at least 3 are needed, got 2 evaluations" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "arguments", "parts"),
    [
        (HEADER + "a,1,0.1,,,\n", [], ["runs.csv", "'a'", "at least 3"]),
        (HEADER + "a,1,0.1,,,\nb,1,0.1,,,\n", [], ["runs.csv", "'a'", "at least 3"]),
        (HEADER + "a,1,0.1,,,\na,2,2,,,\na,3,0.3,,,\n", [], ["2 at evaluation 2", "[0, 1]"]),
        (HEADER + "a,1,0.1,,,\na,1,0.2,,,\na,3,0.3,,,\n", [], ["is repeated"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--series", "b"], ["no such series, got b"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--series", "b\nc"], ["no such series, got b\ufffdc"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--budget", "-4"], ["--budget", "-4"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--budget", "nan"], ["--budget", "nan"]),
        (
            HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n",
            ["--budget", "1e300"],
            ["--budget", "1e-30 to 1e+40", "1e+300"],
        ),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--target", "nan"], ["--target", "nan"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n", ["--prior", "papr"], ["papr"]),
        (HEADER + "a,1,0.1,,,\na,2,nan,,,\na,3,0.3,,,\n", [], ["nan at evaluation 2"]),
        (HEADER + "a,1,0.1,,,\na,1e999,0.2,,,\na,3,0.3,,,\n", [], ["compute", "inf at evaluation 2"]),
        (HEADER + "a,1,0.1,,,0.5\n", [], ["seed at line 2", "whole number"]),
        ("series,compute,reward,unit\na,1,0.1,h\na,2,0.2,d\na,3,0.3,h\n", [], ["unit at line 3", "began with h"]),
        ("\x00\x00\x00", [], ["runs.csv", "column is missing"]),
        (HEADER + "a,1,10,,,\na,2,20,,,\na,3,30,,,\n", [], ["rewards must lie in [0, 1]", "--range LOW,HIGH"]),
        (HEADER + "a,1,10,,,\na,2,20,,,\na,3,30,,,\n", ["--range", "0,x"], ["--range", "'0,x'", "0,100"]),
        (HEADER + "a,1,10,,,\na,2,20,,,\na,3,30,,,\n", ["--range", "100"], ["--range", "'100'", "two numbers"]),
        (HEADER + "a,1,10,,,\na,2,20,,,\na,3,30,,,\n", ["--range", "9,1"], ["--range", "9,1", "LOW,HIGH"]),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    forecurve: Forecurve, tmp_path: Path, text: str, arguments: list[str], parts: list[str]
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    forecurve("fit", path, *arguments).check_is_bad_input(parts)


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(tmp_path / "none.csv")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_fault_in_a_file_has_its_field_and_value_for_scripts(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text(HEADER + "a,1,none yet,,,\n")
    assert main(["fit", str(tmp_path / "bad.csv"), "--json"]) == 2
    told = json.loads(capsys.readouterr().err)
    (fault,) = told["errors"]
    assert (fault["field"], fault["value"]) == ("reward at line 2", "'none yet'")
    assert fault["message"] in told["error"]

    assert main(["fit", str(file), "--unit", "GPU\nhours"]) == 2
    assert capsys.readouterr().err.startswith("forecurve: --unit: a name on one line is needed, got 'GPU\\nhours'")


def test_parquet_and_a_byte_order_mark_come_through_a_pipe(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [line.split(",")[:3] for line in file.read_text().splitlines()[1:31]]
    lines = [{"series": name, "compute": float(compute), "reward": float(reward)} for name, compute, reward in rows]
    parquet.write_table(arrow.Table.from_pylist(lines), tmp_path / "runs.parquet")
    text = "".join(json.dumps(line) + "\n" for line in lines)
    shown = []
    for piped in ((tmp_path / "runs.parquet").read_bytes(), text.encode("utf-8-sig"), text.encode()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        assert main(["fit", "-"]) in (0, None)
        shown.append(capsys.readouterr().out)
    assert "arm0" in shown[0]
    assert shown[0] == shown[1] == shown[2]


@pytest.mark.parametrize("around", [{"more": False}, {"items": [], "more": False}, {"next": {"items": 1}}])
def test_json_comes_through_a_pipe_wherever_its_items_stand(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, around: dict[str, Any]
) -> None:
    rows = [line.split(",")[:3] for line in file.read_text().splitlines()[1:31]]
    lines = [{"series": name, "compute": float(compute), "reward": float(reward)} for name, compute, reward in rows]
    for indent in (None, 2):
        piped = json.dumps(around | {"items": lines}, indent=indent).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        assert [one["series"] for one in _json(capsys, "-")["series"]] == ["arm0"]


@pytest.mark.parametrize(("stated", "asked"), [("0,100", True), ("-1,1", False), (None, False)])
def test_shares_in_a_range_of_percent_are_asked_about(
    file: Path, capsys: pytest.CaptureFixture[str], stated: str | None, asked: bool
) -> None:
    assert main(["fit", str(file), *([] if stated is None else [f"--range={stated}"])]) in (0, None)
    assert ("if these are shares, leave it out" in capsys.readouterr().err) == asked
