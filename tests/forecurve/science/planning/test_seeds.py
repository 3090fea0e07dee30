"""Arms of several seeds: chosen by the mean of their runs, while runs are what is looked at and taken to its end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from forecurve import Curve, Fit, PlanError, advise_sweep, fit, plan
from forecurve.science import AdviceError, CompareError, Plan, SeedSpread, rank
from forecurve.science.planning.belief import Belief, Prospect
from forecurve.science.planning.rounds import Runner, next_round
from forecurve.science.simulator import rounds_of, synthetic_sweep

from .arms import FITS, PLANNED, arm_of, by_name, close_arms

HORIZON = 16_000.0
PLENTY = 60_000.0


def seed_of(name: str, seed: int, ceiling: float, last: float = 4000.0) -> Fit:
    return fit(arm_of(name, seed, last, 20, A=ceiling, B=1.9, C_mid=1800.0))


# the highest single run is one of the arm whose others are low
EVEN = {f"even s{seed}": seed_of(f"even s{seed}", seed, 0.60) for seed in range(3)}
UNEVEN = {f"uneven s{seed}": seed_of(f"uneven s{seed}", 10 + seed, top) for seed, top in enumerate((0.66, 0.5, 0.5))}
SEEDED = plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON)
CLOSE = {
    f"arm{at}": {"first": one, "second": other}
    for at, (one, other) in enumerate(zip(close_arms(2000.0, 6), close_arms(2000.0, 7), strict=True))
}
CLOSE = {arm: {f"{arm} {name}": one for name, one in runs.items()} for arm, runs in CLOSE.items()}


def by_itself(arms: Mapping[str, Mapping[str, Fit]]) -> Plan:
    return plan({name: one for runs in arms.values() for name, one in runs.items()}, PLENTY, horizon=HORIZON)


def test_an_arm_is_chosen_by_the_mean_of_its_seeds() -> None:
    assert SEEDED.chosen_arm == "even"
    assert SEEDED.choice in EVEN
    assert by_itself({"even": EVEN, "uneven": UNEVEN}).choice == "uneven s0"


def test_the_choice_is_the_furthest_of_the_good_runs_of_its_arm() -> None:
    def arms(further: str) -> dict[str, list[Fit]]:
        good = [seed_of(name, seed, 0.60, 4400.0 if name == further else 4000.0) for seed, name in enumerate("abc")]
        return {"high": [*good, seed_of("worse", 8, 0.57, 6000.0)], "low": [seed_of("low", 9, 0.5)]}

    for further in "abc":
        assert plan(arms(further), PLENTY, horizon=HORIZON, delta=0.015).choice == further
    ends = {one.arm: one.end.median for one in SEEDED.arms if one.seed_of == "even"}
    exact = plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON, delta=1e-9)
    assert exact.choice == max(ends, key=lambda name: ends[name])


def test_a_run_that_can_go_on_is_taken_before_one_that_cannot() -> None:
    arms = {"even": EVEN, "uneven": UNEVEN}
    closed = [SEEDED.choice]
    found = plan(arms, PLENTY, horizon=HORIZON, closed=closed)
    assert found.chosen_arm == "even"
    assert found.choice not in closed
    assert found.not_run_on is None
    every = plan(arms, PLENTY, horizon=HORIZON, closed=[*EVEN])
    assert (every.chosen_arm, every.not_run_on) == ("even", "it can be run no further")
    there = {**EVEN, "there": seed_of("there", 3, 0.60, HORIZON)}
    done = plan({"even": there, "uneven": UNEVEN}, PLENTY, horizon=HORIZON, closed=["there"], delta=0.02)
    assert done.choice == "there"


def test_seeds_share_what_is_said_of_their_arm() -> None:
    for runs in (EVEN, UNEVEN):
        assert len({by_name(SEEDED, name).p_best for name in runs}) == 1
    assert by_name(SEEDED, "even s0").p_best + by_name(SEEDED, "uneven s0").p_best == pytest.approx(1.0)
    assert [one.seed_of for one in SEEDED.arms] == ["even"] * 3 + ["uneven"] * 3


def test_the_odds_of_arms_are_those_of_the_ranking() -> None:
    for seed_sd in (None, 0.05, SeedSpread(0.02, 4.0)):
        found = plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON, seed_sd=seed_sd)
        ranked = {
            one.arm: one
            for one in rank({"even": [*EVEN.values()], "uneven": [*UNEVEN.values()]}, HORIZON, seed_sd=seed_sd)
        }
        for arm in ("even", "uneven"):
            own = by_name(found, f"{arm} s0")
            assert own.p_best == ranked[arm].p_best
            assert own.p_within_delta == ranked[arm].p_within_delta
            assert own.dominated == ranked[arm].dominated


def test_the_order_of_arms_and_of_their_seeds_has_no_say() -> None:
    arms = {name: dict(reversed(runs.items())) for name, runs in reversed(CLOSE.items())}
    given, turned = (plan(some, PLENTY, horizon=HORIZON) for some in (CLOSE, arms))
    assert {one.arm: one for one in turned.arms} == {one.arm: one for one in given.arms}
    assert turned.sentence == given.sentence
    assert turned.regret_with_seeds == pytest.approx(given.regret_with_seeds, rel=1e-9)
    ours, theirs = (advise_sweep(some, budget=HORIZON) for some in (CLOSE, arms))
    assert {name: one.numbers for name, one in theirs.items()} == {name: one.numbers for name, one in ours.items()}


def test_what_seeds_leave_open_is_no_regret_of_choosing_now() -> None:
    wide = plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON, seed_sd=0.1)
    assert wide.chosen.p_best < SEEDED.chosen.p_best
    assert (wide.expected_regret, wide.settled) == (SEEDED.expected_regret, SEEDED.settled)
    assert wide.regret_with_seeds > 0.01 > 2 * SEEDED.regret_with_seeds >= 2 * SEEDED.expected_regret
    assert wide.settled
    lost = f"is expected to lose {wide.regret_with_seeds:.2g}, of which these runs would tell less than 0.001, further"
    assert lost in wide.sentence


def test_runs_alone_are_arms() -> None:
    assert plan({one.curve.name: [one] for one in FITS}, 36_000.0, horizon=HORIZON).to_dict() == PLANNED.to_dict()
    named = {f"arm {at}": {one.curve.name: one} for at, one in enumerate(FITS)}
    assert plan(named, 36_000.0, horizon=HORIZON).to_dict() == PLANNED.to_dict()
    assert PLANNED.chosen_arm == PLANNED.choice
    assert PLANNED.regret_with_seeds == PLANNED.expected_regret
    assert {one.seed_of for one in PLANNED.arms} == {None}


def test_looks_are_at_runs_and_keep_to_the_budget() -> None:
    found = plan(CLOSE, 20_000.0, horizon=HORIZON)
    looks = [row for row in found.allocation if row.kind == "look"]
    assert looks
    assert {row.arm for row in found.allocation} <= {name for runs in CLOSE.values() for name in runs}
    assert found.spend <= 20_000.0 * (1 + 1e-9)
    (finish,) = [row for row in found.allocation if row.kind == "finish"]
    assert finish.arm == found.choice
    assert finish.reason.startswith(f"the run to take of {found.chosen_arm}, the choice: ")
    others = [row for row in looks if by_name(found, row.arm).called != found.chosen_arm]
    assert all(
        re.match(rf"its arm, with \d+ % to end highest, may pass {found.chosen_arm}; ", row.reason) for row in others
    )
    mates = [row for row in looks if by_name(found, row.arm).called == found.chosen_arm and row.arm != found.choice]
    assert all(row.reason.startswith("a seed of the present choice (") for row in mates)


def test_less_is_spent_on_telling_seeds_of_one_arm_apart() -> None:
    together = plan({"one": close_arms(2000.0, 6)}, PLENTY, horizon=HORIZON)
    assert together.expected_regret == 0.0
    assert not [row for row in together.allocation if row.kind == "look"]
    assert [row for row in plan(close_arms(2000.0, 6), PLENTY, horizon=HORIZON).allocation if row.kind == "look"]


@pytest.mark.parametrize(("seeds", "knows"), [(1, 1.0), (2, 0.5), (4, 0.25)])
def test_a_look_at_one_of_several_seeds_has_the_closed_form(seeds: int, knows: float) -> None:
    """Arm 0 is .5. Each seed of arm 1 is N(.48, .05^2), and one of them is seen as it is."""
    own = 0.48 + 0.05 * np.random.default_rng(0).standard_normal((400_000, seeds))
    ends = np.column_stack([np.full(len(own), 0.5), own])
    nothing = Prospect(np.empty(0), np.empty(0))
    prospects = [nothing, Prospect(np.array([200.0]), np.array([1e-9])), *[nothing] * (seeds - 1)]
    middles = [ends[:, [1]] if at == 1 else np.empty((len(ends), 0)) for at in range(seeds + 1)]
    belief = Belief(ends, middles, prospects, np.full(seeds + 1, 100.0), sizes=(1, seeds))
    look = belief.look(1, 0)
    moved, gap = 0.05 * knows, 0.02
    expected = moved * norm.pdf(gap / moved) - gap * norm.sf(gap / moved)
    assert look.value == pytest.approx(expected, rel=0.03)
    belief.after(look)
    assert belief.saved() == pytest.approx(expected, rel=0.1)


def test_a_seed_that_fell_counts_for_its_arm() -> None:
    """It may befall the arm's next seed, too."""
    high = [arm_of(f"high {at}", at, 6000.0, 24, A=0.66, B=1.9, C_mid=1800.0) for at in range(2)]
    reward = high[0].reward.copy()
    reward[-8:] = 0.03
    fell = Curve(high[0].compute, reward, unit="GPU-hours", name="fell", prompts=1000, samples=16)
    low = [arm_of(f"low {at}", 5 + at, 6000.0, 24, A=0.60, B=1.9, C_mid=1800.0) for at in range(2)]
    found = plan({"high": [fell, high[1]], "low": low}, PLENTY, horizon=HORIZON)
    assert by_name(found, "fell").misfit is not None
    assert found.chosen_arm == "low"
    assert plan({"high": high, "low": low}, PLENTY, horizon=HORIZON).chosen_arm == "high"


@pytest.mark.parametrize(
    ("curves", "names"),
    [
        ([("x", None), ("y", None)], ["x", "y"]),
        ([("run", 3), ("run", 7)], ["a s3", "a s7"]),
        ([("run", None), ("run", None)], ["a (1)", "a (2)"]),
        ([("run", 3), ("run", 3)], ["a (1)", "a (2)"]),
        ([("other", 1), ("run", 2)], ["a s1", "a s2"]),  # the other arm's run is called so
    ],
)
def test_seeds_have_names_of_their_own(curves: Sequence[tuple[str, int | None]], names: Sequence[str]) -> None:
    def run(at: int, name: str, seed: int | None) -> Curve:
        one = arm_of(name, at, 4000.0, 12, A=0.6, B=1.9, C_mid=1800.0)
        return Curve(one.compute, one.reward, unit="GPU-hours", name=name, seed=seed, prompts=1000, samples=16)

    seeds = [run(at, *told) for at, told in enumerate(curves)]
    others = [run(8, "other", None), run(9, "further", None)]
    found = plan({"a": seeds, "b": others if "other" in dict(curves) else others[1]}, PLENTY, horizon=HORIZON)
    assert [one.arm for one in found.arms][:2] == names


def test_one_arm_of_several_seeds_is_the_only_one() -> None:
    found = plan({"even": EVEN}, PLENTY, horizon=HORIZON)
    assert found.sentence.startswith(f"even is the only arm, {found.choice} the run to take: ")
    assert plan({"even": EVEN}, 1000.0).horizon == 5000.0  # nothing of the budget is for choosing
    assert plan({"even": EVEN, "uneven": UNEVEN}, 1000.0).horizon == 4500.0


def test_the_sentence_is_of_arms() -> None:
    assert SEEDED.sentence.startswith("even, the mean of 3 seeds, ends highest at 16,000 GPU-hours with ")
    assert SEEDED.to_dict()["chosen_arm"] == "even"
    lower = {f"lower s{at}": seed_of(f"lower s{at}", 20 + at, 0.4) for at in range(2)}
    found = plan({"even": EVEN, "lower": lower}, PLENTY, horizon=HORIZON)
    assert found.dominated == ("lower s0", "lower s1")
    assert "; lower can be dropped" in found.sentence


def test_a_seed_is_not_stopped_for_another_one_of_its_arm() -> None:
    apart = {f"a s{at}": seed_of(f"a s{at}", at, top) for at, top in enumerate((0.66, 0.60))}
    lower = {"b": seed_of("b", 5, 0.40)}
    alone = advise_sweep([*apart.values(), *lower.values()], budget=HORIZON)
    assert {name for name, one in alone.items() if one.reason.startswith("Dominated")} == {"a s1", "b"}
    found = advise_sweep({"a": apart, **lower}, budget=HORIZON)
    assert {name for name, one in found.items() if one.reason.startswith("Dominated")} == {"b"}
    assert found["b"].reason.endswith("(a leads).")
    assert found["a s0"].numbers["p_best"] == found["a s1"].numbers["p_best"]
    other = advise_sweep({"a": lower, "c": apart, "d": {"x": seed_of("x", 6, 0.4), "y": seed_of("y", 7, 0.4)}})
    assert other["x"].reason.startswith("Dominated: d is ")
    with pytest.raises(AdviceError, match=r"arms\['a'\]"):
        advise_sweep({"a": []})


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"a": [], "b": FITS[0]}, "arms['a']"),
        ({"a": {}, "b": FITS[0]}, "arms['a']"),
        ({"a": {"x": 3}, "b": FITS[0]}, "arms['a']['x']"),
        ({"a": [FITS[0], "b"]}, "arms['a']"),
        ({"a": 7}, "arms['a']"),
        ({"a": {"x": FITS[0]}, "b": {"x": FITS[1]}}, "'x' twice"),
        ({"a": {"x": FITS[0], "y": FITS[1]}, "b": {"a": FITS[2]}}, "'a' twice"),  # a run that is called as an arm
        ({1: FITS[:2], "1": FITS[2:]}, "'1' twice"),
    ],
)
def test_what_is_no_arm_is_refused(arms: object, message: str) -> None:
    with pytest.raises(PlanError, match=message.replace("[", r"\[")):
        plan(arms, 1000.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"closed": ["even"]}, {"going": {"even": 9000.0}}])
def test_of_an_arm_of_several_seeds_runs_are_what_goes_or_is_closed(given: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="is an arm of several runs, got 'even'; name those of its runs"):
        plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON, **given)


def test_a_spread_of_seeds_that_cannot_be_is_refused() -> None:
    with pytest.raises(CompareError, match="seed sd"):
        plan({"even": EVEN}, 1000.0, seed_sd=-1.0)


def test_runs_that_share_a_budget_are_chosen_by_their_arms() -> None:
    runners = {
        name: Runner(one, arm=arm) for arm, runs in (("even", EVEN), ("uneven", UNEVEN)) for name, one in runs.items()
    }
    found = next_round(runners, PLENTY, HORIZON, 8)
    assert found.plan is not None
    assert found.plan.to_dict() == plan({"even": EVEN, "uneven": UNEVEN}, PLENTY, horizon=HORIZON).to_dict()
    wide = next_round(runners, PLENTY, HORIZON, 8, seed_sd=0.1).plan
    assert wide is not None
    assert wide.chosen.p_best < found.plan.chosen.p_best
    alone = next_round({name: replace(one, arm=None) for name, one in runners.items()}, PLENTY, HORIZON, 8).plan
    assert alone is not None
    assert alone.choice == "uneven s0"
    spent = next_round(runners, 0.0, HORIZON, 8)
    assert spent.plan is not None
    assert (spent.over, spent.plan.chosen_arm) == ("the budget is spent", "even")


def test_a_sweep_of_seeds_ends_with_one_run_of_an_arm() -> None:
    sweep = synthetic_sweep(4, arms=3, seeds=2, spread="table", noise="white", evaluations=20)
    arms = {track.name: track.arm for track in sweep.tracks}
    assert sorted(arms) == [f"arm {arm} s{seed}" for arm in (1, 2, 3) for seed in (1, 2)]
    assert len({track.final for track in sweep.tracks}) == 3
    *_, last = rounds_of(sweep, sweep.full_cost, 6)
    assert last.found.over is not None
    assert last.found.plan is not None
    assert last.found.plan.chosen_arm == arms[last.found.plan.choice]
    worth = {track.arm: track.final for track in sweep.tracks}
    assert last.found.plan.chosen_arm == max(worth, key=lambda arm: worth[arm])
