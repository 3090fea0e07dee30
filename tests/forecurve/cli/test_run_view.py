"""What `forecurve run show` says of where a run will end."""

from __future__ import annotations

from typing import Any

from forecurve.cli.run_view import describe

RUN: dict[str, Any] = {"id": "run_1", "name": "mine", "status": "running", "compute_unit": "GPU-hours"}


def test_the_end_is_said_with_what_its_interval_rests_on() -> None:
    ending = {"median": 0.76, "lower": 0.74, "upper": 0.78, "calibration": "calibrated on 12 past runs"}
    lines = describe(RUN | {"withheld": False, "ending": ending})
    assert "  ending      0.76 (0.74 to 0.78), calibrated on 12 past runs" in lines


def test_an_interval_has_the_digits_that_it_supports() -> None:
    ceiling = {"median": 0.7604, "lower": 0.7561, "upper": 0.7648}
    assert "  ceiling     0.760 (0.756 to 0.765)" in describe(RUN | {"withheld": False, "ceiling": ceiling})


def test_a_withheld_forecast_is_named_with_its_reason() -> None:
    lines = describe(RUN | {"withheld": True, "misfit": "collapse", "ending": None})
    assert "  ending      withheld: collapse" in lines
    assert "  ceiling     withheld" in lines


def test_without_a_budget_there_is_no_line_of_the_end() -> None:
    assert not [line for line in describe(RUN | {"withheld": False, "ending": None}) if "ending" in line]
