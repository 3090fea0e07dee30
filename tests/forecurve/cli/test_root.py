"""The command itself: quick to start, plain in its errors."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from .conftest import Forecurve, spawn

HEAVY = ("torch", "ray", "numpy", "scipy", "pydantic", "httpx", "sqlalchemy", "fastapi", "celery", "plotly", "psutil")


def test_help_names_every_command_and_imports_nothing_heavy() -> None:
    probe = (
        "import sys; from forecurve.cli import main; code = main(['--help']);"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules]); sys.exit(code)"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)

    assert ended.returncode == 0
    commands = ["demo", "up", "down", "status", "login", "fit", "recipe", "sweep", "run", "alerts", "sync"]
    commands += ["advice", "alert", "channel", "token"]
    assert [name for name in commands if f"\n  {name} " not in ended.stdout] == []
    assert "HEAVY []" in ended.stdout


def test_a_command_line_imports_no_other_command_than_its_own() -> None:
    probe = "import sys; from forecurve.cli import main; code = main(['channel', '--help']); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)

    there = {name for name in ended.stdout.split() if name.startswith("forecurve.cli.commands.")}
    assert there == {"forecurve.cli.commands.channels"}


def test_the_version_is_the_packages(forecurve: Forecurve) -> None:
    assert forecurve("--version").out.strip() == version("forecurve")


def test_a_wrong_option_is_one_line_with_the_way_out_and_exit_2() -> None:
    ended = spawn("run", "list", "--bogus")

    assert ended.returncode == 2
    assert ended.stderr.strip() == "forecurve: No such option: --bogus (see `forecurve run list --help`)"


@pytest.mark.parametrize("command", [("--version",), ("recipe", "presets", "--json")])
def test_a_reader_who_has_enough_hears_nothing_more(command: tuple[str, ...]) -> None:
    """Also of what fits into a buffer, and is written when the process ends."""
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    arguments = [sys.executable, "-m", "forecurve", *command]
    ended = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, env=buffered, check=False, timeout=60)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_without_a_service_a_command_says_how_to_get_one(forecurve: Forecurve) -> None:
    result = forecurve("run", "list")

    assert result.code == 1
    assert "`forecurve up`" in result.err
    assert "--url" in result.err


def test_a_service_that_does_not_answer_is_a_failure_not_bad_input(forecurve: Forecurve) -> None:
    result = forecurve("run", "list", "--url", "http://127.0.0.1:9", "--token", "t")

    assert result.code == 1
    assert "no answer from http://127.0.0.1:9" in result.err


def test_a_url_without_a_token_asks_for_one(forecurve: Forecurve) -> None:
    result = forecurve("run", "list", "--url", "http://127.0.0.1:9")

    assert result.code == 1
    assert "--token" in result.err


def test_a_terminal_that_is_not_utf8_makes_no_command_fail(tmp_path: Path) -> None:
    file = tmp_path / "curves.csv"
    rows = [f"実験,{at},{0.2 + 0.02 * at}" for at in range(1, 12)]
    file.write_text("\n".join(["series,compute,reward", *rows]), encoding="utf-8")
    shown = spawn("fit", file, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\\u5b9f\\u9a13" in shown.stdout


@pytest.mark.parametrize("command", [("run", "show"), ("run", "rename", "run_a")])
def test_an_argument_that_is_no_text_is_bad_input(forecurve: Forecurve, service: str, command: tuple[str, ...]) -> None:
    said = forecurve(*command, "\udcff")
    assert said.code == 2
    assert "must be UTF-8" in said.err
