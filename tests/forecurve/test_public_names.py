"""`import forecurve` costs nothing and still offers every public name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import forecurve


def test_importing_forecurve_loads_nothing_heavy() -> None:
    code = "import sys, forecurve; print(sorted({'numpy', 'scipy', 'pydantic', 'httpx', 'typer'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_can_be_used() -> None:
    for name in forecurve.__all__:
        assert getattr(forecurve, name) is not None
        assert name in dir(forecurve)
    curve = forecurve.Curve([1, 2, 3, 4], [0.2, 0.3, 0.35, 0.38])
    advice = forecurve.advise(forecurve.fit(curve), budget=10)
    assert advice.action in {"stop", "continue", "scale", "undecided"}
    assert repr(advice) == f"Advice(action={advice.action!r}, reason={advice.reason!r})"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fits'"):
        forecurve.fits  # noqa: B018 (reading it is the test)


_SCRIPT = """
from typing import Literal

import forecurve

found = forecurve.fit(forecurve.Curve([1, 2, 3, 4], [0.2, 0.3, 0.35, 0.38]))
ceiling: float = found.A.median
action: Literal["stop", "continue", "scale", "undecided"] = forecurve.advise(found, budget=10).action
forecurve.fit(3)
forecurve.log({"loss": 0.5}, step="7")
"""


@pytest.mark.slow
def test_a_type_checker_knows_the_types_of_who_uses_it(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(_SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "script.py"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()
    assert [(line.split(":")[1], line[-len("[arg-type]") :]) for line in said[:-1]] == [
        ("9", "[arg-type]"),
        ("10", "[arg-type]"),
    ]
