"""`--range LOW,HIGH`: a file in percent gives the answers of the same file in pass rates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .conftest import Forecurve

SERIES = {"low": 0.45, "high": 0.65, "middle": 0.56}


def _file(path: Path, low: float, high: float) -> Path:
    """Three runs with rewards told in [low, high]."""
    lines = ["series,compute,reward,prompts,samples"]
    for at, (name, ceiling) in enumerate(SERIES.items()):
        compute = np.linspace(4, 60, 15)
        rate = 0.2 + (ceiling - 0.2) / (1 + (10 / compute) ** 1.7) + np.random.default_rng(at).normal(0, 0.003, 15)
        told = low + (high - low) * rate
        lines += [f"{name},{c!r},{r!r},1000,16" for c, r in zip(compute.tolist(), told.tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _both(forecurve: Forecurve, folder: Path, command: str, *arguments: str, low: float, high: float) -> Any:
    rates, told = _file(folder / "rates.csv", 0.0, 1.0), _file(folder / "told.csv", low, high)
    a = forecurve(command, rates, *arguments, "--json")
    b = forecurve(command, told, *arguments, "--range", f"{low},{high}", "--json")
    assert (a.code, b.code) == (0, 0), a.err + b.err
    return a.json, b.json


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (-1.0, 1.0)])
def test_fit(forecurve: Forecurve, tmp_path: Path, low: float, high: float) -> None:
    a, b = _both(forecurve, tmp_path, "fit", "--prior", "paper", "--budget", "120", low=low, high=high)
    for one, other in zip(a["series"], b["series"], strict=True):
        assert other["A"]["upper"] == pytest.approx(low + (high - low) * one["A"]["upper"], rel=1e-3)
        assert other["advice"]["action"] == one["advice"]["action"]


def test_what_is_rounded_to_0_has_no_sign(forecurve: Forecurve, tmp_path: Path) -> None:
    path = tmp_path / "signed.csv"
    rows = "".join(f"a,{at},{-0.001 - 0.001 / at!r}\n" for at in range(1, 21))
    path.write_text("series,compute,reward\n" + rows)
    for command, *arguments in (["fit", "--budget", "40"], ["plan", "--budget", "20"]):
        told = forecurve(command, path, *arguments, "--range", "-1,1")
        assert told.code == 0, told.err
        assert not re.search(r"-0\.0*(?!\d)", told.out), told.out


@pytest.mark.parametrize(("high", "now", "places"), [(1.0, 2, 3), (0.01, 4, 5), (1000.0, 0, 1)])
def test_tables_tell_rewards_as_finely_as_their_range_asks(
    forecurve: Forecurve, tmp_path: Path, high: float, now: int, places: int
) -> None:
    path = _file(tmp_path / "told.csv", 0.0, high)
    told = forecurve("fit", path, "--range", f"0,{high}").out
    last = float(path.read_text().splitlines()[15].split(",")[2])
    assert f" {last:.{now}f} " in told, told
    planned = forecurve("plan", path, "--budget", "120", "--range", f"0,{high}").out
    assert re.search(rf"low .* \d+\.\d{{{places}}} \(", planned), planned
    backtested = forecurve("backtest", path, "--fractions", "0.5", "--range", f"0,{high}").out
    assert not re.search(r" 0\.000( |$)", backtested), backtested


def test_compare(forecurve: Forecurve, tmp_path: Path) -> None:
    a, b = _both(forecurve, tmp_path, "compare", "--control", "high", low=0.0, high=100.0)
    assert b["rope"] == pytest.approx(100 * a["rope"]) == pytest.approx(2.0)
    assert [arm["verdict"] for arm in b["arms"]] == [arm["verdict"] for arm in a["arms"]]


def test_plan(forecurve: Forecurve, tmp_path: Path) -> None:
    a, b = _both(forecurve, tmp_path, "plan", "--budget", "200", low=0.0, high=100.0)
    assert b["delta"] == pytest.approx(100 * a["delta"]) == pytest.approx(1.0)
    assert (b["choice"], b["dominated"], b["settled"]) == (a["choice"], a["dominated"], a["settled"])


def test_backtest(forecurve: Forecurve, tmp_path: Path) -> None:
    arguments = ("--fractions", "0.5", "--baselines", "paper-grid")
    a, b = _both(forecurve, tmp_path, "backtest", *arguments, low=0.0, high=100.0)
    for one, other in zip(a["series"], b["series"], strict=True):
        assert other["predicted"] == pytest.approx(100 * one["predicted"], rel=1e-3)
