"""What the README shows of a terminal is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

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
