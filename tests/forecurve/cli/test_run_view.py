"""What `forecurve run show` says of where a run will end, and how `run watch` follows it."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forecurve.cli.asking.patience import wait
from forecurve.cli.showing.output import compute, print_table
from forecurve.cli.showing.run_rows import RUN_COLUMNS, run_row
from forecurve.cli.showing.runs import describe, follow
from forecurve.client import ApiError

RUN: dict[str, Any] = {"id": "run_1", "name": "mine", "status": "running", "compute_unit": "GPU-hours"}


def test_the_end_is_said_with_what_its_interval_rests_on() -> None:
    ending = {"median": 0.76, "lower": 0.74, "upper": 0.78, "calibration": "calibrated on 12 past runs"}
    lines = describe(RUN | {"withheld": False, "ending": ending})
    assert "  ending      0.76 (0.74 to 0.78), calibrated on 12 past runs" in lines


def test_an_interval_has_the_digits_that_it_supports() -> None:
    ceiling = {"median": 0.7604, "lower": 0.7561, "upper": 0.7648}
    assert "  ceiling     0.760 (0.756 to 0.765)" in describe(RUN | {"withheld": False, "ceiling": ceiling})
    metric = {"median": 1150.74, "lower": 1145.2, "upper": 1156.3}
    assert "  ceiling     1,150.7 (1,145.2 to 1,156.3)" in describe(RUN | {"withheld": False, "ceiling": metric})


def test_a_run_that_fell_and_ended_so_says_it_beside_its_state() -> None:
    assert "  state       succeeded (fell)" in describe(
        RUN | {"withheld": False, "status": "succeeded", "fell_at": 31.0}
    )
    assert "  state       succeeded" in describe(RUN | {"withheld": False, "status": "succeeded", "fell_at": None})


def test_of_a_run_that_failed_on_the_cluster_it_is_said_where_its_log_is() -> None:
    failed = RUN | {"withheld": False, "status": "failed", "executor": "ray", "attempt": 3}
    assert "  log         forecurve run logs run_1" in describe(failed)
    for other in ({"executor": "external"}, {"attempt": 0}, {"status": "running"}):
        assert not [line for line in describe(failed | other) if "run logs" in line]


def test_a_withheld_forecast_is_named_with_its_reason() -> None:
    lines = describe(RUN | {"withheld": True, "misfit": "collapse", "ending": None})
    assert "  ending      withheld: collapse" in lines
    assert "  ceiling     withheld" in lines


def test_before_the_first_evaluation_nothing_is_made_up() -> None:
    lines = describe(RUN | {"withheld": False, "last_step": None, "budget_compute": None})
    assert "  pass rate   no evaluation yet" in lines
    assert not [line for line in lines if "None" in line or "at budget" in line]
    told = {"withheld": False, "last_reward": 0.5, "last_compute": 12.5, "last_step": 100, "status": "failed"}
    assert "  pass rate   0.50 at 12.5 GPU-hours, step 100" in describe(RUN | told)
    assert "  pass rate   no evaluation" in describe(RUN | {"withheld": False, "status": "failed"})


class _Answers:
    """A service that knows one run."""

    def __init__(self, run: dict[str, Any]) -> None:
        self._run = run

    def run(self, run_id: str) -> dict[str, Any]:
        return self._run


@pytest.mark.parametrize(("seconds", "said"), [(5405, "90 min left"), (-3, "any moment")])
def test_how_long_it_is_until_the_budget_is_spent_is_said(
    seconds: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    when = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    run = RUN | {"withheld": False, "budget_compute": 60.0, "budget_spent_at": when}
    assert f"  budget      60 GPU-hours, {said}" in describe(run)
    assert "  budget      60 GPU-hours" in describe(run | {"budget_spent_at": None})
    follow(_Answers(run | {"status": "stopped"}), "run_1", every_s=0, as_json=False)  # type: ignore[arg-type]
    assert said in capsys.readouterr().out


def test_a_budget_has_all_its_digits() -> None:
    end = {"median": 0.76, "lower": 0.74, "upper": 0.78}
    run = RUN | {"withheld": False, "at_budget": end, "budget_compute": 1_234_567.5}
    assert "  at budget   0.76 (0.74 to 0.78) at 1,234,567.5 GPU-hours" in describe(run)
    listed = run_row(run | {"last_compute": 1204.0})
    assert listed[RUN_COLUMNS.index("compute")] == "1,200 / 1,234,567.5 GPU-hours"


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


def test_what_nobody_reads_any_more_is_not_followed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as printed:
        monkeypatch.setattr(sys, "stdout", printed)
        began = time.monotonic()
        wait(0.05)
        assert time.monotonic() - began >= 0.05
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            wait(60)
        assert time.monotonic() - began < 10


def test_a_reason_of_several_lines_stays_below_itself_and_obeys_no_terminal() -> None:
    lines = describe(RUN | {"status": "failed", "reason": "out of memory\n\x1b[31mTraceback", "withheld": False})
    at = lines.index("  state       failed: out of memory")
    assert lines[at + 1] == "              \N{REPLACEMENT CHARACTER}[31mTraceback"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.4123, "0.412"), (12.55, "12.6"), (2000.0, "2,000"), (123456.0, "123,000"), (3.2e25, "3.2e+25"), (0, "0")],
)
def test_compute_has_three_digits_and_an_exponent_only_where_it_helps(value: float, text: str) -> None:
    assert compute(value, "GPU-hours") == f"{text} GPU-hours"


def test_a_cell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["why"], [["out of memory\nTraceback\x1b[31m"]])
    assert capsys.readouterr().out == "why\nout of memory Traceback\N{REPLACEMENT CHARACTER}[31m\n"
