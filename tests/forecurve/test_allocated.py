"""What becomes of a run whose sweep shares its compute, in words."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from forecurve import allocated
from forecurve.allocated import becomes

RUN: dict[str, Any] = {
    "status": "running",
    "desired_state": "run",
    "allocated": True,
    "goes_to": 24.0,
    "last_compute": 8.0,
}
PAUSED = {"status": "paused", "desired_state": "pause", "goes_to": None}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "trains to 24 h"),
        ({"status": "queued"}, "waits to train to 24 h"),
        ({"status": "lost", "goes_to": 0.0}, "waits to train until it can be forecast"),
        ({"status": "suspect", "goes_to": 0.0}, "trains until it can be forecast"),
        (PAUSED, "held at 8 h"),
        (PAUSED | {"status": "pausing"}, "is being held"),
        (PAUSED | {"last_compute": None}, "held before it began"),
        (PAUSED | {"allocated": False}, "its user's, paused"),
        ({"allocated": False, "goes_to": None}, "its user's, running"),
        (PAUSED | {"desired_state": "stop"}, "stopping"),
        ({"desired_state": "cancel", "allocated": False}, "stopping"),
        ({"status": "stopped", "desired_state": "stop"}, "over"),
        ({"status": "succeeded", "allocated": False}, "over"),
        ({"status": "failed"}, "failed"),
    ],
)
def test_it_is_said_in_a_few_words(changed: dict[str, Any], said: str) -> None:
    assert becomes("{:g} h".format, **(RUN | changed)) == said


def test_the_examples_hold() -> None:
    assert doctest.testmod(allocated).failed == 0
