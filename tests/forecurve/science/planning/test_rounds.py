"""Runs that share one budget: who trains on, who is held, and when it is over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecurve import Curve, Fit, PlanError, fit, plan
from forecurve.science.planning.rounds import UNTIL_FORECAST, Round, Runner, next_round
from forecurve.science.simulator import Moment, rounds_of, synthetic_sweep

from .arms import FITS, PLANNED, arm_of, close_arms

HORIZON = 16_000.0
PLENTY = 40_000.0
CLOSE = close_arms(2000.0, 6)
LOOKS = [row for row in plan(CLOSE, PLENTY, horizon=HORIZON).allocation if row.kind == "look"]


def held(fits: list[Fit]) -> dict[str, Runner]:
    return {each.curve.name: Runner(each) for each in fits}


def sure(last: float = 16_000.0) -> dict[str, Runner]:
    """Two runs of which one is surely better."""
    good = arm_of("good", 1, last, 60, A=0.65, B=1.9, C_mid=2500.0)
    return held([fit(good), fit(arm_of("bad", 2, last, 60, A=0.45, B=1.9, C_mid=2500.0))])


# --- first every run trains until it can be forecast ---


def test_runs_that_cannot_be_forecast_go_first() -> None:
    found = next_round(
        {**held(CLOSE), "young": Runner(None), "begun": Runner(None, UNTIL_FORECAST)}, PLENTY, HORIZON, 1
    )
    assert found == Round({"young": UNTIL_FORECAST, "begun": UNTIL_FORECAST})


def test_a_run_that_has_its_forecast_is_held_until_the_others_have() -> None:
    runners = {"young": Runner(None, UNTIL_FORECAST), "arm0": Runner(CLOSE[0], UNTIL_FORECAST)}
    assert next_round(runners, PLENTY, HORIZON, 2).go == {"young": UNTIL_FORECAST}


def test_every_run_goes_to_a_twentieth_of_the_horizon_first() -> None:
    for last, is_young in ((700.0, True), (800.0, False)):
        early = fit(arm_of("early", 5, last, 7, A=0.6, B=1.8, C_mid=3000.0))
        found = next_round({**held(CLOSE), "early": Runner(early, UNTIL_FORECAST)}, PLENTY, HORIZON, 1)
        assert (found.go == {"early": UNTIL_FORECAST}) == (found.plan is None) == is_young


def test_young_runs_that_come_later_take_nobody_off_his_way() -> None:
    runners = held(CLOSE) | {"arm0": Runner(CLOSE[0], 5000.0), "arm1": Runner(CLOSE[1], 1500.0), "new": Runner(None)}
    assert next_round(runners, PLENTY, HORIZON, 1).go == {"arm0": 5000.0, "new": UNTIL_FORECAST}


def test_a_closed_run_without_a_forecast_is_left_out() -> None:
    runners = held(CLOSE) | {"failed": Runner(None, closed=True)}
    assert next_round(runners, PLENTY, HORIZON, 2).go == next_round(held(CLOSE), PLENTY, HORIZON, 2).go
    alone = next_round({"failed": Runner(None, closed=True)}, PLENTY, HORIZON, 2)
    assert (alone.go, alone.over, alone.plan) == ({}, "no run can be forecast", None)


# --- then as many looks as there are places ---


@pytest.mark.parametrize("places", [0, 1, 2, 3, 8])
def test_as_many_looks_are_taken_as_there_are_places(places: int) -> None:
    found = next_round(held(CLOSE), PLENTY, HORIZON, places)
    wanted = LOOKS[: max(places, 1)]
    assert len(LOOKS) == 4
    assert found.go == {row.arm: row.stop for row in wanted}
    assert found.reasons == {row.arm: row.reason for row in wanted}
    assert found.over is None


def test_a_run_under_way_stays_and_counts_for_a_place() -> None:
    first = LOOKS[0]
    runners = held(CLOSE) | {first.arm: replace(held(CLOSE)[first.arm], goes_to=first.stop)}
    one, two = (next_round(runners, PLENTY, HORIZON, places) for places in (1, 2))
    assert one.go == {first.arm: first.stop}
    assert one.reasons == {}  # nothing new is asked of it
    assert one.over is None
    assert one.plan is not None
    assert one.plan.under_way == first.stop - 2000.0
    assert two.go.keys() > {first.arm}
    assert two.go[first.arm] == first.stop
    assert two.reasons.keys() == two.go.keys() - {first.arm}


def test_runs_under_way_stay_where_there_are_fewer_places_than_there_were() -> None:
    runners = {name: Runner(one.fit, 5000.0) for name, one in held(CLOSE).items()}
    assert next_round(runners, PLENTY, HORIZON, 2).go == dict.fromkeys(runners, 5000.0)


def test_a_run_that_has_arrived_is_held_where_another_tells_more() -> None:
    arrived = next(each.curve.name for each in CLOSE if each.curve.name != LOOKS[0].arm)
    runners = held(CLOSE) | {arrived: replace(held(CLOSE)[arrived], goes_to=2000.0)}
    assert next_round(runners, PLENTY, HORIZON, 1).go == {LOOKS[0].arm: LOOKS[0].stop}


def test_a_run_that_somebody_else_lets_train_is_counted_on_and_not_told() -> None:
    arm = LOOKS[0].arm
    bound = Runner(held(CLOSE)[arm].fit, closed=True, bound=9000.0)
    found = next_round(held(CLOSE) | {arm: bound}, PLENTY, HORIZON, 1)
    assert arm not in found.go
    assert found.plan is not None
    assert found.plan.under_way == 7000.0
    alone = next_round({arm: bound}, PLENTY, HORIZON, 1)
    assert (alone.go, alone.over) == ({}, None)  # what it shows may be waited for


def test_runs_are_called_as_they_are_named_here() -> None:
    runners = {f"{name} (again)": one for name, one in held(CLOSE).items()}
    found = next_round(runners, PLENTY, HORIZON, 2)
    assert list(found.go) == [f"{row.arm} (again)" for row in LOOKS[:2]]


# --- then the chosen run goes to its end ---


def test_the_choice_goes_to_its_end_once_no_look_is_worth_its_compute() -> None:
    found = next_round(held(FITS), 36_000.0, HORIZON, 4)
    assert [row.kind for row in PLANNED.allocation] == ["finish"]
    assert found.go == {"slow": HORIZON}
    assert found.reasons == {"slow": PLANNED.allocation[0].reason}


def test_the_choice_goes_as_far_as_the_budget() -> None:
    assert next_round(held(FITS), 3000.0, HORIZON, 4).go == {"slow": 7000.0}


def test_a_run_that_is_finishing_goes_on_while_it_is_the_choice() -> None:
    runners = held(FITS) | {"slow": Runner(FITS[0], HORIZON)}
    assert next_round(runners, 36_000.0, HORIZON, 1).go == {"slow": HORIZON}


def test_a_run_that_was_finishing_is_held_once_another_is_the_choice() -> None:
    runners = held(FITS) | {"fast": Runner(FITS[1], HORIZON)}
    assert next_round(runners, 36_000.0, HORIZON, 1).go == {"slow": HORIZON}


def test_that_little_is_left_to_gain_is_not_believed_before_a_quarter() -> None:
    """delta is so large that no gain is worth it."""
    early, there = (next_round(held(FITS), PLENTY, horizon, 2, delta=0.5) for horizon in (20_000.0, HORIZON))
    assert (early.go, early.over) == ({"slow": 5000.0}, None)
    assert early.plan is not None
    assert "not run on" not in early.plan.sentence
    assert there.go == {}
    assert next_round(held(FITS), 600.0, 20_000.0, 2, delta=0.5).go == {"slow": 4600.0}
    beside = held(FITS) | {"fast": Runner(FITS[1], closed=True, bound=4400.0)}
    assert next_round(beside, 600.0, 20_000.0, 2, delta=0.5).go == {"slow": 4200.0}


def test_a_choice_that_fell_is_given_up_however_early() -> None:
    healthy = arm_of("fell", 3, 4000.0, 40, A=0.6, B=1.9, C_mid=1250.0)
    reward = healthy.reward.copy()
    reward[25:] -= np.linspace(0.02, 0.25, len(reward) - 25)
    fell = fit(Curve(healthy.compute, reward, unit="GPU-hours", name="fell", prompts=1000, samples=16))
    found = next_round({"fell": Runner(fell)}, PLENTY, 20_000.0, 1)
    assert (found.go, found.over) == ({}, "fell is not run on, as it fell")


# --- and then it is over ---


def test_it_is_over_where_the_choice_is_at_its_end() -> None:
    found = next_round(sure(), PLENTY, HORIZON, 2)
    assert (found.go, found.over) == ({}, "every run is at its end")
    assert found.plan is not None
    assert found.plan.choice == "good"
    behind = sure() | {"bad": Runner(fit(arm_of("bad", 2, 8000.0, 60, A=0.45, B=1.9, C_mid=2500.0)))}
    assert next_round(behind, PLENTY, HORIZON, 2).over == "good is at its end"


def test_it_is_over_where_the_choice_would_gain_too_little() -> None:
    found = next_round(held(FITS), 36_000.0, HORIZON, 2, delta=0.5)
    assert found.go == {}
    assert found.over == "slow is not run on, as it is 90 % sure to gain less than 0.5"


def test_what_is_left_beside_a_run_of_its_users_is_all_that_the_choice_goes_on_for() -> None:
    choice = plan(CLOSE, PLENTY, horizon=HORIZON).choice
    theirs = next(each for each in CLOSE if each.curve.name != choice)
    runners = held(CLOSE) | {theirs.curve.name: Runner(theirs, closed=True, bound=4000.0)}
    assert next_round(runners, 2500.0, HORIZON, 2, delta=0.5).go == {choice: pytest.approx(2500.0)}
    waits = next_round(runners, 2000.0, HORIZON, 2, delta=0.5)
    assert (waits.go, waits.over) == ({}, None)


def test_it_is_over_where_the_choice_can_go_no_further() -> None:
    found = next_round(held(FITS) | {"slow": Runner(FITS[0], closed=True)}, 36_000.0, HORIZON, 2)
    assert found.go == {}
    assert found.over == "slow is not run on, as it can be run no further"


@pytest.mark.parametrize("left", [16.0, 0.0, -500.0])
def test_a_sweep_whose_budget_is_spent_still_names_its_choice(left: float) -> None:
    runners = held(FITS) | {"fast": Runner(FITS[1], 9000.0), "young": Runner(None, UNTIL_FORECAST)}
    found = next_round(runners, left, HORIZON, 2)
    assert (found.go, found.over) == ({}, "the budget is spent")
    assert found.plan is not None
    assert found.plan.allocation == ()
    assert [(arm.arm, arm.p_best) for arm in found.plan.arms] == [(arm.arm, arm.p_best) for arm in PLANNED.arms]
    assert next_round({"young": Runner(None)}, left, HORIZON, 2) == Round({}, over="the budget is spent")


def test_runs_that_all_went_too_far_are_compared_where_the_first_of_them_is() -> None:
    found = next_round(sure(8000.0), PLENTY, 6000.0, 2)
    assert found.over == "every run is at its end"
    assert found.plan is not None
    assert (found.plan.choice, found.plan.horizon) == ("good", 8000.0)


@pytest.mark.parametrize(
    ("last", "said"), [(16_000.062, "at 16,000 GPU-hours"), (15_000.0, "at 15,999.5 GPU-hours")], ids=["own", "given"]
)
def test_only_compute_that_somebody_gave_is_told_with_all_its_digits(last: float, said: str) -> None:
    found = next_round(sure(last), 0.0, 15_999.5, 2)
    assert found.plan is not None
    assert said in found.plan.sentence


def test_a_budget_that_is_no_number_is_refused() -> None:
    with pytest.raises(PlanError, match="budget"):
        next_round(held(FITS), float("nan"), HORIZON, 2)


# --- a whole sweep ---

EVALUATIONS = 12


@settings(max_examples=6)
@given(
    seed=st.integers(0, 10_000),
    arms=st.integers(1, 5),
    places=st.integers(1, 4),
    share=st.floats(0.4, 1.2),
    spread=st.sampled_from(["table", "siblings"]),
)
@example(seed=0, arms=4, places=1, share=1.0, spread="table")  # the choice is looked at again on the way to its end
def test_a_sweep_ends_within_its_budget_and_names_a_choice(
    seed: int, arms: int, places: int, share: float, spread: str
) -> None:
    sweep = synthetic_sweep(seed, arms=arms, spread=spread, noise="white", evaluations=EVALUATIONS)
    budget = share * sweep.full_cost
    moments = list(rounds_of(sweep, budget, places))
    assert len(moments) <= 1 + arms * EVALUATIONS
    assert [moment.found.over is not None for moment in moments] == [False] * (len(moments) - 1) + [True]
    assert moments[-1].left >= -places * HORIZON / EVALUATIONS * (1 + 1e-9)
    assert moments[-1].found.plan is not None
    assert moments[-1].found.plan.choice in {track.name for track in sweep.tracks}
    for moment in moments:
        _check_round(moment, places)


def _check_round(moment: Moment, places: int) -> None:
    found, runners = moment.found, moment.runners
    under_way = {
        name: one.goes_to
        for name, one in runners.items()
        if one.fit is not None and one.goes_to is not None and not one.closed and one.fit.curve.now < one.goes_to
    }
    assert (found.over is None) == bool(found.go)
    young = {name for name, one in runners.items() if one.fit is None and not one.closed}
    stay, told = found.go.keys() & under_way.keys(), found.go.keys() - under_way.keys()
    assert told == young or len(told) <= max(places - len(stay), 0)
    assert all(runners[name].fit is None or not runners[name].closed for name in found.go)
    if found.over is None and found.plan is not None:
        given = {row.arm for row in found.plan.allocation}
        taken_off = under_way.keys() - found.go.keys()
        assert all(under_way[name] == HORIZON for name in taken_off)  # on its way to no look
        assert not taken_off & given & {found.plan.choice}
