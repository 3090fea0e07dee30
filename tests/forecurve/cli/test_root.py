"""The command itself: quick to start, plain in its errors."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

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


def test_the_version_is_the_packages(forecurve: Forecurve) -> None:
    assert forecurve("--version").out.strip() == version("forecurve")


def test_a_wrong_option_is_one_line_with_the_way_out_and_exit_2() -> None:
    ended = spawn("run", "list", "--bogus")

    assert ended.returncode == 2
    assert ended.stderr.strip() == "forecurve: No such option: --bogus (see `forecurve run list --help`)"


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
