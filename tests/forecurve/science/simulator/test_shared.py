"""Sweeps on one budget: how long they take, what they spend, and whom they choose."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from forecurve.science import Curve
from forecurve.science.simulator import SharedReplay, Sweep, Track, replay_shared, rounds_of
from forecurve.science.simulator.shared import FIRST

from ..synthetic import sigmoid
from .crossing import COMPUTE, CROSSING, GAP, HORIZON


@cache
def whole(places: int) -> SharedReplay:
    """The crossing sweep with a budget of its full cost."""
    return replay_shared(CROSSING, CROSSING.full_cost, places)


def test_the_later_winner_is_found_and_not_all_is_spent() -> None:
    found = whole(2)
    assert found.chosen == 1
    assert found.regret == 0.0
    assert found.compute < 0.6 * CROSSING.full_cost


def test_one_place_takes_as_long_as_its_compute_and_more_places_less() -> None:
    one, four = (whole(places) for places in (1, 4))
    assert one.time == pytest.approx(one.compute / HORIZON)
    assert four.compute / 4 / HORIZON < four.time < one.time


def test_a_launch_is_counted_where_an_arm_is_let_on_and_not_where_it_goes_on() -> None:
    alone = Sweep(CROSSING.tracks[:1], HORIZON)
    assert replay_shared(alone, HORIZON, 1).launches == 1
    in_turn, together = (whole(places) for places in (1, 4))
    assert len(CROSSING.tracks) < together.launches < in_turn.launches  # in one place they take turns


def test_first_all_arms_train_until_they_can_be_forecast() -> None:
    for places in (1, 2, 4):
        moments = rounds_of(CROSSING, CROSSING.full_cost, places)
        planned = next(moment for moment in moments if moment.found.plan is not None)
        assert CROSSING.full_cost - planned.left == 4 * (FIRST - 1) * GAP
        assert planned.clock == pytest.approx(4 / places * (FIRST - 1) * GAP / HORIZON)


def test_a_small_budget_is_kept_but_for_an_evaluation_a_place() -> None:
    found = replay_shared(CROSSING, 9000.0, 4)
    assert found.over == "the budget is spent"
    assert found.chosen is not None
    assert found.reached < 0.5
    assert 9000.0 <= found.compute <= 9000.0 + 4 * GAP


def test_a_budget_that_forecasts_nothing_leaves_the_choice_to_chance() -> None:
    found = replay_shared(CROSSING, 2 * GAP, 1)
    finals = np.array([track.final for track in CROSSING.tracks])
    assert found.chosen is None
    assert found.regret == pytest.approx(finals.max() - finals.mean())
    assert (found.compute, found.reached) == (2 * GAP, 0.0)


def test_an_arm_that_gains_to_the_last_goes_to_its_end() -> None:
    sparse = Curve(COMPUTE[::4], sigmoid(COMPUTE[::4], 0.9, 1.2, 15_000.0, 0.2), name="slow", prompts=1000, samples=16)
    found = replay_shared(Sweep((Track(sparse, float(sparse.reward[-1])),), HORIZON), HORIZON, 1)
    assert (found.chosen, found.reached, found.compute) == (0, 1.0, HORIZON)
    assert found.time == pytest.approx(1.0)


def test_a_choice_that_surely_gains_nothing_more_is_not_run_on() -> None:
    found = whole(4)
    assert 0.5 < found.reached < 1
    assert found.over.startswith("tortoise is not run on, as")
