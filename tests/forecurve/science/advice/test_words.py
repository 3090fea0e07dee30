"""What advice and the sentence of a fit say is what the figures beside it show."""

from __future__ import annotations

import re

import numpy as np
import pytest

from forecurve.science import Curve, Estimate, Fit, advise, fit
from forecurve.science.wording import gain_text

from ..synthetic import noisy_curve, sigmoid

FINISHED = fit(noisy_curve(0, last=16_000, points=60))
CLIMBING = fit(noisy_curve(1, last=1900, points=20))


def _number(said: str, before: str) -> float:
    found = re.search(re.escape(before) + r"([0-9,.]+)", said)
    assert found is not None, said
    return float(found[1].replace(",", "").rstrip("."))


def test_the_compute_at_which_to_decide_is_told_as_later_than_now() -> None:
    near = fit(noisy_curve(1, last=4500, points=45).part(slice(0, 22)))
    when = near.decide_at()
    assert when is not None
    assert 2100 < when < 2200  # both are 2,100 or 2,200 in two digits
    for budget in (None, 2175.0):
        said = advise(near, budget=budget).reason + near.sentence(budget=budget)
        assert 2100 < _number(said, "keep going until ") < (budget or 2200)
        assert 2100 < _number(said, "decide at about ") < (budget or 2200)


def test_what_would_be_known_before_now_is_left_to_the_next_evaluation() -> None:
    near = fit(noisy_curve(1, last=4500, points=45).part(slice(0, 22)))
    assert ": keep going to its next evaluation, then decide. " in advise(near, now=2500, budget=16_000).reason
    assert near.sentence(now=2500, budget=16_000).endswith(": decide at its next evaluation.")


def test_a_run_that_goes_on_for_what_lies_beyond_its_budget_says_so() -> None:
    """Its ceiling is unknown, and the little that is left of its budget surely buys little."""
    advice = advise(CLIMBING, budget=CLIMBING.curve.now * 1.02)
    assert advice.action == "undecided"
    assert advice.numbers["p_gain_below_delta"] > 0.9
    assert "sure that it is below 0.01; twice as much would buy +0.1" in advice.reason
    assert "twice as much" not in advise(CLIMBING, budget=CLIMBING.curve.now * 2).reason


def test_a_stop_of_a_run_with_something_left_says_why() -> None:
    run = fit(noisy_curve(3, last=14_000, points=60))
    for budget, why in ((14_000.0, "but the budget is spent"), (15_400.0, "the budget less")):
        assert advise(run, budget=budget).action == "stop"
        assert run.sentence(budget=budget).endswith(f" GPU-hours more would buy +0.01, {why}: stop.")
    climbing = fit(noisy_curve(0, last=4500, points=40))  # to be scaled, but for its target
    assert climbing.sentence(budget=4500, target=0.3).endswith(
        " GPU-hours more would buy +0.01: stop, by its target of 0.3."
    )
    ended = fit(noisy_curve(1, last=18_000, points=60))
    assert ended.sentence(budget=18_000).endswith("; less than +0.01 is left: stop.")


def test_a_price_is_named_where_it_alone_forbids_more_of_a_spent_budget() -> None:
    run = fit(noisy_curve(0, last=4500, points=40))
    assert advise(run, budget=4500).action == "scale"
    dear = advise(run, budget=4500, price=0.001)
    assert dear.action == "stop"
    assert dear.reason.endswith(" per unit of compute, below the price of 0.001.")
    assert "not surely worth it" not in dear.reason


@pytest.mark.parametrize("share", [0.5, 0.999999])
def test_a_gain_per_unit_is_told_as_below_its_price(share: float) -> None:
    run = fit(noisy_curve(0, last=6000, points=40))
    per_unit = float(advise(run, budget=16_000).numbers["gain_per_unit"])
    dear = advise(run, budget=16_000, price=per_unit / share)
    assert dear.action == "stop"
    told = re.search(r" is (\S+) per unit of compute, below the price of (\S+)\.$", dear.reason)
    assert told is not None
    assert float(told[1]) < float(told[2])


def test_amounts_of_wide_ranges_and_small_ones_have_no_exponent() -> None:
    rng, compute = np.random.default_rng(1), np.linspace(0.1, 6, 30)
    reward = 1000 * np.clip(sigmoid(compute, 0.9, 1.5, 3.0, 0.1) + 0.01 * rng.normal(size=30), 0, 1)
    wide = fit(Curve(compute, reward, bounds=(0, 1000)))
    said = advise(wide, budget=8, price=500).reason
    assert "below the price of 500." in said
    assert not re.search(r"\de[+-]\d", said)


def test_how_much_is_reached_is_counted_from_the_end_of_the_range() -> None:
    """94 % of a ceiling of -2 would be a higher reward than the ceiling."""
    below = fit(Curve(FINISHED.curve.compute, 5 * FINISHED.curve.reward - 5, unit="GPU-hours", bounds=(-5, 0)))
    assert re.search(r"^Ceiling -1\.9\d \(90 %: [^)]*\), 9\d % of the way there from -5; ", below.sentence())
    assert " % of it reached; " in FINISHED.sentence()


def test_neighbours_that_hardly_count_are_told_apart() -> None:
    compute = np.linspace(20_000, 29_000, 91)
    reward = sigmoid(compute, 0.6, 2.0, 8000, 0.1) + 0.002 * np.random.default_rng(0).normal(size=91)
    reward[60:62] -= 0.3
    run = fit(Curve(compute, reward, unit="GPU-hours"))
    assert [list(one) for one in run.stretches] == [[26_000.0, 26_100.0]]
    assert " The 2 evaluations from 26,000 to 26,100 GPU-hours lie far off both sides" in run.sentence()


def _slow_end(C_mid: float, gained: float, noise: float, seed: int) -> Fit:
    """A run that levels off more slowly than a sigmoid."""
    compute = np.linspace(0, 4000.0, 26)
    reward = 0.2 + gained * (1 - (1 + (compute / C_mid) ** 2.0) ** -0.35)
    run = fit(Curve(compute, reward + noise * np.random.default_rng(seed).normal(size=26), unit="GPU-hours"))
    assert run.likelier_law is not None
    return run


def test_a_gain_by_another_law_is_told_as_the_advice_tells_it() -> None:
    run = _slow_end(700, 0.6, 0.002, 1)
    for budget in (4000.0, 4100.0, 16_000.0):
        gain = gain_text(Estimate(**advise(run, budget=budget).numbers["gain"]))
        assert f"; {gain} expected to " in run.sentence(budget=budget)
    assert advise(run, budget=4100.0).action == "scale"
    assert " more by twice as much: scale." in run.sentence(budget=4100.0)


def test_a_run_that_probably_gains_too_little_by_another_law_says_why_it_goes_on() -> None:
    run = _slow_end(200, 0.25, 0.01, 2)
    advice = advise(run, budget=6000.0)
    assert advice.action == "continue"
    assert advice.numbers["p_gain_below_delta"] > 0.5
    sure = advice.reason.split(", ")[1].replace(" is below 0.01; a stop takes 90 %.", " gains less than 0.01")
    assert f" with a slower end than a sigmoid's ({sure}, a stop takes 90 %): continue." in run.sentence(budget=6000.0)


@pytest.mark.parametrize(("seed", "last", "points"), [(0, 4000.0, 12), (1, 8000.0, 20)])
def test_a_target_is_reached_where_the_forecast_says_so(seed: int, last: float, points: int) -> None:
    """Which is less sure of it than the sigmoid alone, or more."""
    run = fit(noisy_curve(seed, last=last, points=points, sd=0.03))
    near = run.predict(last).at(0).lower + np.linspace(-0.01, 0.02, 13)
    told = [advise(run, budget=last, target=float(target)) for target in near]
    shares = [advice.numbers["target_reach"]["p_by_budget"] for advice in told]
    assert min(shares) < 0.9 < max(shares)
    assert [" is reached (" in advice.reason for advice in told] == [share >= 0.9 for share in shares]


def test_a_curve_by_the_time_of_day_is_asked_where_its_compute_begins() -> None:
    """Seconds since 1970 in place of those since the run began: nothing else in the forecast would tell."""
    run = noisy_curve(0, last=16_000, points=60)
    by_clock = fit(Curve(run.compute + 1.7e9, run.reward, unit="seconds", prompts=1000, samples=16))
    asked = "seconds alone: is compute counted from the run's start?"
    assert by_clock.withheld
    assert by_clock.sentence().endswith(asked)
    assert "1,700,000,0" in by_clock.sentence()
    bent = fit(Curve(run.compute, np.where(run.compute < 8000, 0.3, 0.6), unit="seconds", prompts=1000, samples=16))
    assert bent.misfit in ("break", "two-phase")
    assert asked not in bent.sentence()
