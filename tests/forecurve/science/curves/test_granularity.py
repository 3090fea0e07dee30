"""How many answers an evaluation rests on is read from the rewards where nobody says it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, Evaluation, fit
from forecurve.science.curves.granularity import LOOKED_AT, answers_told_by

from ..synthetic import noisy_curve, sigmoid

COMPUTE = np.arange(1.0, 41.0)
TRUTH = sigmoid(COMPUTE, 0.7, 1.6, 10, 0.2)


def _answered(answers: int, seed: int = 0, decimals: int = 12) -> np.ndarray:
    return np.round(np.random.default_rng(seed).binomial(answers, TRUTH) / answers, decimals)


@pytest.mark.parametrize("answers", [4, 8, 16, 30, 64])
@pytest.mark.parametrize("decimals", [4, 12])
def test_the_number_of_answers_is_found(answers: int, decimals: int) -> None:
    for seed in range(5):
        assert answers_told_by(_answered(answers, seed, decimals)) == answers


@pytest.mark.parametrize("answers", [512, 1319, 16_000])
def test_of_held_out_prompts_a_few_evaluations_tell_it(answers: int) -> None:
    for seed in range(5):
        assert answers_told_by(_answered(answers, seed)[::4]) == answers
        few = answers_told_by(_answered(answers, seed)[:3])
        assert few is None or answers % few == 0  # three rates may have a factor in common
    single = _answered(answers).astype(np.float32).astype(float)
    assert answers_told_by(single) == answers  # 32 bits wide once


def test_three_decimals_tell_500_answers_after_many_evaluations_alone() -> None:
    assert answers_told_by(_answered(500, decimals=3)[:12]) is None
    compute = np.linspace(1, 40, 64)
    many = np.random.default_rng(0).binomial(500, sigmoid(compute, 0.7, 1.6, 10, 0.2)) / 500
    assert answers_told_by(np.round(many, 3)) == 500


def test_sizes_that_change_are_not_taken_for_one() -> None:
    """Multiples of 1/72 and of 1/88 are all multiples of 1/792."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.choice([66, 72, 80, 88], 12)
        told = answers_told_by(rng.binomial(sizes, 0.4) / sizes)
        assert told is None or told <= 4 * sizes.max()


def test_numbers_that_know_nothing_of_answers_tell_none() -> None:
    rng = np.random.default_rng(0)
    for decimals in (3, 4, 6, 12):
        told = [answers_told_by(np.round(rng.uniform(0.2, 0.7, size), decimals)) for size in (3, 5, 10, 40) * 250]
        assert sum(one is not None for one in told) <= 2


def test_rewards_that_are_no_multiples_or_may_be_so_by_their_rounding_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    for seed in range(50):
        assert answers_told_by(noisy_curve(seed).reward) is None
        assert answers_told_by(np.round(rng.uniform(0, 1, 40), 2)) is None
    assert answers_told_by(np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])) is None  # a tenth is how they are written
    assert answers_told_by(np.zeros(30)) is None
    assert answers_told_by(np.array([0.0, 1.0, 0.5, 1.0])) is None


def test_the_noise_is_that_of_so_many_answers_and_what_is_told_goes_before() -> None:
    reward = _answered(16)
    found, told = Curve(COMPUTE, reward), Curve(COMPUTE, reward, prompts=16, samples=1)
    assert (found.answers, told.answers) == (16, None)
    assert found.prompts is None
    np.testing.assert_allclose(found.noise.variance, told.noise.variance)
    np.testing.assert_allclose(found.noise_at(np.array([0.3, 0.6])), told.noise_at(np.array([0.3, 0.6])))
    percent = Curve(COMPUTE, 100 * reward, bounds=(0, 100))
    assert percent.answers == 16
    np.testing.assert_allclose(percent.noise.variance, 1e4 * found.noise.variance)
    assert (found.noise.source, told.noise.source) == ("rewards", "binomial")
    one, other = fit(found).predict(200.0).at(0), fit(told).predict(200.0).at(0)
    assert one.median == pytest.approx(other.median, abs=0.1 * other.width)
    assert Curve(COMPUTE, reward, variance=1e-4).answers is None
    assert Curve(COMPUTE, reward, variance=0.0).answers == 16  # which says "unknown"


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 30), st.sampled_from([4, 8, 16, 1319]), st.integers(0, 999), st.booleans())
def test_one_evaluation_more_leads_to_the_same_curve_and_fit(size: int, answers: int, seed: int, breaks: bool) -> None:
    """Also where it tells the number for the first time, or takes it back."""
    reward = _answered(answers, seed)[: size + 1].copy()
    if breaks:
        reward[-1] = 0.4321
    longer = Curve(COMPUTE[:size], reward[:size]).extended(Evaluation(float(COMPUTE[size]), float(reward[size])))
    whole = Curve(COMPUTE[: size + 1], reward)
    assert longer.answers == whole.answers
    np.testing.assert_allclose(longer.noise.variance, whole.noise.variance)
    updated = fit(Curve(COMPUTE[:size], reward[:size])).update((float(COMPUTE[size]), float(reward[size])))
    again = fit(whole)
    width = max(again.A.width, 1e-3)
    assert updated.A.median == pytest.approx(again.A.median, abs=0.06 * width)


def test_a_size_that_is_told_later_takes_the_place_of_what_rewards_told() -> None:
    reward = _answered(16)
    first = Curve(COMPUTE[:30], reward[:30])
    assert first.answers == 16
    longer = first.extended(Evaluation(31.0, 0.65, prompts=400, samples=1))
    assert longer.answers is None
    assert longer.prompts is not None


def test_later_evaluations_change_nothing_of_what_the_first_told() -> None:
    compute = np.arange(1.0, LOOKED_AT + 11)
    reward = np.random.default_rng(1).binomial(8, 0.5, len(compute)) / 8
    reward[LOOKED_AT + 3] = 0.4321
    assert Curve(compute, reward).answers == 8
    assert Curve(compute[:LOOKED_AT], reward[:LOOKED_AT]).extended(Evaluation(LOOKED_AT + 1.0, 0.77)).answers == 8


def test_a_run_of_few_answers_is_no_collapse_for_its_noise() -> None:
    """Of 8 answers a step four in a row may be none right."""
    withheld = 0
    for seed in range(40):
        reward = np.random.default_rng(seed).binomial(8, 0.15, 20) / 8
        withheld += fit(Curve(np.arange(1.0, 21.0), reward)).withheld
    assert withheld <= 1


def test_a_part_is_of_as_many_answers_as_the_whole_run_told() -> None:
    """A run's last 3 evaluations tell nothing by themselves."""
    rng = np.random.default_rng(0)
    rewards = np.append(rng.binomial(16, 0.5, 27) / 16, [0.25, 0.5, 0.25])
    whole = Curve(np.arange(1, 31) * 10.0, rewards, unit="steps")
    later = whole.part(slice(27, None), 200.0)
    assert whole.answers == 16
    assert Curve(later.compute, later.reward, unit="steps").answers is None
    assert later.sizes == pytest.approx([16] * 3)
    assert later.noise.source == whole.noise.source == "rewards"
