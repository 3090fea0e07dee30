"""The planner: who ends highest, what to run next, and what it refuses."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve import Curve, PlanError, advise, advise_sweep, fit, plan
from forecurve.science.curves.margins import SETTLED, SURE
from forecurve.science.planning.dominated import DOMINATED, dominated, p_within
from forecurve.science.planning.plan import FURTHEST
from forecurve.science.wording import gain_text, share_text

from ..synthetic import sigmoid
from .arms import FAST, FITS, PLANNED, SLOW, arm_of, by_name, close_arms, sweep


def test_the_arm_that_will_be_best_is_chosen_though_another_leads_now() -> None:
    rewards = {each.curve.name: each.curve.reward[-1] for each in FITS}
    assert rewards["fast"] > rewards["slow"]
    assert PLANNED.choice == "slow"
    truth = sigmoid(np.array([16_000.0]), R0=0.2, **SLOW)[0]
    assert PLANNED.chosen.end.lower <= truth <= PLANNED.chosen.end.upper


def test_the_choice_is_not_said_to_be_the_likeliest_where_another_is() -> None:
    """The highest expected end and the likeliest highest end may be of two arms."""
    assert PLANNED.sentence.startswith(
        f"slow ends highest at 16,000 GPU-hours with {share_text(PLANNED.chosen.p_best)}"
    )
    arms = tuple(
        replace(arm, p_best=0.3 if arm.arm == "slow" else 0.44 if arm.arm == "fast" else 0.26) for arm in PLANNED.arms
    )
    said = replace(PLANNED, arms=arms).sentence
    assert said.startswith("slow has the highest expected end at 16,000 GPU-hours; slow with 30 %, fast with 44 % to ")


def test_an_arm_beyond_the_horizon_gains_nothing_and_loses_nothing() -> None:
    arms = [arm_of("ahead", 0, 16_000, 40, **FAST), arm_of("young", 1, 2000, 10, **FAST)]
    found = plan([fit(one) for one in arms], 5000.0, horizon=4000.0)
    ahead = by_name(found, "ahead")
    assert (ahead.gain.lower, ahead.gain.median, ahead.gain.upper) == (0.0, 0.0, 0.0)
    assert by_name(found, "young").gain.median > 0


def test_an_arm_that_cannot_come_near_is_dominated() -> None:
    poor = by_name(PLANNED, "poor")
    assert poor.dominated
    assert poor.p_within_delta < DOMINATED
    assert "poor" in PLANNED.dominated
    assert "slow" not in PLANNED.dominated
    assert "can be dropped" in PLANNED.sentence
    assert "poor" in PLANNED.sentence


def test_shares_of_winning_add_up() -> None:
    assert sum(arm.p_best for arm in PLANNED.arms) == pytest.approx(1.0)
    assert all(arm.p_best <= arm.p_within_delta for arm in PLANNED.arms)


def test_the_chosen_arm_is_finished_from_where_it_was_looked_at() -> None:
    finish = PLANNED.allocation[-1]
    assert (finish.arm, finish.kind, finish.to) == ("slow", "finish", 16_000.0)
    looks = [row for row in PLANNED.allocation if row.kind == "look" and row.arm == "slow"]
    assert finish.start == (looks[0].to if looks else 4000.0)
    assert finish.value == pytest.approx(PLANNED.chosen.gain.median, abs=0.02)


def test_what_the_choice_is_worth_is_counted_as_far_as_the_budget_goes() -> None:
    fitted = fit(arm_of("one", 3, 4_000, 40, A=0.65, B=1.9, C_mid=2500.0))
    whole, part = (plan([fitted], budget, horizon=16_000) for budget in (12_000, 4_000))
    to_end, there = (advise(fitted, budget=to).numbers["expected_gain"] for to in (16_000, 8_000))
    assert whole.allocation[0].value == pytest.approx(to_end, abs=1e-6)
    assert (part.allocation[0].to, part.horizon) == (8_000, 16_000)
    assert part.allocation[0].value == pytest.approx(there, abs=1e-6)
    assert "on the way to 8,000 GPU-hours; the budget does not reach 16,000" in part.allocation[0].reason
    assert part.sentence.endswith("expected to 16,000 GPU-hours; the budget ends at 8,000.")
    assert "budget" not in whole.sentence


def test_a_price_that_keeps_from_looking_is_named() -> None:
    close = [arm_of(f"arm{at}", at, 3000, 12, A=0.60 + 0.01 * at, B=1.8, C_mid=3000.0 + 400 * at) for at in range(4)]
    dear = plan(close, 40_000, horizon=16_000, price=1.0)
    assert (dear.allocation, dear.settled) == ((), False)
    assert "no look that the budget allows would change the choice enough for its price" in dear.sentence


def test_a_clear_winner_needs_no_look() -> None:
    curves = [
        arm_of("good", 1, 16_000, 60, A=0.65, B=1.9, C_mid=2500.0),
        arm_of("bad", 2, 16_000, 60, A=0.45, B=1.9, C_mid=2500.0),
    ]
    found = plan(curves, 8000.0)
    assert found.choice == "good"
    assert found.settled
    assert found.look_again is None
    assert all(row.kind == "finish" for row in found.allocation)
    assert found.expected_regret <= SETTLED * found.delta


def test_close_arms_are_looked_at_and_the_looks_are_worth_what_they_are_said_to_be() -> None:
    close = [arm_of(f"arm{at}", at, 3000, 12, A=0.60 + 0.01 * at, B=1.8, C_mid=3000.0 + 400 * at) for at in range(4)]
    found = plan(close, 40_000.0, horizon=16_000.0)
    looks = [row for row in found.allocation if row.kind == "look"]
    assert not found.settled
    assert looks
    assert found.look_again is not None
    assert found.look_again[0] in {row.arm for row in looks}
    assert found.look_again[1] > 3000
    assert 0 < found.value_of_information <= found.expected_regret
    assert "then look again" in found.sentence


def test_looks_at_two_of_a_dozen_young_arms_do_not_save_all_that_choosing_now_may_lose() -> None:
    rng = np.random.default_rng(4)
    young = [
        arm_of(f"arm{at}", at, 2400, 12, A=0.6 + 0.03 * rng.normal(), B=1.85, C_mid=3200 * rng.lognormal(0, 0.3))
        for at in range(12)
    ]
    found = plan(young, 40_000.0, horizon=16_000.0)
    looks = [row for row in found.allocation if row.kind == "look"]
    assert 0 < len(looks) < 6
    assert 0 < found.value_of_information < 0.8 * found.expected_regret
    assert found.value_of_information == pytest.approx(sum(row.value for row in looks))


@settings(max_examples=25, deadline=None)
@given(budget=st.floats(1.0, 1e6), horizon=st.one_of(st.none(), st.floats(4000.0, 1e5)))
def test_no_plan_spends_more_than_the_budget(budget: float, horizon: float | None) -> None:
    found = plan(FITS, budget, horizon=horizon)
    assert found.spend <= budget * (1 + 1e-9)
    for row in found.allocation:
        assert row.to > row.start >= 4000
        assert row.to <= found.horizon * (1 + 1e-9)
    json.dumps(found.to_dict(), allow_nan=False)


def test_the_default_horizon_is_within_the_budget_and_never_far_from_the_data() -> None:
    assert plan(FITS, 4000.0).horizon == 6000.0
    assert plan(FITS, 1e6).horizon == FURTHEST * 4000
    assert plan(FITS[:1], 4000.0).horizon == 8000.0


def test_a_price_that_no_look_is_worth_leaves_the_budget_alone() -> None:
    assert plan(FITS, 36_000.0, horizon=16_000.0, price=1.0).allocation == ()
    assert plan(FITS, 36_000.0, horizon=16_000.0, price=1e-12).allocation != ()


def test_one_arm_is_run_to_its_end() -> None:
    found = plan(FITS[:1], 4000.0)
    assert [(row.kind, row.to) for row in found.allocation] == [("finish", 8000.0)]
    assert "only arm" in found.sentence


def test_a_choice_that_is_not_run_on_says_why() -> None:
    arm = FITS[:1]
    assert plan(arm, 4000.0).to_dict()["not_run_on"] is None
    dear, sure = plan(arm, 4000.0, price=0.01), plan(arm, 4000.0, delta=0.5)
    assert dear.not_run_on == f"{gain_text(dear.chosen.gain)} is too little for its price, which asks for 40"
    assert sure.not_run_on == "it is 90 % sure to gain less than 0.5"
    for found in (dear, sure):
        assert found.allocation == ()
        assert found.sentence.endswith(f"; {found.choice} is not run on, as {found.not_run_on}.")
    assert plan(arm, 10.0, horizon=arm[0].curve.now).not_run_on is None  # it is there


def test_arms_alone_and_as_siblings_are_two_questions() -> None:
    early = [curve.until(1200.0) for curve in sweep(points=40)]
    alone = plan(early, 36_000.0, horizon=16_000.0, siblings=False)
    together = plan(early, 36_000.0, horizon=16_000.0)
    assert together.expected_regret < alone.expected_regret


def test_plans_are_reproducible_and_say_what_they_are() -> None:
    assert plan(FITS, 36_000.0, horizon=16_000.0).to_dict() == PLANNED.to_dict()
    assert "slow" in repr(PLANNED)
    body = json.loads(json.dumps(PLANNED.to_dict(), allow_nan=False))
    assert {row["arm"] for row in body["arms"]} == {"slow", "fast", "poor"}
    assert body["left"] == pytest.approx(36_000 - sum(row["spend"] for row in body["allocation"]))
    assert all({"arm", "from", "to", "spend", "reason"} <= set(row) for row in body["allocation"])


def test_a_plan_is_drawn() -> None:
    pytest.importorskip("plotly")
    figure = PLANNED.plot()
    assert figure.layout.title.text.replace("<br>", " ") == PLANNED.sentence
    assert set(figure.data[0].y) == {"slow", "fast", "poor"}


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("budget", {"budget": 0.0}),
        ("budget", {"budget": float("nan")}),
        ("delta", {"budget": 10.0, "delta": -1.0}),
        ("horizon", {"budget": 10.0, "horizon": float("inf")}),
        ("horizon", {"budget": 10.0, "horizon": 1000}),  # every arm is past it
        ("price", {"budget": 10.0, "price": 0.0}),
    ],
)
def test_impossible_numbers_are_refused_by_name(field: str, arguments: dict[str, float]) -> None:
    with pytest.raises(PlanError, match=field) as caught:
        plan(FITS, **arguments)
    assert caught.value.field == field
    assert str(caught.value.value) in str(caught.value)


def test_arms_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(PlanError, match="arms"):
        plan([], 10.0)
    with pytest.raises(PlanError, match="twice"):
        plan([FITS[0], FITS[0]], 10.0)
    steps = Curve(FITS[1].curve.compute, FITS[1].curve.reward, unit="steps", name="steps")
    with pytest.raises(PlanError, match="unit"):
        plan([FITS[0], steps], 10.0)
    wide = Curve(FITS[1].curve.compute, FITS[1].curve.reward, unit="GPU-hours", name="wide", bounds=(0.0, 10.0))
    with pytest.raises(PlanError, match="bounds"):
        plan([FITS[0], wide], 10.0)


@pytest.mark.parametrize("scale", [100.0, 1e-11, 1e11])
def test_rewards_on_another_scale_give_the_same_plan(scale: float) -> None:
    """Also on the smallest and the largest: nothing is held against a difference in reward of its own."""
    here = [each.curve for each in close_arms(3000.0, 12)]
    there = [
        Curve(c.compute, scale * c.reward, unit=c.unit, name=c.name, prompts=1000, samples=16, bounds=(0.0, scale))
        for c in here
    ]
    one, other = plan(here, 40_000.0, horizon=16_000.0), plan(there, 40_000.0, horizon=16_000.0)
    assert one.look_again is not None
    assert other.choice == one.choice
    assert other.chosen.end.median == pytest.approx(scale * one.chosen.end.median, rel=1e-3, abs=0.0)
    assert other.dominated == one.dominated
    assert other.expected_regret == pytest.approx(scale * one.expected_regret, rel=1e-3, abs=0.0)
    assert [(row.arm, row.kind) for row in other.allocation] == [(row.arm, row.kind) for row in one.allocation]
    values = [row.value for row in other.allocation]
    assert values == pytest.approx([scale * row.value for row in one.allocation], rel=1e-3, abs=0.0)


# --- which arms can be dropped ---


@given(st.integers(2, 60), st.integers(0, 99), st.floats(0.01, 0.2))
@settings(max_examples=40, deadline=None)
def test_what_is_left_holds_an_arm_as_good_as_any(arms: int, seed: int, apart: float) -> None:
    """However many arms there are, and however little is known of each: by brute force."""
    rng = np.random.default_rng(seed)
    ends = 0.5 + apart * rng.normal(size=arms) + 0.1 * rng.normal(size=(400, arms))
    dropped, within = dominated(ends, 0.01), p_within(ends, 0.01)
    assert (within[dropped] < DOMINATED).all()
    assert not dropped.all()
    kept = ends[:, ~dropped].max(axis=1)
    assert (kept < ends.max(axis=1) - 0.01).mean() < DOMINATED
    if dropped.any():  # the unlikeliest go first
        assert within[dropped].max() <= within[~dropped].min()


def test_of_many_arms_of_which_nothing_is_known_few_are_dropped() -> None:
    ends = np.random.default_rng(0).uniform(size=(2000, 100))
    assert (p_within(ends, 0.001) < DOMINATED).all()
    assert dominated(ends, 0.001).sum() <= 8


def test_an_early_sweep_of_many_arms_keeps_the_best_of_them() -> None:
    rng = np.random.default_rng(2)
    arms = [
        arm_of(f"{at}", at, 1_200.0, 4, A=rng.uniform(0.4, 0.7), B=rng.uniform(1.5, 2.2), C_mid=rng.uniform(2000, 5000))
        for at in range(40)
    ]
    found = plan([fit(one) for one in arms], 50_000.0, horizon=16_000.0)
    assert sum(arm.p_best for arm in found.arms if arm.dominated) < 2 * DOMINATED


# --- advice for a sweep ---


def test_a_dominated_run_is_stopped_whatever_it_would_gain() -> None:
    advice = advise_sweep(FITS, budget=16_000.0)
    assert advice["poor"].action == "stop"
    assert advice["poor"].reason.startswith("Dominated")
    assert " at 16,384 GPU-hours (" in advise_sweep(FITS, budget=16_384.0)["poor"].reason
    assert advice["poor"].numbers["p_gain_below_delta"] < SURE  # by itself it would have gone on
    assert advice["slow"].action != "stop"
    assert sum(each.numbers["p_best"] for each in advice.values()) == pytest.approx(1.0)
    for each in advice.values():
        json.dumps(each.to_dict(), allow_nan=False)
        assert not each.numbers["dominated"] or each.numbers["p_within_delta"] < DOMINATED


def test_runs_are_compared_at_the_budget_though_one_is_beyond_it() -> None:
    """The slow arm ends higher, but not by then."""
    fast = arm_of("fast", 1, 4_000.0, 20, A=0.6, B=2.5, C_mid=900.0)
    slow = arm_of("slow", 2, 16_000.0, 20, A=0.7, B=1.6, C_mid=6_000.0)
    fits = [fit(fast), fit(slow)]
    advice = advise_sweep(fits, budget=8_000.0)
    places = {arm.arm: arm for arm in plan(fits, 4_000.0, horizon=8_000.0).arms}
    assert places["fast"].p_best > 0.99
    for name, place in places.items():
        assert advice[name].numbers["p_best"] == pytest.approx(place.p_best, abs=0.01)
    assert advice["slow"].reason.startswith("Dominated")


def test_no_runs_need_no_advice() -> None:
    assert advise_sweep([]) == {}


def test_a_sweep_of_equals_drops_none() -> None:
    equals = [replace(FITS[0], curve=_renamed(FITS[0].curve, f"copy {at}")) for at in range(3)]
    advice = advise_sweep(equals, budget=16_000.0)
    assert not any(each.numbers["dominated"] for each in advice.values())


def _renamed(curve: Curve, name: str) -> Curve:
    return Curve(curve.compute, curve.reward, unit=curve.unit, name=name, prompts=1000, samples=16)


@pytest.mark.parametrize("points", [pytest.param(8, marks=pytest.mark.slow), 20])
def test_another_seed_of_the_draws_tells_about_the_same(points: int) -> None:
    arms = [arm_of(f"arm {at}", at, 200.0 * points, points, A=0.60 + 0.03 * at, B=1.5, C_mid=2000.0) for at in range(2)]
    found = [plan(arms, 40_000.0, horizon=16_000.0, seed=seed).arms for seed in range(8)]
    assert np.std([[arm.p_best for arm in each] for each in found], axis=0).max() < 0.03
    assert np.std([[arm.end.median for arm in each] for each in found], axis=0).max() < 0.015


@pytest.mark.parametrize("siblings", [True, False])
def test_a_plan_does_not_hang_on_the_order_of_its_arms(siblings: bool) -> None:
    arms = sweep()
    there, back = (plan(each, 20_000, siblings=siblings) for each in (arms, arms[::-1]))
    assert (there.choice, there.spend) == (back.choice, back.spend)
    for one in there.arms:
        assert by_name(back, one.arm).to_dict() == one.to_dict()


def test_a_horizon_that_is_given_is_told_with_all_its_digits() -> None:
    asked = plan(FITS, 2_000.0, horizon=16_384.0)
    assert "at 16,384 GPU-hours" in asked.sentence
    assert any("does not reach 16,384" in step.reason for step in asked.allocation if step.kind == "finish")
    assert "16,384" in str(asked.plot().layout.xaxis.title.text)
    assert f"{plan(FITS, 2_345.0).horizon:,.10g}" not in plan(FITS, 2_345.0).sentence


def test_a_long_run_takes_no_memory_for_every_evaluation_in_every_draw() -> None:
    """Of 100,000 evaluations it had been 5 GB."""
    compute = np.linspace(1.0, 16_000.0, 20_000)
    noise = np.random.default_rng(0).normal(0, 0.01, (2, len(compute)))
    fits = [fit(Curve(compute, sigmoid(compute, 0.6, 1.9, 2500.0, 0.2) + one, name=str(one[0]))) for one in noise]
    tracemalloc.start()
    plan(fits, 5_000.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6
