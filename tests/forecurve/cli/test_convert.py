"""`forecurve convert`: what other tools logged, as a file that `fit` reads as one that was written by hand."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecurve.cli import main

STEPS = np.arange(0, 400, 10)
SEEDS = (1, 2)


def _rewards(seed: int) -> list[float]:
    with np.errstate(divide="ignore"):
        rising = 0.2 + 0.4 / (1 + (60 / STEPS) ** 1.7)
    return [round(float(value), 5) for value in rising + np.random.default_rng(seed).normal(0, 0.004, len(STEPS))]


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Two seeds, as W&B exports their chart."""
    ends = ("", "__MIN", "__MAX")
    header = ",".join(["Step", *(f'"grpo-s{seed} - eval/pass_rate{end}"' for seed in SEEDS for end in ends)])
    columns = [_rewards(seed) for seed in SEEDS for _ in ends]
    lines = [",".join(map(str, cells)) for cells in zip(STEPS, *columns, strict=True)]
    path = tmp_path / "wandb_export.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    rows = [
        f"grpo,{step * 0.25},{reward},500,4,{seed}"
        for seed in SEEDS
        for step, reward in zip(STEPS, _rewards(seed), strict=True)
    ]
    path = tmp_path / "by-hand.csv"
    path.write_text("\n".join(["series,compute,reward,prompts,samples,seed", *rows]) + "\n")
    return path


GIVEN = ["--per-step", "0.25", "--unit", "GPU-hours", "--prompts", "500", "--samples", "4", "--seed-in-name"]


def _forecast(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["fit", *arguments, "--budget", "150", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert isinstance(body, dict)
    for one in body["series"]:
        assert one.pop("seconds") > 0  # which no two fits share
    return body


@pytest.mark.parametrize("name", ["curves.csv", "curves.jsonl", "curves.json"])
def test_the_forecast_is_that_of_a_file_by_hand(
    chart: Path, by_hand: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    out = tmp_path / name
    assert main(["convert", str(chart), *GIVEN, "-o", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == f"80 rows in {out}\n"
    assert told.err.splitlines() == [
        "reward: eval/pass_rate, the only one that looks like a rate on held-out prompts",
        "compute: Step, each 0.25 GPU-hours",
        "2 runs, 80 evaluations of eval/pass_rate; left out: none",
    ]
    assert _forecast(capsys, str(out)) == _forecast(capsys, str(by_hand), "--unit", "GPU-hours")


def test_it_pipes(chart: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(chart.read_bytes())))
    assert main(["convert", "-", *GIVEN]) == 0
    rows = capsys.readouterr().out
    assert rows.startswith("series,compute,reward,prompts,samples,seed,unit\ngrpo,0.0,")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert main(["fit", "-"]) == 0
    assert "grpo (seed 2)" in capsys.readouterr().out


def test_what_is_logged_can_be_listed(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(chart), "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"metrics": [{"metric": "eval/pass_rate", "reports": 80}]}
    assert main(["convert", str(chart), "--list"]) == 0
    assert "eval/pass_rate" in capsys.readouterr().out


def test_runs_are_chosen_by_pattern(chart: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(chart), "--run", "*-s2", "--json"]) == 0
    assert {row["series"] for row in json.loads(capsys.readouterr().out)["items"]} == {"grpo-s2"}


@pytest.mark.parametrize(
    ("arguments", "field", "told"),
    [
        (["--metric", "eval/acc"], "--metric", "nothing is logged as that, got 'eval/acc'"),
        (["--compute", "hours"], "--compute", "nothing is logged as that, got 'hours'"),
        (["--per-step", "0"], "--per-step", "a positive number is needed, got 0"),
        (["--run", "x*"], "--run", "no run is called so"),
        (["--seed", "seed"], "--seed", "no whole numbers are logged as that"),
        (["--series", "arm"], "--series", "has no such column"),
        (["--unit", "a\nb"], "--unit", "a name on one line is needed"),
        (["-o", "x.xlsx"], "--output", ".xlsx is none of .csv"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_exit_2(
    chart: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], field: str, told: str
) -> None:
    assert main(["convert", str(chart), *arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    body = json.loads(captured.err)
    assert told in body["error"]
    assert body["errors"][0]["field"] == field


def test_no_file_is_written_of_what_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "curves.csv"
    assert main(["convert", str(tmp_path), "-o", str(out)]) == 2
    assert "a folder without logs" in capsys.readouterr().err
    assert not out.exists()


def test_rewards_in_percent_are_refused_by_the_flag_that_states_their_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.csv"
    log.write_text("step,val/acc\n1,10%\n2,20%\n")
    assert main(["convert", str(log)]) == 2
    said = "forecurve: val/acc at run.csv, line 2: a number is needed, got '10%'; write the number alone, and state "
    assert capsys.readouterr().err == f"{said}the range with `forecurve fit --range LOW,HIGH`\n"
