"""What the reference pages show of `--json` is what the commands print, and every key is told there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Forecurve

ROOT = Path(__file__).parents[3]
EXAMPLE, SWEEP = "docs/science/example.csv", "docs/guides/testbed-sweep.csv"
CALLS = {
    "fit": (EXAMPLE, "--budget", "16000", "--target", "0.6"),
    "backtest": (SWEEP, "--unit", "steps", "--fractions", "0.25"),
    "compare": (EXAMPLE, "--control", "control"),
    "plan": (EXAMPLE, "--budget", "60000", "--horizon", "16000"),
}


def _page(command: str) -> str:
    return (ROOT / "docs" / "reference" / f"{command}-json.md").read_text()


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(inner)


@pytest.mark.parametrize("command", CALLS)
def test_every_key_is_told(command: str, forecurve: Forecurve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    printed, page = json.loads(forecurve(command, *CALLS[command], "--json").out), _page(command)
    told = set(re.findall(r"`(\w+)`", page)) | set(re.findall(r'"(\w+)":', page))
    assert set(_keys(printed)) - told == set()


def test_the_example_of_fit_is_what_is_printed(forecurve: Forecurve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (shown,) = re.findall(r"^```json\n(.*?)^```$", _page("fit"), re.DOTALL | re.MULTILINE)
    printed = json.loads(forecurve("fit", EXAMPLE, "--series", "control", "--budget", "16000", "--json").out)
    (said,) = json.loads(shown, parse_float=_Written)["series"]
    now = next(one for one in printed["series"] if one["series"] == said["series"])
    for body in (said, now):
        del body["seconds"]
    assert _like(now, said) == said


class _Written(float):
    """A number with the digits that it is shown with."""

    def __new__(cls, text: str) -> _Written:
        made = super().__new__(cls, text)
        made.places = len(text.partition(".")[2])
        return made

    places: int


def _like(value: Any, shown: Any) -> Any:
    """The same with as many digits as are shown."""
    if isinstance(shown, dict):
        assert list(value) == list(shown)
        return {key: _like(value[key], shown[key]) for key in shown}
    if isinstance(shown, _Written) and shown >= 1000:
        return float(f"{value:.3g}")
    return round(value, shown.places) if isinstance(shown, _Written) else value
