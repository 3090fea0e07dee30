"""What `forecurve run show` says of where a run will end, and how `run watch` follows it."""

from __future__ import annotations

from typing import Any

import pytest

from forecurve.cli.run_view import describe, follow
from forecurve.client import ApiError

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


class _Away:
    """A service that does not answer at some calls."""

    def __init__(self, *answers: dict[str, Any] | None):
        self.answers = list(answers)

    def run(self, run_id: str) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if answer is None:
            raise ApiError("no answer", code="unreachable")
        return {"name": run_id, "compute_unit": "steps", "desired_state": "run", **answer}


def test_a_run_is_followed_over_an_outage_but_a_wrong_address_is_said_at_once() -> None:
    with pytest.raises(ApiError, match="no answer"):
        follow(_Away(None, {"status": "succeeded"}), "run_a", every_s=0, as_json=True)  # type: ignore[arg-type]
    away = _Away({"status": "running"}, None, None, {"status": "succeeded"})
    assert follow(away, "run_a", every_s=0, as_json=True) == "succeeded"  # type: ignore[arg-type]
    assert away.answers == []
