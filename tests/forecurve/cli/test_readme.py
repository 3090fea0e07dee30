"""What the README shows of a terminal is what the commands print, and its Python runs as it stands there."""

from __future__ import annotations

import ast
import json
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest

from forecurve.client import starting, tracking
from forecurve.curve_files import read_arms

from .conftest import Forecurve

ROOT = Path(__file__).parents[3]


def examples() -> list[tuple[str, str]]:
    """Every `$ forecurve ...` of the README with the lines below it."""
    blocks = re.findall(r"^```\n(\$ .*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    calls = [call for block in blocks for call in re.split(r"^\$ ", block, flags=re.MULTILINE) if call]
    return [(command, shown) for command, _, shown in (call.partition("\n") for call in calls)]


@pytest.mark.parametrize(("command", "shown"), examples(), ids=[command.split()[1] for command, _ in examples()])
def test_the_readme_shows_what_is_printed(
    command: str, shown: str, forecurve: Forecurve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "forecurve"

    result = forecurve(*arguments)

    assert result.code == 0, result.err
    assert [line.rstrip() for line in result.out.rstrip().splitlines()] == shown.rstrip().splitlines()


def test_the_readme_has_examples() -> None:
    assert {command.split()[1] for command, _ in examples()} == {"fit", "compare", "plan"}


def python_examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)


def test_the_python_of_forecasts_runs_as_it_stands() -> None:
    """With the sweep of the docs for the names that the README leaves to its reader."""
    (text,) = (one for one in python_examples() if "from forecurve import" in one)
    arms = read_arms(ROOT / "docs/science/example.csv")
    curve, curve_b = arms["control"]
    names: dict[str, Any] = {
        "curve": curve,
        "compute": curve.compute,
        "reward": curve.reward,
        "finished": [one for name, curves in arms.items() if name != "control" for one in curves],
        "later_compute": [6_400, 6_600],
        "later_reward": [0.572, 0.574],
        "curve_a": curve,
        "curve_b": curve_b,
        "curve_c": arms["pipeline"][0],
    }
    said: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for line in ast.parse(text).body:
            if isinstance(line, ast.Expr):
                said[ast.unparse(line)] = eval(ast.unparse(line), names)
            else:
                exec(ast.unparse(line), names)

    for shown, value in said.items():
        bodies = [one.to_dict() for one in (value if isinstance(value, tuple) else (value,))]
        assert json.dumps(bodies, allow_nan=False), shown
    assert names["forecast"].curve.now == 6_200
    assert {call.partition("(")[0] for call in said} >= {"advise", "compare", "plan", "rank", "watch"}
    assert [one.action for call, one in said.items() if call.startswith("advise")] == ["continue"] * 2
    assert said["watch(frozen, later_compute, later_reward)"].level is None


def test_the_python_of_a_trainer_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = (one for one in python_examples() if "forecurve.init" in one)
    monkeypatch.setenv("FORECURVE_URL", "http://127.0.0.1:9")  # nobody is there: training goes on
    monkeypatch.setattr(starting, "AWAY_S", 0.0)
    monkeypatch.setattr(tracking, "_current", None)

    exec(text, {"successes_per_prompt": [16, 0, 8, 4]})

    (queue,) = (tmp_path / ".forecurve").glob("*/*/queue.jsonl")
    (evaluation,) = json.loads(queue.read_text().splitlines()[0])["body"]["evaluations"]
    assert (evaluation["step"], evaluation["compute"], evaluation["counts"]) == (100, 12.5, [16, 0, 8, 4])
