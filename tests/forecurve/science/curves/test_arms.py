"""Seeds of one arm: which they are, what they tell of one another, and what of a further arm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from forecurve.science import Curve, Siblings, backtest, fit, sibling_prior
from forecurve.science.arrays import FloatArray
from forecurve.science.curves.arms import arm_of, past_like
from forecurve.science.past.nested import told_by_arms
from forecurve.science.posterior.prior import Prior
from tests.forecurve.science.synthetic import noisy_curve

BINS = np.linspace(0.0, 1.0, 401)
CENTRES = BINS[::2]
BETWEEN, WITHIN, WEIGHT = 0.03, 0.0125, 3.0


def known(values: FloatArray) -> FloatArray:
    """Likelihoods of runs whose parameter is known."""
    likelihood = np.zeros((len(values), len(BINS)))
    likelihood[np.arange(len(values)), np.abs(BINS - values[:, None]).argmin(axis=1)] = 1.0
    return likelihood


def told(values: FloatArray, arms: list[str], of: str | None) -> tuple[float, float]:
    mean, variance = told_by_arms(known(values), arms, of, BINS, CENTRES, BETWEEN, WITHIN, WEIGHT)
    return mean, float(np.sqrt(variance))


def sweep(rng: np.random.Generator, arms: int, seeds: int) -> tuple[FloatArray, list[str], FloatArray]:
    """Values of all runs, their arms, and the arms' own."""
    centres = 0.6 + rng.normal(0, 0.05, arms)
    values = (centres[:, None] + rng.normal(0, 0.01, (arms, seeds))).clip(0, 1)
    return values.ravel(), [f"arm {at}" for at in range(arms) for _ in range(seeds)], centres


@given(st.from_regex(r"[a-z][a-z0-9:=._-]{0,20}[a-z0-9]", fullmatch=True), st.integers(0, 99))
def test_the_seed_that_a_file_is_read_with_is_taken_off_again(name: str, seed: int) -> None:
    assert arm_of(f"{name} (seed {seed})", seed) == name
    assert arm_of(f"{name}_s{seed}", seed) == name
    assert arm_of(f"{name}_s{seed}", None) is None


def test_a_further_seed_is_told_by_its_arm_and_a_further_arm_by_all_of_them() -> None:
    values = np.array([0.5, 0.51, 0.49, 0.7, 0.71, 0.69])
    arms = ["low"] * 3 + ["high"] * 3
    (low, low_sd), (high, _), (other, other_sd) = (told(values, arms, of) for of in ("low", "high", None))
    assert (low, high, other) == pytest.approx((0.5, 0.7, 0.6), abs=0.004)
    assert low_sd < 0.02 < 0.05 < other_sd


def test_an_arm_of_many_seeds_counts_as_one_arm() -> None:
    values = np.array([0.5] * 9 + [0.6, 0.7])
    mean, _ = told(values, ["many"] * 9 + ["b", "c"], None)
    assert mean == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    ("arms", "seeds"), [(2, 5), pytest.param(3, 4, marks=pytest.mark.slow), pytest.param(8, 2, marks=pytest.mark.slow)]
)
def test_intervals_of_further_arms_and_seeds_cover_in_simulation(arms: int, seeds: int) -> None:
    rng, reach = np.random.default_rng(arms), student.ppf(0.95, 6)
    held = {"arm": [], "seed": []}
    for _ in range(150):
        values, names, centres = sweep(rng, arms, seeds)
        for kind, of, truth in (
            ("arm", None, 0.6 + rng.normal(0, 0.05) + rng.normal(0, 0.01)),
            ("seed", "arm 0", centres[0] + rng.normal(0, 0.01)),
        ):
            mean, scale = told(values, names, of)
            held[kind].append(abs(truth - mean) <= reach * scale)
    assert np.mean(held["arm"]) > 0.82
    assert 0.82 < np.mean(held["seed"]) <= 1.0


def test_runs_that_are_an_arm_each_are_told_as_before() -> None:
    curves = [noisy_curve(seed, last=16_000, points=40) for seed in range(4)]
    fits = [fit(Curve(c.compute, c.reward, unit=c.unit, name=f"run {at}")) for at, c in enumerate(curves)]
    assert sibling_prior(fits) == sibling_prior(fits, "another")
    assert isinstance(sibling_prior(fits), Prior)


def test_a_run_that_is_not_among_the_siblings_may_name_its_arm() -> None:
    curves = [noisy_curve(seed, last=16_000, points=40) for seed in range(4)]
    named = [
        Curve(c.compute, c.reward, unit=c.unit, name=f"{'ab'[at % 2]}_s{at}", seed=at) for at, c in enumerate(curves)
    ]
    siblings = Siblings(named)
    known, new = siblings.prior(arm="a").A, siblings.prior(arm="c").A
    assert known is not None
    assert new is not None
    assert new == siblings.prior().A
    assert known[1] < new[1]


def test_errors_are_asked_of_runs_that_stand_to_the_rest_as_the_past_to_the_new_one() -> None:
    arms = ["a", "a", "b", "b", "c"]
    assert past_like(arms, [0, 1, 2, 4], "b") == ([0, 1, 2, 4], True)
    assert past_like(arms, [0, 1, 2, 3], "c") == ([0, 2], False)
    assert past_like(arms, [], "c") == ([], False)
    assert past_like([None, None, "a"], [0, 1, 2], None) == ([0, 1, 2], False)


def test_seeds_of_an_arm_make_its_other_seeds_forecasts_sharp_and_its_own_name_is_what_does_it() -> None:
    """Two arms with ceilings .5 and .7: by name a quarter of a run knows which it is."""

    def made(named: bool) -> list[Curve]:
        curves = []
        for seed in range(8):
            A, rng = (0.5, 0.7)[seed % 2], np.random.default_rng(seed)
            compute = np.linspace(0, 16_000, 41)
            clean = 0.2 + (A - 0.2) / (1 + (3000 / np.maximum(compute, 1e-9)) ** 1.8)
            reward = clean + rng.normal(0, 0.006, 41)
            name = f"{'low' if A == 0.5 else 'high'} (seed {seed})" if named else f"run {seed}"
            curves.append(Curve(compute, reward, prompts=1000, samples=16, unit="h", name=name, seed=seed))
        return curves

    by_arm, by_run = (backtest(made(named), fractions=(0.25,), prior="siblings").summary[0] for named in (True, False))
    assert by_arm.raw_mae is not None
    assert by_run.raw_mae is not None
    assert by_arm.raw_mae < by_run.raw_mae
    assert by_arm.raw_width is not None
    assert by_run.raw_width is not None
    assert by_arm.raw_width < by_run.raw_width
