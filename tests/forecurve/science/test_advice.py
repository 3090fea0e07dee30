"""Advice: each rule speaks when it should, with figures that can be checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from forecurve.science import advise, fit
from forecurve.science.advice import ACTIONS

from .synthetic import noisy_curve

EARLY = fit(noisy_curve(0, last=1000, points=8))
RISING = fit(noisy_curve(0, last=4500, points=40))
FINISHED = fit(noisy_curve(0, last=16000, points=90))


def test_a_run_with_nothing_left_to_gain_is_stopped() -> None:
    advice = advise(FINISHED, budget=20000)
    assert advice.action == "stop"
    assert advice.numbers["p_gain_below_delta"] >= 0.9
    assert "Only +0.00" in advice.reason


def test_a_run_that_still_gains_goes_on() -> None:
    advice = advise(RISING, budget=9000)
    assert advice.action in {"continue", "scale"}
    assert advice.numbers["p_gain_below_delta"] < 0.1


def test_a_run_that_climbs_beyond_its_budget_is_scaled() -> None:
    advice = advise(RISING, budget=5000)
    assert advice.action == "scale"
    assert advice.numbers["p_doubling_gains_delta"] >= 0.8


def test_an_unidentified_ceiling_gives_the_compute_at_which_to_decide() -> None:
    advice = advise(EARLY, budget=16000)
    assert advice.action == "undecided"
    assert "keep going until" in advice.reason
    assert 1000 < advice.numbers["decide_at"] < 16000


def test_when_the_budget_is_spent_the_question_is_whether_more_pays() -> None:
    assert advise(FINISHED, now=16000, budget=16000).action == "stop"
    assert advise(RISING, now=4500, budget=4500).action == "scale"
    assert advise(RISING, now=4500, budget=4000).action == "scale"


def test_a_price_above_the_gain_stops() -> None:
    cheap = advise(RISING, budget=9000, price=1e-9)
    dear = advise(RISING, budget=9000, price=1.0)
    assert cheap.action != "stop"
    assert dear.action == "stop"
    assert "price" in dear.reason


def test_targets_stop_when_reached_or_out_of_reach() -> None:
    assert "reached" in advise(FINISHED, budget=20000, target=0.4).reason
    lost = advise(RISING, budget=9000, target=0.95)
    assert lost.action == "stop"
    assert "never reached" in lost.reason
    assert advise(RISING, budget=9000, target=0.55).numbers["p_target_at_budget"] > 0.9


def test_the_numbers_agree_with_the_forecast() -> None:
    numbers = advise(RISING, budget=9000, delta=0.02).numbers
    draws = RISING.all_draws
    gain = draws.reward_at(9000)[0] - draws.reward_at(4500)[0]
    assert numbers["expected_gain"] == pytest.approx(gain.mean())
    assert numbers["gain"]["lower"] == pytest.approx(np.quantile(gain, 0.05))
    assert numbers["p_gain_below_delta"] == pytest.approx((gain < 0.02).mean())
    assert numbers["gain_per_unit"] == pytest.approx(gain.mean() / 4500)
    assert numbers["gain_per_1k"] == pytest.approx(1000 * gain.mean() / 4500)
    beyond = draws.reward_at(18000)[0] - draws.reward_at(9000)[0]
    assert numbers["gain_per_1k_beyond"] == pytest.approx(1000 * beyond.mean() / 9000)
    assert numbers["regret_stop"] == pytest.approx(np.maximum(gain - 0.02, 0).mean())


def test_every_advice_is_json_with_a_known_action() -> None:
    for forecast in (EARLY, RISING, FINISHED):
        for budget in (None, 500.0, 9000.0):
            advice = advise(forecast, budget=budget, target=0.99)
            assert advice.action in ACTIONS
            json.dumps(advice.to_dict(), allow_nan=False)


def test_impossible_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="delta"):
        advise(RISING, budget=9000, delta=0.0)
    with pytest.raises(ValueError, match="budget"):
        advise(RISING, budget=-1.0)
