"""The range in which rewards are told changes no answer: the same curve in [0, 1] and in [low, high], at every door."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import (
    AdviceError,
    Backtest,
    Curve,
    Estimate,
    FrozenForecast,
    Prior,
    PriorError,
    advise,
    advise_sweep,
    backtest,
    compare,
    fit,
    freeze,
    plan,
    pool_seeds,
    sibling_prior,
    watch,
)
from forecurve.science.wording import compute_text, level_text

from .synthetic import noisy_curve, sigmoid

PERCENT = (0.0, 100.0)
RANGES = [PERCENT, (-1.0, 1.0), (-3.0, -2.5), (0.0, 1e-10)]


@dataclass(frozen=True)
class Range:
    """Where 0 and 1 go."""

    bounds: tuple[float, float]

    @property
    def width(self) -> float:
        return self.bounds[1] - self.bounds[0]

    def curve(self, one: Curve) -> Curve:
        return Curve(
            one.compute,
            np.clip(self.bounds[0] + self.width * one.reward, *self.bounds),
            unit=one.unit,
            name=one.name,
            prompts=one.prompts,
            samples=one.samples,
            bounds=self.bounds,
        )

    def level(self, value: Any) -> Any:
        """Levels in this range as in [0, 1]."""
        return (np.asarray(value) - self.bounds[0]) / self.width

    def size(self, value: Any) -> Any:
        """Differences in this range as in [0, 1]."""
        return np.asarray(value) / self.width


def near(value: Any, tolerance: float = 2e-3) -> Any:
    return value if value is None else pytest.approx(value, abs=tolerance, rel=tolerance)


def ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.lower, estimate.median, estimate.upper


def runs(*ceilings: float, points: int = 16, last: float = 8000.0) -> list[Curve]:
    return [noisy_curve(seed, A=A, points=points, last=last) for seed, A in enumerate(ceilings)]


CURVE = noisy_curve(3, points=20)
SIBLINGS = [fit(one) for one in runs(0.58, 0.6, 0.63, points=30, last=16_000.0)]


@pytest.mark.parametrize(("bounds", "prior"), list(product(RANGES, ["none", "paper"])))
def test_fits_and_what_they_predict_only_move(bounds: tuple[float, float], prior: str) -> None:
    to, few = Range(bounds), CURVE.until(4000.0)
    for one in (few, CURVE):
        a, b = fit(one, prior=prior), fit(to.curve(one), prior=prior)
        assert to.level(ends(b.A)) == near(ends(a.A))
        assert to.level(ends(b.R0)) == near(ends(a.R0))
        assert ends(b.B) == near(ends(a.B))
        assert ends(b.C_mid) == near(ends(a.C_mid))
        assert b.identified == near(a.identified)
        assert (b.misfit, b.decide_at()) == (a.misfit, near(a.decide_at()))
        for door in ("predict", "predict_evaluation"):
            assert to.level(ends(getattr(b, door)(16_000).at(0))) == near(ends(getattr(a, door)(16_000).at(0)))


def test_the_paper_s_prior_is_no_less_informative_in_percent() -> None:
    few = CURVE.until(3000.0)
    plain, percent = fit(few, prior="paper"), fit(Range(PERCENT).curve(few), prior="paper")
    assert percent.A.width / 100 == pytest.approx(plain.A.width, rel=0.01)
    assert percent.A.width < 0.5 * fit(Range(PERCENT).curve(few)).A.width


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    low=st.floats(-100, 100),
    width=st.floats(1e-2, 1e4),
    seed=st.integers(0, 50),
    now=st.sampled_from([3000.0, 8000.0, 16_000.0]),
    factor=st.sampled_from([1.0, 2.0, 4.0]),
)
def test_advice_does_not_hang_on_the_range(low: float, width: float, seed: int, now: float, factor: float) -> None:
    to = Range((low, low + width))
    one = noisy_curve(seed, last=16_000.0, points=40).until(now)
    a, b = (advise(fit(curve), budget=factor * now) for curve in (one, to.curve(one)))
    assert a.action == b.action
    assert to.size(b.numbers["delta"]) == pytest.approx(0.01)
    assert to.size([b.numbers["gain"][end] for end in ("lower", "median", "upper")]) == near(
        [a.numbers["gain"][end] for end in ("lower", "median", "upper")]
    )
    for name in ("p_gain_below_delta", "p_doubling_gains_delta", "identified_A", "decide_at"):
        assert b.numbers[name] == near(a.numbers[name], 0.01), name


def test_a_delta_that_is_given_is_in_the_reward_s_own_scale() -> None:
    done = fit(Range(PERCENT).curve(noisy_curve(1, last=60_000.0)))
    assert advise(done, budget=120_000.0, delta=1.0).numbers == advise(done, budget=120_000.0).numbers
    assert advise(done, budget=120_000.0).action == "stop"
    assert advise(done, budget=120_000.0, delta=1e-4).action != "stop"


@pytest.mark.parametrize("bounds", RANGES)
def test_a_watched_run_rings_alike_in_every_range(bounds: tuple[float, float]) -> None:
    to = Range(bounds)
    frozen, moved = freeze(fit(CURVE)), freeze(fit(to.curve(CURVE)))
    moved = FrozenForecast.from_dict(moved.to_dict())
    later = np.linspace(8400.0, 12_000.0, 10)
    expected = fit(CURVE).predict(later).median
    for reward in (expected, expected - np.linspace(0.0, 0.1, 10)):
        a = watch(frozen, later, reward)
        b = watch(moved, later, bounds[0] + to.width * reward)
        assert (a.level, a.since_compute) == (b.level, b.since_compute)
        np.testing.assert_allclose(b.z, a.z, atol=0.02)


@pytest.mark.parametrize("bounds", RANGES)
def test_a_comparison_gives_the_same_verdicts_in_every_range(bounds: tuple[float, float]) -> None:
    to = Range(bounds)
    group = {
        "base": runs(0.6, 0.6, 0.6, points=30, last=16_000.0),
        "same": [noisy_curve(seed, A=0.6, points=30, last=16_000.0) for seed in (11, 12, 13)],
        "low": [noisy_curve(seed, A=0.5, points=30, last=16_000.0) for seed in (21, 22, 23)],
    }
    a = compare(group, "base")
    b = compare({name: [to.curve(one) for one in curves] for name, curves in group.items()}, "base")
    assert a.verdicts == b.verdicts
    assert a.verdicts["low"] == "ceiling down"
    assert to.size(b.rope) == pytest.approx(a.rope) == pytest.approx(0.02)
    assert to.size(b.seed_spread.sd) == near(a.seed_spread.sd)
    for one, other in zip(a.arms, b.arms, strict=True):
        assert (one.seeds_needed, one.p_same) == (other.seeds_needed, near(other.p_same, 0.01))
        assert one.paper is not None
        assert other.paper is not None
        assert one.paper.verdict == other.paper.verdict


@pytest.mark.parametrize("bounds", RANGES)
def test_seeds_pool_to_the_same_spread_in_every_range(bounds: tuple[float, float]) -> None:
    to = Range(bounds)
    pooled, plain = pool_seeds([[fit(to.curve(one.curve)) for one in SIBLINGS]]), pool_seeds([SIBLINGS])
    assert to.size(pooled.ceiling.sd) == near(plain.ceiling.sd)
    assert pooled.ceiling.dof == near(plain.ceiling.dof, 0.02)
    assert pooled.log_compute.sd == near(plain.log_compute.sd)


@pytest.mark.parametrize("bounds", RANGES)
def test_a_plan_and_a_sweep_s_advice_are_the_same_in_every_range(bounds: tuple[float, float]) -> None:
    to, arms = Range(bounds), runs(0.5, 0.6, 0.62, points=10, last=4000.0)
    a, b = plan(arms, 30_000.0), plan([to.curve(one) for one in arms], 30_000.0)
    assert (a.choice, a.settled, a.dominated, a.look_again) == (b.choice, b.settled, b.dominated, b.look_again)
    assert [(row.arm, row.kind) for row in a.allocation] == [(row.arm, row.kind) for row in b.allocation]
    assert to.size(b.delta) == pytest.approx(0.01)
    assert to.size(b.expected_regret) == near(a.expected_regret)
    alone = advise_sweep([fit(one) for one in arms], budget=16_000.0)
    moved = advise_sweep([fit(to.curve(one)) for one in arms], budget=16_000.0)
    assert {name: each.action for name, each in alone.items()} == {name: each.action for name, each in moved.items()}


TEN = runs(*np.linspace(0.56, 0.65, 10), points=20, last=16_000.0)


@cache
def in_its_own_range(prior: str) -> Backtest:
    return backtest(TEN, **asked(prior))


def asked(prior: str) -> dict[str, Any]:
    return {"fractions": [0.5], "prior": prior, "baselines": ("paper-grid", "power-law", "last-value")}


@pytest.mark.parametrize(
    ("bounds", "prior"),
    [(bounds, "paper") for bounds in RANGES]
    + [pytest.param(bounds, "siblings", marks=pytest.mark.slow) for bounds in RANGES],  # the prior's range is below
)
def test_a_backtest_is_the_same_in_every_range(bounds: tuple[float, float], prior: str) -> None:
    to = Range(bounds)
    a, b = in_its_own_range(prior), backtest([to.curve(one) for one in TEN], **asked(prior))
    for one, other in zip(a.rows, b.rows, strict=True):
        assert (one.method, one.withheld, one.calibration) == (other.method, other.withheld, other.calibration)
        assert to.level(other.predicted) == near(one.predicted)
        if one.lower is not None:
            assert to.level((other.lower, other.upper)) == near((one.lower, one.upper))


# --- what a prior carries ---


def test_a_prior_from_siblings_in_one_range_serves_a_curve_in_another() -> None:
    few, percent = CURVE.until(2000.0), Range(PERCENT)
    plain = sibling_prior(SIBLINGS)
    wide = sibling_prior([fit(percent.curve(one.curve)) for one in SIBLINGS])
    assert plain.A is not None
    assert wide.A is not None
    assert (plain.bounds, wide.bounds) == ((0.0, 1.0), PERCENT)
    assert (wide.A[0] / 100, wide.A[1] / 100) == near(plain.A)
    wanted = ends(fit(few, prior=plain).A)
    for curve, prior in ((percent.curve(few), plain), (percent.curve(few), wide)):
        assert percent.level(ends(fit(curve, prior=prior).A)) == near(wanted)
    assert ends(fit(few, prior=wide).A) == near(wanted)


def test_siblings_in_several_ranges_count_as_shares_of_their_range() -> None:
    mixed = sibling_prior([SIBLINGS[0], *(fit(Range(PERCENT).curve(one.curve)) for one in SIBLINGS[1:])])
    alike = sibling_prior(SIBLINGS)
    assert near(alike.A) == mixed.A
    assert mixed.log_B == near(alike.log_B)


def test_a_prior_is_refused_for_another_unit_of_compute_or_an_impossible_ceiling() -> None:
    other = Curve(CURVE.compute, CURVE.reward, unit="FLOP")
    with pytest.raises(PriorError, match="unit: the curve counts FLOP, got GPU-hours; convert") as caught:
        fit(other, prior=sibling_prior(SIBLINGS))
    assert caught.value.field == "unit"
    with pytest.raises(PriorError, match="unit: siblings must share one unit of compute, got FLOP, GPU-hours"):
        sibling_prior([*SIBLINGS, fit(other)])
    with pytest.raises(PriorError, match="A: a ceiling lies in"):
        fit(CURVE, prior=Prior("percent", A=(61.0, 4.0)))
    stated = fit(CURVE, prior=Prior("percent", A=(61.0, 4.0), bounds=PERCENT))
    assert ends(stated.A) == near(ends(fit(CURVE, prior=Prior("plain", A=(0.61, 0.04))).A))


# --- questions that cannot be ---


@pytest.mark.parametrize("bad", [-5.0, 0.0, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["now", "budget", "delta", "price"])
def test_advice_refuses_numbers_that_cannot_be(field: str, bad: float) -> None:
    with pytest.raises(AdviceError, match=f"^{field}: ") as caught:
        advise(SIBLINGS[0], **{field: bad})
    assert (caught.value.field, str(caught.value.value)) == (field, str(bad))
    assert caught.value.way_out
    if field != "now":
        with pytest.raises(AdviceError, match=f"^{field}: "):
            advise_sweep(SIBLINGS, **{field: bad})


# --- in words ---


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.412, "0.41"),
        (3.44, "3.4"),
        (2316.0, "2,300"),
        (3.2e8, "320,000,000"),
        (3.2e25, "3.2e+25"),
        (1e-7, "1e-7"),
    ],
)
def test_compute_in_words_has_two_digits(value: float, text: str) -> None:
    assert compute_text(value) == text


def test_a_sentence_about_floating_point_operations_stays_short() -> None:
    curve = noisy_curve(1, last=16_000.0)
    flop = Curve(curve.compute * 1e21, curve.reward, unit="FLOP", prompts=1000, samples=16)
    assert "to 3.2e+25 FLOP" in advise(fit(flop), budget=3.2e25).reason


def test_words_in_percent_have_no_more_digits_than_their_interval_supports() -> None:
    wide, narrow = Estimate(40.123, 20.0, 60.0), Estimate(40.123, 38.0, 43.0)
    assert (level_text(wide), level_text(narrow)) == ("40 (90 %: 20 to 60)", "40.1 (90 %: 38.0 to 43.0)")
    assert level_text(Estimate(1150.7, 998.2, 1304.0)) == "1,151 (90 %: 998 to 1,304)", "of a metric"


@pytest.mark.parametrize(
    ("bounds", "fell", "level"),
    [((0.0, 1.0), "0.37", "0.48"), (PERCENT, "37.0", "47.6"), ((0.0, 0.01), "0.0037", "0.0048")],
)
def test_sentences_tell_rewards_to_a_hundredth_of_their_range(
    bounds: tuple[float, float], fell: str, level: str
) -> None:
    to = Range(bounds)
    reward = CURVE.reward - np.where(np.arange(CURVE.points) >= 14, 0.364 + CURVE.reward - CURVE.reward[13], 0.0)
    fallen = Curve(CURVE.compute, np.clip(reward, 0.0, 1.0), prompts=1000, samples=16)
    assert f"by {fell}" in fit(to.curve(fallen)).sentence()
    slow, fast = noisy_curve(1, C_mid=2500.0), noisy_curve(2, C_mid=5500.0)
    compared = compare({"fast": [to.curve(slow)], "slow": [to.curve(fast)]}, "fast", seed_sd=0.0125 * to.width)
    assert compared.arms[0].multiplier is not None
    assert f"times as fast to {level}" in compared.arms[0].reason


@pytest.mark.parametrize("unit", [1e-3, 7.3, 3600.0])
@pytest.mark.parametrize("points", [12, 25, 60])
def test_the_unit_of_compute_has_no_say(points: int, unit: float) -> None:
    """An hour is 3600 seconds: the same posterior, to the last digits, and so the same alarm."""
    rng = np.random.default_rng(3)
    compute = np.linspace(200.0, 12_000.0, 60)
    reward = sigmoid(compute, 0.6, 1.9, 2500.0, 0.2) + rng.normal(0, 0.004, 60) - 0.02 * (np.arange(60) > 40)
    one, other = (Curve(compute[:points] * by, reward[:points], prompts=1000, samples=16) for by in (1.0, unit))
    told, same = fit(one), fit(other)
    assert same.A.to_dict() == pytest.approx(told.A.to_dict(), rel=1e-9)
    assert same.C_mid.median / unit == pytest.approx(told.C_mid.median, rel=1e-9)
    assert same.predict([16_000 * unit]).lower90 == pytest.approx(told.predict([16_000]).lower90, rel=1e-9)
    if points < 60:
        alarms = [
            watch(freeze(fitted), compute[points:] * by, reward[points:]) for fitted, by in ((told, 1.0), (same, unit))
        ]
        assert alarms[0].level == alarms[1].level
        assert alarms[1].e_value == pytest.approx(alarms[0].e_value, rel=1e-5)
