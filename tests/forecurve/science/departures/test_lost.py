"""Runs that lost all that they had: clear without any fit."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, advise, fit


@pytest.mark.parametrize(
    ("reward", "since"),
    [
        ([0.16, 0.41, 0.0, 0.0], 1.0),
        ([0.16, 0.41, 0.0, 0.0, 0.0, 0.0], 1.0),
        ([0.16, 0.3, 0.41, 0.01, 0.02], 2.0),
        ([0.16, 0.2, 0.19, 0.22, 0.01, 0.0, 0.02], 3.0),
    ],
)
def test_a_run_that_lost_more_than_it_ever_gained_has_collapsed_however_short(
    reward: list[float], since: float
) -> None:
    found = fit(Curve(range(len(reward)), reward, unit="steps"))
    assert found.misfit == "collapse"
    assert found.misfit_detail is not None
    assert found.misfit_detail.since == pytest.approx(since)
    assert found.misfit_detail.size == pytest.approx(max(reward) - reward[-1], abs=0.03)
    assert found.to_dict(budget=20.0)["at_budget"] is None
    assert found.sentence(budget=20.0).startswith("The pass rate collapsed by ")
    assert advise(found, budget=20.0).action != "scale"


@pytest.mark.parametrize(
    "reward",
    [
        [0.16, 0.41, 0.02],  # one bad evaluation may be just that
        [0.16, 0.41, 0.0, 0.3],
        [0.16, 0.41, 0.12, 0.10],  # lower than it began, by no more than unknown noise
        [0.5, 0.52, 0.53, 0.52],
    ],
)
def test_a_short_run_is_not_called_fallen_for_less(reward: list[float]) -> None:
    assert fit(Curve(range(len(reward)), reward, unit="steps")).misfit is None


def test_the_noise_of_evaluations_says_what_is_far_below_the_start() -> None:
    reward = [0.3, 0.4, 0.2, 0.19]
    assert fit(Curve(range(4), reward, prompts=20, samples=1)).misfit is None
    assert fit(Curve(range(4), reward, prompts=2000, samples=4)).misfit == "collapse"


SWINGS = np.array([0.508, 0.562, 0.548, 0.458, 0.322, 0.35, 0.094, 0.284, 0.296])
"""A recorded run of 500 prompts an evaluation, which swings on after it has fallen."""


@pytest.mark.parametrize("points", [7, 8, 9])
def test_what_is_left_of_a_run_may_swing(points: int) -> None:
    """One of the later evaluations lies less than 4 standard errors below all before the fall."""
    found = fit(Curve(50.0 * np.arange(1, points + 1), SWINGS[:points], prompts=500, samples=1))
    assert (found.misfit, found.withheld) == ("decline", True)
    assert advise(found, budget=1000.0).action == "undecided"


@pytest.mark.parametrize("points", [6, 9])
def test_a_smaller_fall_that_swings_may_be_noise(points: int) -> None:
    """The same with a third of the fall."""
    reward = np.append(SWINGS[:4], 0.458 - (0.458 - SWINGS[4:points]) / 3)
    assert fit(Curve(50.0 * np.arange(1, points + 1), reward, prompts=500, samples=1)).misfit is None
