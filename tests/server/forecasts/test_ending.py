"""What the expected end of a run rests on, in words that a newcomer reads."""

from __future__ import annotations

from typing import Any

import pytest

from server.forecasts.ending import ending_of, ending_words


def told(runs: int = 0, prior: dict[str, Any] | None = None, half: float = 0.02, **conformal: int) -> dict[str, Any]:
    """The summary of a forecast whose end is told by so many past runs, with its interval so wide to either side."""
    return {
        "misfit": None,
        "prior": prior,
        "at_budget": {
            "compute": 40.0,
            "curve": {"median": 0.62, "lower": 0.61, "upper": 0.63},
            "calibrated": {"median": 0.62, "lower": 0.62 - half, "upper": 0.62 + half},
            "conformal": {"runs": runs} | conformal,
        },
    }


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (told(half=0.015), "without past runs"),
        (told(prior={"name": "2 siblings", "runs": ["run_1", "run_2"]}), "with 2 past runs"),
        (told(prior={"name": "1 sibling", "runs": ["run_1"]}), "with 1 past run"),
        (told(prior={"name": "2 siblings"}), "with past runs"),
        (told(prior={"name": "1 sibling", "runs": ["run_1"], "ahead": 1}), "with 1 run as far along"),
        (told(prior={"name": "3 siblings", "runs": ["run_1"] * 3, "ahead": 3}), "with 3 runs as far along"),
        (told(prior={"name": "3 siblings", "runs": ["run_1"] * 3, "ahead": 2}), "with 1 past run and 2 as far along"),
        (told(runs=12, ahead=2), "calibrated on 12 past runs and 2 of its seeds further along"),
        (told(runs=5, prior={"name": "5 siblings", "runs": ["run_1"] * 5}), "adjusted by 5 past runs"),
        (told(runs=12), "calibrated on 12 past runs"),
        (told(runs=12, seeds=2), "calibrated on 12 past runs, 2 of its arm"),
    ],
)
def test_what_the_interval_rests_on_is_said_in_plain_words(summary: dict[str, Any], words: str) -> None:
    ending = ending_of(summary)
    assert ending is not None
    assert ending.calibration == words
    assert f"(90 %, {words}: 0.60" in ending_words(summary, "CPU-seconds", 10.0)


def test_an_interval_far_wider_than_the_curves_says_that_past_runs_are_missing() -> None:
    assert ending_words(told(half=0.09), "CPU-seconds", 10.0) == (
        "Expected to end at 0.62 (90 %, wider without past runs: 0.53 to 0.71) when 40 CPU-seconds are spent."
    )
    assert "(90 %, calibrated on 12 past runs: " in ending_words(told(runs=12, half=0.09), "CPU-seconds", 10.0)
