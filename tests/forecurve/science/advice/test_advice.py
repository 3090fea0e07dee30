"""Advice: each rule speaks when it should, with figures that can be checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from forecurve.science import AdviceError, Curve, Prior, advise, fit, predict_ending
from forecurve.science.advice.case import case_of
from forecurve.science.advice.growth import growth

from ..synthetic import noisy_curve, sigmoid

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


def test_a_run_that_probably_gains_too_little_says_why_it_goes_on_all_the_same() -> None:
    rng, compute = np.random.default_rng(1), np.linspace(0.5, 30, 11)
    reward = sigmoid(compute, 0.4, 3.0, 6.0, 0.1) + 0.02 * rng.normal(size=11)
    bent = fit(Curve(compute, reward, unit="CPU-seconds"))
    advice = advise(bent, budget=60)
    assert advice.action == "continue"
    assert 0.5 < advice.numbers["p_gain_below_delta"] < 0.9
    assert advice.reason.endswith(" sure that it is below 0.01; a stop takes 90 %.")
    sure = advice.reason.split(", ")[1].split(" sure")[0]
    assert f"; less than +0.01 is left ({sure} sure, a stop takes 90 %): continue." in bent.sentence(budget=60)
    rising = fit(noisy_curve(5, last=12000, points=14, sd=0.02))
    assert "more would buy +0.01, the budget less (" in rising.sentence(budget=16000)


def test_an_unidentified_ceiling_gives_the_compute_at_which_to_decide() -> None:
    advice = advise(EARLY, budget=16000)
    assert advice.action == "undecided"
    assert "keep going until" in advice.reason
    assert 1000 < advice.numbers["decide_at"] < 16000


def test_when_the_budget_is_spent_the_question_is_whether_more_pays() -> None:
    assert advise(FINISHED, now=16000, budget=16000).action == "stop"
    assert advise(RISING, now=4500, budget=4500).action == "scale"
    assert advise(RISING, now=4500, budget=4000).action == "scale"


@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_is_to_be_scaled_is_not_stopped_a_moment_before(seed: int) -> None:
    """Little is left to gain where little of the budget is; that is no reason to stop what is worth twice as much."""
    climbing = noisy_curve(seed, last=6000, points=60)
    said = [advise(fit(climbing.part(slice(0, size))), budget=6000).action for size in range(climbing.points - 5, 61)]
    assert set(said) == {"scale"}
    assert said[-1] == advise(fit(climbing), now=6000, budget=6000).action


def test_a_stop_of_a_run_that_is_worth_twice_the_budget_says_so() -> None:
    climbing = fit(noisy_curve(0, last=4500, points=40))
    early = advise(climbing, budget=5050, delta=0.03)
    assert early.action == "stop"
    assert early.numbers["p_doubling_gains_delta"] >= 0.8
    assert "; twice as much would buy +0." in early.reason
    assert advise(climbing, budget=4950, delta=0.03).action == "scale"  # less than a tenth of it is left
    clear = advise(climbing, budget=5100, delta=0.02)  # twice as much buys .057
    assert clear.numbers["p_gain_below_delta"] >= 0.9
    assert clear.action == "scale"


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
    assert "its curve never reaches it" in lost.reason
    assert advise(RISING, budget=9000, target=0.5).numbers["target_reach"]["p_by_budget"] > 0.9


def test_when_a_target_is_reached_is_what_the_forecast_says_of_it() -> None:
    """Also where the budget is spent; without one nothing is said of it."""
    for budget in (9000, 4000, None):
        reach = advise(RISING, now=4500, budget=budget, target=0.5).numbers["target_reach"]
        assert reach == RISING.compute_to_reach(0.5, budget).to_dict()
        assert (reach["p_by_budget"] is None) == (budget is None)


def test_what_lies_beyond_a_budget_is_told_per_unit_of_the_compute_that_it_takes() -> None:
    """Without a budget, and with a spent one, that is from now to twice as much."""
    for budget in (None, 4000):
        numbers = advise(RISING, now=4500, budget=budget).numbers
        assert numbers["gain_per_1k_beyond"] == pytest.approx(numbers["gain_per_1k"])


def test_the_numbers_agree_with_the_forecast() -> None:
    numbers = advise(RISING, budget=9000, delta=0.02).numbers
    assert numbers["gain_from"] == "forecast"
    end, level = predict_ending(RISING, 9000), np.median(RISING.all_draws.reward_at(4500))
    for side in ("median", "lower", "upper"):  # that of evaluations to come knows their noise too
        assert level + numbers["gain"][side] == pytest.approx(getattr(end, side), abs=0.01)
    mean, p_small = numbers["expected_gain"], numbers["p_gain_below_delta"]
    assert numbers["gain_per_unit"] == pytest.approx(mean / 4500)
    assert numbers["gain_per_1k"] == pytest.approx(1000 * mean / 4500)
    assert numbers["regret_continue"] == pytest.approx(4500 * p_small)
    assert mean - 0.02 < numbers["regret_stop"] < mean
    draws = RISING.all_draws
    beyond = draws.reward_at(18000)[0] - draws.reward_at(9000)[0]
    assert numbers["expected_gain_beyond"] == pytest.approx(beyond.mean())
    assert numbers["gain_per_1k_beyond"] == pytest.approx(1000 * beyond.mean() / 9000)


def test_of_a_gain_that_is_surely_small_the_curve_tells_what_the_stop_rests_on() -> None:
    advice = advise(FINISHED, now=16000, budget=20000)
    numbers, draws = advice.numbers, FINISHED.all_draws
    assert (advice.action, numbers["gain_from"]) == ("stop", "curve")
    gain = draws.reward_at(20000)[0] - draws.reward_at(16000)[0]
    assert numbers["expected_gain"] == pytest.approx(gain.mean())
    assert numbers["gain"]["lower"] == pytest.approx(np.quantile(gain, 0.05))
    assert numbers["p_gain_below_delta"] == pytest.approx((gain < 0.01).mean())
    assert numbers["p_gain_below_delta"] >= 0.9
    assert numbers["regret_stop"] == pytest.approx(np.maximum(gain - 0.01, 0).mean())


def test_a_gain_is_said_to_be_small_with_90_percent_only_where_a_stop_may_rest_on_it() -> None:
    """Past runs may tell more narrowly than the curve: what is said then stays below what a stop takes, or is it."""
    for sd in (0.003, 0.01, 0.03):
        for seed in range(4):
            found = fit(noisy_curve(seed, last=12000, points=14, sd=sd))
            case = case_of(found, None, 16000.0, None, None, None, None)
            assert not (case.by_forecast and max(case.p_small, case.p_told_small) >= 0.9)


def test_every_advice_is_json_with_a_known_action() -> None:
    for forecast in (EARLY, RISING, FINISHED):
        for budget in (None, 500.0, 9000.0):
            advice = advise(forecast, budget=budget, target=0.99)
            assert advice.action in ("stop", "continue", "scale", "undecided")
            json.dumps(advice.to_dict(), allow_nan=False)


# --- falls, breaks and runs that never moved ---

FELL_AT = 4000.0


def _fallen(last: float, recovery: float = np.inf, seed: int = 0) -> Curve:
    """A run of 200 GPU-hours an evaluation that falls to .25 and, from `recovery` on, grows again."""
    compute = np.arange(0.0, last + 1, 200.0)
    healthy = sigmoid(compute, 0.61, 1.9, 2500.0, 0.2)
    back = np.where(compute > recovery, 0.35 * (1 - np.exp(-(compute - recovery) / 1000)), 0.0)
    truth = np.where(compute > FELL_AT, 0.25 + back, healthy)
    reward = truth + np.random.default_rng(seed).normal(0, 0.0035, len(compute))
    return Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16, unit="GPU-hours")


def test_a_fall_is_no_reason_to_stop_until_nothing_new_is_likely_to_begin() -> None:
    budget = 10_000.0
    halfway, late = (advise(fit(_fallen(last)), budget=budget) for last in (7000.0, 9600.0))
    assert halfway.action == "undecided"
    assert "checkpoint before it" in halfway.reason
    since = halfway.numbers["since"]
    assert since == pytest.approx(FELL_AT, abs=400)
    assert halfway.numbers["p_stays"] == pytest.approx((7000 - since) / (budget - since))
    assert halfway.numbers["decide_at"] == pytest.approx(since + 0.9 * (budget - since))
    assert late.action == "stop"
    assert late.numbers["p_stays"] >= 0.9


def test_the_advice_on_a_fall_changes_at_the_compute_that_was_named() -> None:
    budget = 10_000.0
    when = advise(fit(_fallen(7000.0)), budget=budget).numbers["decide_at"]
    for compute in np.arange(8000.0, budget, 200.0):
        expected = "stop" if compute >= when else "undecided"
        assert advise(fit(_fallen(float(compute))), budget=budget).action == expected


def test_a_recovery_under_way_is_not_stopped_however_late() -> None:
    recovering = fit(_fallen(9800.0, recovery=9000.0))
    assert recovering.misfit_detail is not None
    assert recovering.misfit_detail.fallen
    advice = advise(recovering, budget=10_300.0)
    assert advice.numbers["p_stays"] >= 0.9
    assert advice.action == "undecided"
    assert advice.numbers["expected_gain"] > 0.01


def test_a_fallen_run_has_no_budget_left_to_recover_in() -> None:
    advice = advise(fit(_fallen(7000.0)), budget=7000.0)
    assert advice.action == "stop"
    assert "budget is spent" in advice.reason


def test_a_stop_for_the_target_names_it_where_more_is_left_to_gain() -> None:
    run = fit(noisy_curve(0, last=6000, points=30))
    reached = float(run.curve.reward[-1]) - 0.05
    assert advise(run, budget=16_000.0).action != "stop"
    assert f": stop, by its target of {reached:.10g}." in run.sentence(budget=16_000.0, target=reached)
    assert "target" not in run.sentence(budget=16_000.0)


def test_where_the_budget_is_spent_twice_the_compute_is_told_in_two_digits() -> None:
    run = noisy_curve(0, last=4024.69134, points=12)
    advice = advise(fit(run), budget=run.now)
    assert "budget is spent" in advice.reason
    assert "to 8,000 " in f"{advice.reason} {fit(run).sentence(budget=run.now)}"


def test_gains_after_a_fall_are_those_of_the_evaluations_since() -> None:
    """The same evaluations, given as a run that begins where the fall ended, have the same forecast."""
    run = _fallen(9000.0, recovery=6000.0)
    advice = advise(fit(run), budget=10_000.0)
    since = advice.numbers["since"]
    later = run.compute > since + 1.0
    alone = Curve(run.compute[later] - since, run.reward[later], prompts=1000, samples=16, unit="GPU-hours")
    _, gains = growth(fit(alone), 9000 - since, np.array([10_000 - since]))
    assert advice.numbers["expected_gain"] == pytest.approx(gains[0].mean())
    left = 0.35 * (np.exp(-3) - np.exp(-4))
    assert advice.numbers["expected_gain"] == pytest.approx(left, abs=0.01)  # an exponential, which no law here is


@pytest.mark.parametrize(("seen", "action"), [(20, "undecided"), (35, "undecided"), (38, "stop"), (41, "stop")])
def test_a_run_pinned_at_0_is_stopped_when_a_tenth_of_its_budget_is_left(seen: int, action: str) -> None:
    compute = np.arange(1.0, seen + 1)
    advice = advise(fit(Curve(compute, np.zeros(seen), prompts=500, samples=4)), budget=41.0)
    assert advice.action == action
    assert ("the budget is spent" in advice.reason) == (seen == 41)


def test_a_run_that_has_just_left_0_goes_on() -> None:
    reward = np.zeros(38)
    reward[-1] = 0.007
    begun = fit(Curve(np.arange(1.0, 39), reward, prompts=500, samples=4))
    for budget, told in ((41.0, "move: keep going."), (38.0, "move, and the budget is spent: give it more.")):
        advice = advise(begun, budget=budget)
        assert advice.action == "undecided"
        assert advice.reason.endswith(f" has just begun to {told}")


def test_a_gain_that_is_surely_small_stops_though_the_ceiling_is_not_identified() -> None:
    """Few noisy evaluations: where the run will end for ever is open, what the rest of the budget buys is not."""
    compute = np.linspace(0, 32_000, 13)
    rng = np.random.default_rng(0)
    reward = rng.binomial(500, sigmoid(compute, 0.61, 1.9, 2500.0, 0.2)) / 500
    seen = fit(Curve(compute, reward, prompts=500, samples=1, unit="GPU-hours").until(30_000.0))
    assert not seen.ceiling_identified
    advice = advise(seen, budget=32_000.0)
    assert advice.numbers["p_gain_below_delta"] >= 0.9
    assert advice.action == "stop"


@pytest.mark.parametrize(
    ("seed", "points", "prompts"), [(0, 20, 200), (3, 20, 1000), (7, 12, 200), (9, 20, 1000), (7, 5, 1000)]
)
def test_stopping_needs_a_mean_gain_below_delta_too(seed: int, points: int, prompts: int) -> None:
    """One chance in ten of a large gain is not small. Past runs tell that this one stands at its ceiling already; the
    flat part of the prior leaves open that it has hardly begun."""
    reward = np.random.default_rng(seed).binomial(prompts, 0.3, points) / prompts
    told = Prior("past runs", A=(float(reward[-4:].mean()), 0.004), weight=0.5)
    seen = fit(Curve(np.arange(1.0, points + 1), reward, prompts=prompts, samples=1), prior=told)
    advice = advise(seen, budget=10.0 * points)
    assert advice.numbers["p_gain_below_delta"] >= 0.9
    assert advice.numbers["expected_gain"] >= 0.01
    assert advice.action in ("undecided", "continue")
    nearly = advise(seen, budget=1.05 * points)
    assert nearly.numbers["expected_gain"] < 0.01
    assert nearly.action == "stop"


def test_the_sentence_says_stop_where_the_advice_does_though_the_ceiling_is_unknown() -> None:
    """Near the end of the budget little can be gained under any ceiling that the evaluations allow."""
    compute = np.linspace(1, 11, 11)
    noise = np.random.default_rng(0).normal(0, 0.014, 11)
    found = fit(Curve(compute, 0.2 + 0.3 / (1 + (1.5 / compute) ** 1.2) + noise, prompts=500, samples=1))
    assert not found.ceiling_identified
    advice = advise(found, budget=12)
    assert advice.action == "stop"
    assert found.sentence(budget=12).endswith(f"but stop. {advice.reason}")
    assert "stop" not in found.sentence()


def test_a_spent_budget_that_pays_to_double_is_said_though_the_ceiling_is_not_known() -> None:
    compute = np.linspace(1, 10, 20)
    found = fit(Curve(compute, 0.1 + 0.6 / (1 + (20 / compute) ** 1.5), prompts=1000, samples=16))
    advice = advise(found, budget=10)
    assert (advice.action, found.ceiling_known) == ("scale", False)
    assert found.sentence(budget=10).endswith(f"but scale. {advice.reason}")


def _dipped(ceiling: float, points: int = 60) -> Curve:
    """A run that rose to .50, collapsed to .15 and rises again."""
    compute = np.linspace(100.0, 10_000.0, points)
    before = sigmoid(compute, R0=0.2, A=0.6, B=1.9, C_mid=2300.0)
    since = 0.15 + ceiling / (1 + (2500.0 / np.maximum(compute - 4000.0, 1e-9)) ** 1.9)
    rates = np.where(compute > 4000.0, since, before)
    return Curve(compute, np.random.default_rng(2).binomial(16_000, rates) / 16_000, prompts=1000, samples=16)


@pytest.mark.parametrize("budget", [10_000.0, 20_000.0])
def test_a_run_that_came_back_is_not_sent_back(budget: float) -> None:
    forecast = fit(_dipped(0.5))
    assert forecast.misfit == "collapse"
    advice = advise(forecast, budget=budget)
    assert advice.numbers["p_gain_below_delta"] < 0.1
    assert advice.action == "undecided"
    assert "collapsed by 0.3" in advice.reason
    assert "has come back" in advice.reason
    assert "go back" not in advice.reason.lower()


def test_a_run_that_recovers_is_told_how_far_it_has_and_that_it_goes_on() -> None:
    forecast = fit(_dipped(0.3))
    advice = advise(forecast, budget=10_000.0)
    assert "collapsed by 0.3" in advice.reason
    assert "of it" in advice.reason
    assert advice.action == "undecided"
    assert "go back to the checkpoint before it" in advice.reason


def test_a_target_that_no_reward_can_be_is_refused() -> None:
    for target in (55.0, -1.0):
        with pytest.raises(AdviceError, match="from 0 to 1"):
            advise(RISING, budget=9000, target=target)


def test_what_is_waited_for_lies_ahead() -> None:
    compute = np.linspace(520.0, 10_400.0, 20)
    reward = sigmoid(compute, 0.6, 1.7, 2_500.0, 0.2) - 0.25 * (compute > 5_000)
    fallen = fit(Curve(compute, reward + np.random.default_rng(0).normal(0, 0.004, 20), prompts=1000, samples=16))
    since = advise(fallen).numbers["since"]
    advice = advise(fallen, budget=since + (10_430 - since) / 0.9)
    assert advice.numbers["decide_at"] == pytest.approx(10_430)
    assert "or wait until 10,430 compute units, then decide." in advice.reason  # two digits are 10,000
