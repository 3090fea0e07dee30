"""compare(arms, control): one verdict an arm, from curves to sentences."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import forecurve
from forecurve.science import CompareError, Comparison, Curve, Fit, Prior, SeedSpread, compare, fit, pool_seeds
from forecurve.science.attribution.judge import Rules, judge
from forecurve.science.attribution.matched import matched_level
from forecurve.science.attribution.seeds import CEILING_SPREAD, COMPUTE_SPREAD

from ..sweeps import known_run, noisy_run
from ..synthetic import sigmoid

RULES = Rules(0.02, 0.95, CEILING_SPREAD, COMPUTE_SPREAD)
SEEDS = (-0.008, 0.001, 0.007)  # what three seeds do to a ceiling


@cache
def _arm(A: float, C_mid: float = 2500.0, first: int = 0) -> tuple[Fit, ...]:
    return tuple(fit(noisy_run(first + at, A + effect, C_mid)) for at, effect in enumerate(SEEDS))


@cache
def _young() -> Fit:
    return fit(noisy_run(50, last=2400, points=8))


@cache
def _sweep() -> Comparison:
    arms = {
        "base": _arm(0.61),
        "up": _arm(0.69, first=10),
        "down": _arm(0.53, first=20),
        "slow": _arm(0.61, 5500.0, first=30),
        "same": _arm(0.61, first=40),
        "young": _young(),
    }
    return compare(arms, "base")


def test_each_arm_gets_the_verdict_of_its_truth() -> None:
    assert _sweep().verdicts == {
        "up": "ceiling up",
        "down": "ceiling down",
        "slow": "efficiency slower",
        "same": "no difference shown",
        "young": "undecided",
    }


def _small(ceiling: float, seed: int) -> Curve:
    """A run that rises by 0.2, where a ceiling 0.018 higher makes it a fifth sooner at any level."""
    rng = np.random.default_rng([seed, int(1000 * ceiling)])
    compute = np.linspace(0, 100, 31)[1:]
    reward = sigmoid(
        compute, ceiling + 0.004 * rng.standard_normal(), 1.5, 8 * np.exp(0.03 * rng.standard_normal()), 0.2
    )
    noise = np.sqrt(reward * (1 - reward) / 16_000) * rng.standard_normal(30)
    return Curve(compute, reward + noise, prompts=2000, samples=8, start=0.2)


def test_a_ceiling_within_the_region_is_no_efficiency() -> None:
    """However many seeds show that a level is reached sooner: it is, by a difference that counts for none."""
    for first in (0, 100):
        runs = {at: [_small(0.4 + 0.018 * (at > 0), first + 10 * at + seed) for seed in range(5)] for at in range(4)}
        found = compare({"base": runs[0], "a": runs[1], "b": runs[2], "c": runs[3]}, "base")
        assert not any(arm.verdict == "efficiency" for arm in found.arms)
        for arm in found.arms:
            assert arm.multiplier is not None
            assert arm.multiplier.ratio.median > 1.05  # the number itself is what was measured


def test_a_seed_that_has_only_begun_takes_no_verdict_back() -> None:
    """It counts once its ceiling is known, or where no other's is; of seeds of one age all are waited for."""
    arms = {"base": _arm(0.61), "down": (*_arm(0.53, first=20), _young()), "same": _arm(0.61, first=40)}
    found = compare(arms, "base")
    assert found.verdicts == {"down": "ceiling down", "same": "no difference shown"}
    down = found.arms[0]
    assert (down.seeds, len(down.waiting)) == (3, 1)
    assert down.reason.endswith(f" Not counted yet, far younger: {down.waiting[0]}.")
    assert down.to_dict()["waiting"] == [_young().curve.name]
    control = compare({**arms, "base": (*_arm(0.61), _young())}, "base")
    assert control.verdicts == found.verdicts
    assert control.control_seeds == 3
    assert " Not counted yet of the control, far younger: " in control.sentence
    assert control.control_advice is None or "not identified" not in control.control_advice


def test_intervals_hold_the_truth() -> None:
    arms = {arm.arm: arm for arm in _sweep().arms}
    for name, truth in (("up", 0.08), ("down", -0.08), ("slow", 0.0), ("same", 0.0)):
        found = arms[name].difference
        assert found is not None
        assert found.lower < truth < found.upper
        assert arms[name].simultaneous is not None
        assert arms[name].simultaneous[0] < found.lower < found.upper < arms[name].simultaneous[1]
    assert arms["slow"].multiplier is not None
    assert arms["slow"].multiplier.ratio.lower < 2500 / 5500 < arms["slow"].multiplier.ratio.upper


def test_a_ceiling_that_is_not_identified_says_where_to_run_to() -> None:
    young = _sweep().arms[-1]
    assert young.run_to is not None
    assert 2400 < young.run_to < 16_000
    assert young.seeds_needed is None
    assert young.p_same is None
    assert young.simultaneous is None, "what it has reached is tested, not the difference"
    assert "its ceiling not identified yet: run to" in young.reason
    assert young.seed_note is not None
    assert young.seed_note.startswith("single seed, seed sd about 0.0")


def test_the_answer_is_json_without_nan_and_has_a_figure_and_a_table() -> None:
    comparison = _sweep()
    body = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert [arm["arm"] for arm in body["arms"]] == ["up", "down", "slow", "same", "young"]
    assert body["arms"][0]["paper"]["verdict"] == "ceiling up"
    assert body["replicates"] == 10
    assert len(comparison.plot().data) == 5 * 5 - 1  # whose ceiling is not known has no bounds beside all claims
    assert [row["verdict"] for row in comparison.table] == list(comparison.verdicts.values())
    assert "ceiling down" in repr(comparison)
    assert comparison.sentence.startswith("Against base: ceiling up: up (+0.0")


def test_the_order_of_arms_and_of_seeds_changes_nothing_but_the_order() -> None:
    forward = compare({"base": _arm(0.61), "up": _arm(0.69, first=10), "young": _young()}, "base")
    backward = compare({"young": _young(), "up": _arm(0.69, first=10)[::-1], "base": _arm(0.61)[::-1]}, "base")
    assert forward.verdicts == backward.verdicts
    first, last = forward.arms[0].difference, backward.arms[1].difference
    assert first is not None
    assert last is not None
    assert (first.median, first.lower, first.upper) == pytest.approx((last.median, last.lower, last.upper), abs=1e-12)
    assert [arm.arm for arm in backward.arms] == ["young", "up"]


def test_arms_that_share_a_run_may_come_in_any_order() -> None:
    """As where a seed of each never moved: such runs look alike."""
    still = fit(Curve(np.linspace(400.0, 8000.0, 20), np.zeros(20), unit="GPU-hours", prompts=1000, samples=16))
    one, other = [still, *_arm(0.61)], [still, *_arm(0.69, first=10)]
    forward = compare({"base": _arm(0.60, first=20), "one": one, "other": other}, "base")
    backward = compare({"base": _arm(0.60, first=20), "other": other, "one": one}, "base")
    found = {arm.arm: arm.to_dict() for arm in forward.arms}
    assert {arm.arm: arm.to_dict() for arm in backward.arms} == found


def test_the_scale_of_the_reward_and_the_unit_of_compute_do_not_matter() -> None:
    def moved(run: Fit) -> Curve:
        curve = run.curve
        return Curve(curve.compute * 60, curve.reward * 100, unit="minutes", prompts=1000, samples=16, bounds=(0, 100))

    arms = {"base": _arm(0.61), "slow": _arm(0.61, 5500.0, first=30)}
    plain = compare(arms, "base").arms[0]
    other = compare(
        {name: [moved(run) for run in runs] for name, runs in arms.items()}, "base", rope=2, seed_sd=SeedSpread(1.25, 6)
    ).arms[0]
    assert other.label == plain.label
    assert plain.multiplier is not None
    assert other.multiplier is not None
    assert other.multiplier.ratio.median == pytest.approx(plain.multiplier.ratio.median, rel=0.01)
    assert other.multiplier.level == pytest.approx(100 * plain.multiplier.level, rel=0.01)


def test_single_seeds_are_labelled_and_a_seeds_worth_of_difference_is_not_claimed() -> None:
    comparison = compare({"base": _arm(0.61)[0], "other": _arm(0.65, first=60)[2]}, "base")
    (arm,) = comparison.arms
    assert arm.difference is not None
    assert arm.difference.median > 0.04
    assert arm.verdict == "undecided"
    assert arm.seeds_needed is not None
    assert arm.seed_note == "single seed, seed sd assumed to be about 0.0125"
    known = compare({"base": _arm(0.61)[0], "other": _arm(0.65, first=60)[2]}, "base", seed_sd=0.002)
    assert known.verdicts == {"other": "ceiling up"}
    assert known.arms[0].seed_note == "single seed, seed sd given as 0.002"


def test_an_arm_that_is_slower_is_said_to_be_decided_by_few_seeds_and_is() -> None:
    slow, base = _arm(0.61, 5000.0, first=30), _arm(0.61)
    (one,) = compare({"base": base[1], "slow": slow[1]}, "base").arms
    assert one.verdict == "undecided"
    assert one.seeds_needed is not None
    assert one.seeds_needed <= 3
    assert one.multiplier is not None
    assert "times as fast" in one.reason
    enough = slice(one.seeds_needed)
    assert compare({"base": base[enough], "slow": slow[enough]}, "base").verdicts == {"slow": "efficiency slower"}


def test_copies_of_one_run_are_no_seeds() -> None:
    base, arm = _arm(0.61)[1], _arm(0.61, first=40)[1]
    copied = compare({"base": [base] * 3, "arm": [arm.curve, arm, arm]}, "base")
    once = compare({"base": base, "arm": arm}, "base")
    assert copied.to_dict() == once.to_dict()
    assert (copied.control_seeds, copied.arms[0].seeds, copied.replicates) == (1, 1, 0)
    assert copied.verdicts == {"arm": "undecided"}
    assert pool_seeds([[base, base, base]]) == pool_seeds([[base]])


def test_the_papers_rule_claims_what_a_single_seed_cannot_show() -> None:
    comparison = compare({"base": _arm(0.61)[0], "same": _arm(0.61, first=70)[2], "up": _arm(0.64)[2]}, "base")
    claimed = [arm.paper.verdict for arm in comparison.arms if arm.paper is not None]
    assert claimed[1] == "ceiling up"
    assert set(comparison.verdicts.values()) == {"undecided"}


def test_an_unknown_ceiling_is_not_proven_by_its_flat_prior_but_by_what_it_has_reached() -> None:
    wide = known_run(0.8, 0.12, identified=False, decide_at=30_000.0, now=2500.0)  # has reached 0.5
    beyond = known_run(0.9, 0.05, identified=False, decide_at=30_000.0)  # has reached 0.87
    arms = {"base": [known_run(0.61)] * 3, "wide": [wide] * 3, "beyond": [beyond] * 3}
    comparison = judge(arms, "base", RULES, "steps")
    assert comparison.verdicts == {"wide": "undecided", "beyond": "ceiling up"}
    assert comparison.arms[0].run_to == 30_000


def test_a_control_whose_ceiling_is_unknown_is_sent_on_first() -> None:
    young = known_run(0.7, 0.1, identified=False, decide_at=6000.0, now=2500.0)
    arms = {"base": [young], "low": [known_run(0.30)] * 2, "high": [known_run(0.61)] * 2}
    comparison = judge(arms, "base", RULES, "steps")
    assert comparison.verdicts == {"low": "ceiling down", "high": "undecided"}  # the control has reached 0.45
    assert comparison.arms[1].run_to == 6000
    assert "the control's ceiling not identified yet: run to 6,000 steps" in comparison.arms[1].reason
    assert comparison.control_advice is not None
    assert "run it to 6,000 steps" in comparison.control_advice


def test_a_collapsed_run_is_left_out_and_named() -> None:
    compute = np.linspace(0, 16_000, 41)
    fall = np.where(compute > 9000, 0.3, 0.0)
    noise = np.random.default_rng(3).normal(0, 0.0035, 41)
    collapsed = Curve(compute, sigmoid(compute, 0.61, 1.9, 2500, 0.2) - fall + noise, unit="GPU-hours", name="fell")
    comparison = compare({"base": _arm(0.61), "part": [*_arm(0.61, first=40)[:2], collapsed], "all": collapsed}, "base")
    part, every = comparison.arms
    assert part.seeds == 2
    ((name, misfit),) = part.left_out
    assert name == "fell"
    assert misfit == fit(collapsed).misfit
    assert f"Left out, no ceiling can be read: fell ({misfit})." in part.reason
    assert every.verdict == "undecided"
    assert every.difference is None
    reversed_ = compare({"fell": collapsed, "base": _arm(0.61)}, "fell")
    assert reversed_.verdicts == {"base": "undecided"}
    read_from = f"no ceiling can be read from fell ({misfit})"
    assert reversed_.sentence == f"Nothing can be compared with fell: {read_from}. Choose another control."


def test_fits_with_a_shared_prior_are_made_again_without_it() -> None:
    prior = Prior("wrong", A=(0.45, 0.01), weight=0.99)
    leaning = [fit(run.curve, prior=prior) for run in _arm(0.61, first=40)]
    again = compare({"base": _arm(0.61), "same": leaning}, "base").arms[0]
    flat = compare({"base": _arm(0.61), "same": _arm(0.61, first=40)}, "base").arms[0]
    assert again.difference == flat.difference


def test_the_multiplier_of_exact_curves_is_the_ratio_of_compute_to_the_level() -> None:
    base, arm = [known_run(0.60, C_mid=2000, B=2.0)] * 2, [known_run(0.50, C_mid=3000, B=2.0)] * 2
    level = matched_level(base, arm)
    assert level == pytest.approx(0.2 + 0.75 * 0.3)
    found = judge({"base": base, "arm": arm}, "base", RULES, "steps").arms[0].multiplier
    rise = 0.225

    def compute(A: float, C_mid: float) -> float:
        return C_mid * float(np.sqrt(rise / (A - 0.2 - rise)))

    assert found is not None
    assert found.ratio.median == pytest.approx(compute(0.60, 2000) / compute(0.50, 3000), rel=0.02)


def test_no_level_is_matched_where_one_run_starts_above_it() -> None:
    assert matched_level([known_run(0.6)], [known_run(0.9, R0=0.59)]) is None


def test_the_matched_level_is_one_that_every_run_has_reached() -> None:
    young = known_run(0.6, now=1500.0)
    level = matched_level([known_run(0.6)], [young])
    assert level == pytest.approx(float(sigmoid(np.array(1500.0), 0.6, 1.9, 2500.0, 0.2)))


def test_arms_alike_are_claimed_to_differ_in_at_most_one_sweep_of_twenty() -> None:
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(40):
        arms = {
            str(at): [known_run(rng.normal(0.61, 0.0125), 0.003, C_mid=2500 * rng.lognormal(0, 0.15)) for _ in range(2)]
            for at in range(5)
        }
        found = judge(arms, "0", RULES, "steps")
        wrong += bool({"ceiling", "efficiency"} & {arm.verdict for arm in found.arms})
    assert wrong <= 5  # binomial(40, 0.05): more than 5 in one of 72


@pytest.mark.parametrize(("rope", "moved"), [(1e-6, 0.0297), (0.02, 0.0469)])
def test_a_claim_of_the_ceiling_counts_both_sides_and_the_claim_of_the_speed_beside_it(
    rope: float, moved: float
) -> None:
    compute = np.linspace(0, 16_000, 21)
    base, arm = (
        Curve(compute, sigmoid(compute, A, 1.9, 2500.0, 0.2), name=f"to {A}", prompts=4000, samples=16)
        for A in (0.60, 0.60 + moved)
    )
    found = compare({"base": base, "arm": arm}, "base", rope=rope, seed_sd=0.01).arms[0]
    assert found.difference is not None
    sd = found.difference.width / (2 * norm.ppf(0.95))
    p = sum(norm.sf((found.difference.median + side) / sd) for side in (-rope, rope))
    assert found.certainty == pytest.approx((1 - p) ** 2, abs=0.007)
    assert found.verdict == "undecided"


@settings(max_examples=15, deadline=None)
@given(st.floats(-0.2, 0.2), st.integers(1, 4))
def test_a_swap_of_arm_and_control_turns_the_verdict_round(difference: float, seeds: int) -> None:
    low, high = [known_run(0.6, 0.002)] * seeds, [known_run(0.6 + difference, 0.002)] * seeds
    forward = judge({"a": low, "b": high}, "a", RULES, "steps").arms[0]
    backward = judge({"a": low, "b": high}, "b", RULES, "steps").arms[0]
    assert forward.difference is not None
    assert backward.difference is not None
    assert forward.difference.median == pytest.approx(-backward.difference.median, abs=1.5e-3)
    if abs(forward.certainty - 0.95) > 0.02 and "ceiling" in {forward.verdict, backward.verdict}:
        turned = {"ceiling up": "ceiling down", "ceiling down": "ceiling up"}
        assert backward.label == turned.get(forward.label, forward.label)


def test_the_seeds_of_past_sweeps_give_a_spread() -> None:
    pooled = pool_seeds([_arm(0.61), _arm(0.69, first=10), [_young()]])
    assert pooled.ceiling.past == pooled.log_compute.past == 4
    assert pooled.ceiling.dof == pytest.approx(10, abs=1.0)
    squares = 2 * 2 * np.var(SEEDS, ddof=1)
    assert pooled.ceiling.sd == pytest.approx(np.sqrt((6 * 0.0125**2 + squares) / 10), rel=0.15)


def test_past_seeds_tell_how_far_the_compute_to_a_level_varies() -> None:
    apart = [fit(noisy_run(60 + at, 0.61, C_mid)) for at, C_mid in enumerate((1500.0, 2500.0, 4200.0))]
    alike = [fit(noisy_run(60 + at, 0.61, 2500.0)) for at in range(3)]
    told = pool_seeds([apart]).log_compute
    squares = 2 * np.var(np.log((1500.0, 2500.0, 4200.0)), ddof=1)
    assert told.sd == pytest.approx(np.sqrt((6 * 0.20**2 + squares) / 8), rel=0.15)
    assert pool_seeds([alike]).log_compute.sd < 0.20 < told.sd


def test_past_seeds_decide_what_single_seeds_leave_open() -> None:
    sweep = {"base": _arm(0.61)[1], "up": _arm(0.67, first=10)[1], "slow": _arm(0.61, 5500.0, first=30)[1]}
    steady = [[fit(noisy_run(70 + 10 * arm + seed, 0.5 + 0.05 * arm)) for seed in range(4)] for arm in range(3)]
    pooled = pool_seeds(steady)
    alone = compare(sweep, "base")
    told = compare(sweep, "base", seed_sd=pooled.ceiling, seed_sd_log_compute=pooled.log_compute)
    assert alone.verdicts == {"up": "undecided", "slow": "undecided"}
    assert told.verdicts == {"up": "ceiling up", "slow": "efficiency slower"}
    assert alone.seed_note == "seed sd assumed to be about 0.0125"
    assert told.seed_note == f"seed sd about {told.seed_spread.sd:.2g} by replicates (9 in past sweeps)"
    assert told.to_dict()["seed_spread"]["past"] == 9
    assert told.arms[0].seed_note == f"single seed, {told.seed_note}"


def test_past_seeds_that_lie_apart_make_a_comparison_more_careful() -> None:
    sweep = {"base": _arm(0.61)[:2], "up": _arm(0.69, first=10)[:2]}
    wild = [[fit(noisy_run(100 + 10 * arm + seed, 0.5 + 0.04 * seed)) for seed in range(4)] for arm in range(2)]
    pooled = pool_seeds(wild)
    assert compare(sweep, "base").verdicts == {"up": "ceiling up"}
    careful = compare(sweep, "base", seed_sd=pooled.ceiling, seed_sd_log_compute=pooled.log_compute)
    assert careful.verdicts == {"up": "undecided"}
    assert careful.seed_note.endswith("by replicates (2 here and 6 in past sweeps)")


def test_the_public_door_is_the_same() -> None:
    assert forecurve.compare is compare
    assert forecurve.Comparison is Comparison


CURVE = Curve([1, 2, 4, 8], [0.2, 0.3, 0.4, 0.45], unit="GPU-hours")


@pytest.mark.parametrize(
    ("arms", "options", "parts"),
    [
        ({"a": CURVE, "b": CURVE}, {"control": "c"}, ["control", "a, b", "'c'"]),
        ({"a": CURVE}, {}, ["arms", "at least one arm beside the control"]),
        ({}, {}, ["control", "none"]),
        ({"a": CURVE, "b": []}, {}, ["'b'", "no runs"]),
        ({"a": CURVE, "b": [0.5]}, {}, ["'b'", "float", "a Curve or a Fit is needed"]),
        ({"a": CURVE, "b": Curve([1, 2, 3], [0.1, 0.2, 0.3], unit="steps")}, {}, ["unit", "GPU-hours, steps"]),
        ({"a": CURVE, "b": Curve([1, 2, 3], [1, 2, 3], bounds=(0, 9), unit="GPU-hours")}, {}, ["bounds", "one range"]),
        ({"a": CURVE, "b": CURVE}, {"rope": 0}, ["rope", "got 0"]),
        ({"a": CURVE, "b": CURVE}, {"rope": float("nan")}, ["rope", "nan"]),
        ({"a": CURVE, "b": CURVE}, {"level": 1.0}, ["level", "got 1.0"]),
        ({"a": CURVE, "b": CURVE}, {"seed_sd": -0.1}, ["seed sd", "-0.1"]),
    ],
)
def test_bad_input_is_named(arms: dict, options: dict, parts: list[str]) -> None:  # type: ignore[type-arg]
    with pytest.raises(CompareError) as caught:
        compare(arms, **{"control": "a", **options})
    for part in parts:
        assert part in str(caught.value)
