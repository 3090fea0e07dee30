"""Plans beside what is under way: what that takes and tells is counted on, and who can go no further gets nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forecurve import PlanError, plan
from forecurve.science import Plan
from forecurve.science.planning.standing import Standing, enter, standing

from .arms import FITS, PLANNED, close_arms

HORIZON = 16_000.0
CLOSE = close_arms(3000.0, 12)
NAMES = [each.curve.name for each in CLOSE]
ALONE = plan(CLOSE, 40_000.0, horizon=HORIZON)


def worth_of_looking(found: Plan, arm: str) -> float:
    return sum(row.value for row in found.allocation if row.kind == "look" and row.arm == arm)


def looked_at(found: Plan) -> list[str]:
    return [row.arm for row in found.allocation if row.kind == "look"]


# --- what is under way is counted on ---


def test_an_arm_that_goes_on_is_worth_less_to_be_looked_at_again() -> None:
    arm = looked_at(ALONE)[0]
    part, whole = (plan(CLOSE, 40_000.0, horizon=HORIZON, going={arm: to}) for to in (8000.0, HORIZON))
    assert worth_of_looking(part, arm) < worth_of_looking(ALONE, arm)
    assert arm not in looked_at(whole)


def test_what_looks_save_is_counted_beside_what_comes_anyway() -> None:
    """Once more, from the joint draws: by the textbook's conditioning, and a simulated maximum."""
    going = {looked_at(ALONE)[0]: 6000.0}
    found = plan(CLOSE, 40_000.0, horizon=HORIZON, going=going)
    assert looked_at(found)
    here = standing([enter(each, HORIZON) for each in CLOSE], HORIZON)
    coming = _edges_up_to(here, going)
    with_looks = coming | _edges_up_to(here, {row.arm: row.to for row in found.allocation if row.kind == "look"})
    saved = _saved(here, with_looks) - _saved(here, coming)
    assert saved > 0
    assert found.value_of_information == pytest.approx(saved, rel=0.05)


def _edges_up_to(here: Standing, computes: Mapping[str, float]) -> dict[int, int]:
    """How many edges of each arm are seen once it is at a compute: the last one is the first that is not before it."""
    ends = {NAMES.index(name): to for name, to in computes.items()}
    return {arm: int((here.prospects[arm].edges < to * (1 - 1e-9)).sum()) + 1 for arm, to in ends.items()}


def _saved(here: Standing, seen: Mapping[int, int]) -> float:
    shown = np.hstack([here.middles[arm][:, :edges] for arm, edges in seen.items()])
    noise = np.concatenate([here.prospects[arm].noise[:edges] for arm, edges in seen.items()])
    arms = len(here.fits)
    covariance = np.cov(np.hstack([here.ends, shown]).T)
    cross = covariance[:arms, arms:]
    moves = cross @ np.linalg.inv(covariance[arms:, arms:] + np.diag(noise)) @ cross.T
    drawn = np.random.default_rng(1).multivariate_normal(here.ends.mean(axis=0), moves, 400_000, method="eigh")
    return float(drawn.max(axis=1).mean() - here.ends.mean(axis=0).max())


def test_an_arm_that_tells_nothing_takes_no_more_than_its_compute() -> None:
    """One that is far behind, among arms that tell each other nothing: as if the budget were that much smaller."""
    beside = plan(FITS, 20_000.0, horizon=HORIZON, siblings=False, going={"poor": 9000.0})
    alone = plan(FITS, 15_000.0, horizon=HORIZON, siblings=False)
    assert beside.under_way == 5000.0
    assert [(row.arm, row.kind, row.to) for row in beside.allocation] == [
        (row.arm, row.kind, row.to) for row in alone.allocation
    ]
    assert beside.value_of_information == pytest.approx(alone.value_of_information, rel=0.02)


def test_an_arm_that_is_there_already_is_not_under_way() -> None:
    found = plan(FITS, 36_000.0, horizon=HORIZON, going={"slow": 4000.0, "fast": 1000.0})
    assert found.under_way == 0.0
    assert found.allocation == PLANNED.allocation


def test_the_choice_is_finished_from_where_it_goes() -> None:
    found = plan(FITS, 36_000.0, horizon=HORIZON, going={"slow": 7000.0})
    finish = found.allocation[-1]
    assert (finish.arm, finish.kind, finish.start, finish.to) == ("slow", "finish", 7000.0, HORIZON)
    there = plan(FITS, 36_000.0, horizon=HORIZON, going={"slow": HORIZON})
    assert [row for row in there.allocation if row.kind == "finish"] == []
    assert there.not_run_on is None


def test_where_all_of_the_budget_is_under_way_the_sentence_waits_for_it() -> None:
    found = plan(CLOSE, 5000.0, horizon=HORIZON, going={"arm0": 8000.0})
    assert found.allocation == ()
    assert found.look_again is None
    assert "what is under way will tell more" in found.sentence


# --- no more than is left is allocated ---


@settings(max_examples=40)
@given(
    going=st.dictionaries(st.sampled_from(NAMES), st.floats(1000.0, 20_000.0)),
    closed=st.sets(st.sampled_from(NAMES)),
    budget=st.floats(10.0, 1e5),
)
@example(going=dict.fromkeys(NAMES, 3010.0), closed=set(), budget=740.0)  # a step on the way to the first look
@example(going={"arm0": 3700.0, "arm1": 4200.0, "arm2": 3700.0, "arm3": 4200.0}, closed=set(), budget=5500.0)
def test_what_is_under_way_comes_off_the_budget_first(going: dict[str, float], closed: set[str], budget: float) -> None:
    found = plan(CLOSE, budget, horizon=HORIZON, going=going, closed=closed)
    on_the_way = sum(max(to - 3000.0, 0.0) for to in going.values())
    assert found.under_way == pytest.approx(on_the_way)
    assert found.spend <= max(budget - on_the_way, 0.0) * (1 + 1e-9)
    for row in found.allocation:
        assert row.arm not in closed
        begins = next((look.to for look in found.allocation if look.arm == row.arm and look is not row), None)
        came_from = begins if row.kind == "finish" and begins is not None else max(going.get(row.arm, 0.0), 3000.0)
        assert row.start == pytest.approx(came_from)
        assert row.start < row.stop <= row.to <= HORIZON * (1 + 1e-9)
    body = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert body["going"] == pytest.approx(going)
    assert body["left"] == pytest.approx(max(budget - on_the_way - found.spend, 0.0), abs=1e-6)


# --- closed arms ---


def test_a_closed_arm_may_be_the_choice_and_gets_nothing() -> None:
    found = plan(FITS, 36_000.0, horizon=HORIZON, closed=["slow"])
    assert found.choice == PLANNED.choice == "slow"
    assert [arm.p_best for arm in found.arms] == [arm.p_best for arm in PLANNED.arms]
    assert "slow" not in {row.arm for row in found.allocation}
    assert found.not_run_on == "it can be run no further"
    assert "slow is not run on, as it can be run no further" in found.sentence


def test_where_all_arms_are_closed_nothing_is_allocated() -> None:
    found = plan(CLOSE, 40_000.0, horizon=HORIZON, closed=NAMES)
    assert found.allocation == ()
    assert found.value_of_information == 0.0
    assert found.choice == ALONE.choice
    assert found.expected_regret == ALONE.expected_regret


def test_looks_go_to_the_arms_that_are_open() -> None:
    arm = looked_at(ALONE)[0]
    found = plan(CLOSE, 40_000.0, horizon=HORIZON, closed={arm})
    assert looked_at(found)
    assert arm not in looked_at(found)


def test_a_closed_arm_is_counted_on_as_far_as_it_goes() -> None:
    arm = looked_at(ALONE)[0]
    found = plan(CLOSE, 40_000.0, horizon=HORIZON, going={arm: 9000.0}, closed=[arm])
    assert found.under_way == 6000.0
    assert arm not in {row.arm for row in found.allocation}


# --- what is refused ---


@pytest.mark.parametrize(
    ("argument", "given", "field", "value"),
    [
        ("going", {"none": 5000.0}, "going", "none"),
        ("going", {7: 5000.0}, "going", "7"),
        ("going", ["slow"], "going", "list"),
        ("going", [], "going", "list"),
        ("going", {"slow": -1.0}, "going['slow']", "-1.0"),
        ("going", {"slow": 0.0}, "going['slow']", "0.0"),
        ("going", {"slow": float("nan")}, "going['slow']", "nan"),
        ("going", {"slow": float("inf")}, "going['slow']", "inf"),
        ("going", {"slow": None}, "going['slow']", "None"),
        ("going", {"slow": "far"}, "going['slow']", "far"),
        ("closed", ["slow", "none"], "closed", "none"),
        ("closed", [["slow"]], "closed", "['slow']"),
        ("closed", "slow", "closed", "slow"),
        ("closed", 3, "closed", "int"),
        ("closed", (name for name in ["slow"]), "closed", "generator"),  # it would be used up by a first reading
    ],
)
def test_who_is_under_way_or_closed_is_refused_by_name(argument: str, given: Any, field: str, value: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan(FITS, 36_000.0, horizon=HORIZON, **{argument: given})
    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert value in str(caught.value)
