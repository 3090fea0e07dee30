"""`forecurve backtest`: the documented object, a table for a person, one line and exit 2 for bad input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from forecurve.cli import main
from tests.forecurve.cli.conftest import Forecurve

HEADER = "series,compute,reward,prompts,samples,seed\n"
ROW = {"file", "series", "fraction", "method", "predicted", "lower", "upper", "actual", "error", "covered", "withheld",
       "seconds", "calibration", "raw"}  # fmt: skip
SUMMARY = {"file", "fraction", "method", "n", "mae", "median", "max", "coverage", "width", "withheld", "raw_mae",
           "raw_coverage", "raw_width"}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    rows = []
    for run in range(3):
        rng = np.random.default_rng(run)
        compute = np.linspace(0, 200, 21)
        with np.errstate(divide="ignore"):
            reward = 0.2 + (0.4 + 0.02 * run) / (1 + (30 / compute) ** 1.7) + rng.normal(0, 0.004, 21)
        rows += [f"arm{run},{c},{r:.5f},1000,16,\n" for c, r in zip(compute, reward, strict=True)]
    path.write_text(HEADER + "".join(rows))
    return path


def test_json_is_the_documented_object(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["backtest", str(file), "--fractions", "0.05,0.5", "--baselines", "paper-grid,power-law,last-value"]
    assert main([*arguments, "--json"]) in (0, None)
    out = capsys.readouterr().out
    assert "NaN" not in out
    body = json.loads(out)
    assert set(body) == {"series", "summary"}
    assert len(body["series"]) == 3 * 2 * 4
    assert all(set(row) == ROW for row in body["series"])
    assert all(set(row) == SUMMARY for row in body["summary"])
    early = [row for row in body["series"] if row["fraction"] == 0.05]
    assert all(row["withheld"] and row["predicted"] is None for row in early)  # two evaluations are too few
    ours = [row for row in body["series"] if row["method"] == "forecurve" and row["fraction"] == 0.5]
    assert all(row["lower"] < row["predicted"] < row["upper"] for row in ours)
    assert all(row["error"] == pytest.approx(row["predicted"] - row["actual"]) for row in ours)
    line = next(one for one in body["summary"] if one["method"] == "forecurve" and one["fraction"] == 0.5)
    assert line["mae"] == pytest.approx(np.mean([abs(row["error"]) for row in ours]))
    assert line["coverage"] == pytest.approx(np.mean([row["covered"] for row in ours]))


def test_shares_at_which_nothing_can_be_forecast_are_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", str(file), "--fractions", "1e-300,0.05,0.125", "--json"]) in (0, None)
    captured = capsys.readouterr()
    assert [one["n"] for one in json.loads(captured.out)["summary"]] == [0, 0, 3]
    said = "at 1e-300, 0.05 of its compute no run has the 3 evaluations that a forecast needs; from 0.1 on the first"
    assert captured.err == f"runs.csv: {said} has\n"

    assert main(["backtest", str(file), "--fractions", "1e-300,0.125"]) in (0, None)
    captured = capsys.readouterr()
    assert [line.split()[1] for line in captured.out.splitlines()[1:3]] == ["1e-298", "12.5"]
    assert captured.err.startswith("runs.csv: at 1e-300 of")

    assert main(["backtest", str(file), "--fractions", "0.1,0.5"]) in (0, None)
    assert capsys.readouterr().err == ""


def test_siblings_come_from_the_same_file_only(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = tmp_path / "alone.csv"
    alone.write_text(HEADER + "".join(line for line in file.read_text().splitlines(True)[1:] if line[:4] == "arm0"))
    assert main(["backtest", str(file), str(alone), "--fractions", "0.1", "--prior", "siblings", "--json"]) in (0, None)
    first, *_, last = json.loads(capsys.readouterr().out)["series"]
    assert (first["series"], last["series"]) == ("arm0", "arm0")
    assert (first["file"], last["file"]) == (str(file), str(alone))
    assert first["upper"] - first["lower"] < last["upper"] - last["lower"]


def test_a_person_gets_a_table_and_is_told_the_calibration(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backtest", str(file), "--fractions", "0.5", "--baselines", "last-value"]) in (0, None)
    out = capsys.readouterr().out
    assert "coverage" in out
    assert "last-value" in out
    assert "runs.csv: intervals are posterior." in out


def test_files_of_one_name_are_called_as_they_were_given(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("d1", "d2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(file.read_text())
    monkeypatch.chdir(tmp_path)
    files = ["d1/x.csv", "d2/x.csv", "runs.csv"]
    assert main(["backtest", *files, "--fractions", "0.05,0.5"]) in (0, None)
    captured = capsys.readouterr()
    table, told = captured.out.splitlines()[1:7], captured.out.splitlines()[7:]
    assert list(dict.fromkeys(line.split()[0] for line in table)) == files
    assert [line.split(": intervals")[0] for line in told] == files
    assert [line.split(": at 0.05 of")[0] for line in captured.err.splitlines()] == files
    assert main(["backtest", *files, "--fractions", "0.5", "--json"]) in (0, None)
    assert list(dict.fromkeys(row["file"] for row in json.loads(capsys.readouterr().out)["summary"])) == files


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--fractions", "0.5,x"], ["--fractions", "'x'"]),
        (["--fractions", "1"], ["--fractions", "got 1"]),
        (["--fractions", "nan"], ["--fractions", "nan"]),
        (["--baselines", "magic"], ["--baselines", "magic", "paper-grid"]),
        (["--prior", "papr"], ["papr"]),
    ],
)
def test_bad_options_are_one_line_and_exit_2(
    forecurve: Forecurve, file: Path, arguments: list[str], parts: list[str]
) -> None:
    forecurve("backtest", file, *arguments).check_is_bad_input(parts)


def test_a_bad_file_among_good_ones_stops_before_the_work(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.csv").write_text(HEADER + "a,1,7,,,\na,2,0.2,,,\na,3,0.3,,,\n")
    assert main(["backtest", str(file), str(tmp_path / "bad.csv")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "bad.csv" in captured.err


def test_a_series_of_two_evaluations_is_left_out_by_name(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text() + "begun,1,0.1,,,\nbegun,2,0.1,,,\n")
    assert main(["backtest", str(file), "--fractions", "0.5", "--json"]) in (0, None)
    captured = capsys.readouterr()
    assert {row["series"] for row in json.loads(captured.out)["series"]} == {"arm0", "arm1", "arm2"}
    assert "begun is left out: 2 of the 3 evaluations" in captured.err


def test_finished_runs_come_from_stdin_too(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert main(["backtest", "-", "--fractions", "0.5", "--json"]) in (0, None)
    body = json.loads(capsys.readouterr().out)
    assert {row["file"] for row in body["series"]} == {"-"}

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read_bytes())))
    assert main(["backtest", "-", str(file), "--fractions", "0.5"]) in (0, None)
    out = capsys.readouterr().out
    assert "stdin: intervals are" in out
    assert "runs.csv: intervals are" in out
