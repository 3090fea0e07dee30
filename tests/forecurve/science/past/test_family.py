"""The siblings' prior: against its closed form where siblings are known, and what badly known ones may say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, Siblings, fit, sibling_prior
from forecurve.science.arrays import FloatArray
from forecurve.science.past.exchangeable import WORTH
from forecurve.science.past.family import MEMBER, SPREAD, parameter_prior
from forecurve.science.posterior.prior import FLAT
from tests.forecurve.science.synthetic import StandIn, noisy_curve

KNOWN = np.array([[0.60, 0.6, 7.8], [0.66, 0.5, 8.3], [0.55, 0.9, 7.9], [0.62, 0.3, 8.6], [0.58, 0.7, 8.0]])


def stand_in(mean: FloatArray, sd: FloatArray, seed: int = 0) -> Any:
    """A fit of a run past its middle whose posterior is normal, as far as the family can see."""
    theta = mean + sd * np.random.default_rng(seed).standard_normal((4000, 3))
    theta[:, 0] = np.clip(theta[:, 0], 0.01, 0.99)
    draws = SimpleNamespace(A=theta[:, 0], B=np.exp(theta[:, 1]), C_mid=np.exp(theta[:, 2]), R0=np.zeros(4000))
    curve = Curve([400.0, 4000.0, 80_000.0], [0.1, 0.3, 0.5], unit="h")
    return StandIn(all_draws=draws, curve=curve, prior=FLAT, unit="h", misfit=None)


def told(fits: list[Any]) -> FloatArray:
    """(mean, sd) of (A, ln B, ln C_mid): (3, 2)."""
    prior = parameter_prior(fits)
    assert prior.A is not None
    assert prior.log_B is not None
    assert prior.log_C_mid is not None
    return np.array([prior.A, prior.log_B, prior.log_C_mid])


def flat_curve(seed: int) -> Curve:
    """A run that never rose."""
    rng = np.random.default_rng(seed)
    reward = np.clip(0.2 + rng.normal(0, 0.0035, 41), 0, 1)
    return Curve(np.linspace(0, 16_000, 41), reward, prompts=1000, samples=16, unit="GPU-hours")


def test_known_siblings_give_the_closed_form():
    mean, sd = told([stand_in(row, np.full(3, 1e-4)) for row in KNOWN]).T
    size = len(KNOWN)
    scatter = ((KNOWN - KNOWN.mean(axis=0)) ** 2).sum(axis=0) + WORTH * np.array(SPREAD) ** 2
    # scale of a new sibling's Student-t, and the variance of the centre
    variance = scatter / (size - 1 + WORTH) + scatter / size / (size + WORTH - 3)
    assert mean == pytest.approx(KNOWN.mean(axis=0), abs=0.02 * SPREAD[0])
    assert sd == pytest.approx(np.sqrt(variance), rel=0.02)


def test_what_is_not_known_of_siblings_is_not_what_they_differ_by():
    badly = np.array([0.06, 0.5, 0.8])
    rng = np.random.default_rng(3)
    centre = np.array([0.6, 0.6, 8.0])
    runs = [stand_in(centre + badly * rng.standard_normal(3), badly, seed) for seed in range(24)]
    mean, sd = told(runs).T
    assert (np.abs(mean - centre) < 0.6 * badly).all()
    assert (sd < 0.8 * badly).all()  # those of the medians are as far apart as badly says


def test_a_sibling_that_knows_nothing_of_a_parameter_says_nothing_of_it():
    runs = [stand_in(row, np.full(3, 1e-3)) for row in KNOWN]
    open_ended = stand_in(np.array([0.6, 0.6, 8.0]), np.array([0.001, 0.02, 0.02]))
    open_ended.all_draws.A = np.random.default_rng(1).uniform(0, 1, 4000)
    before, after = told(runs), told([*runs, open_ended])
    assert after[0] == pytest.approx(before[0], abs=0.003)


def test_the_order_of_siblings_does_not_matter():
    runs = [stand_in(row, np.array([0.03, 0.2, 0.3]), seed) for seed, row in enumerate(KNOWN)]
    assert told(runs[::-1]) == pytest.approx(told(runs), rel=1e-9)


def test_siblings_in_another_order_give_the_same_prior_to_the_last_digit() -> None:
    """Sums differ by the order of their terms, and what is adaptive behind them may tip."""
    fits = [fit(noisy_curve(seed, A=0.5 + 0.03 * seed, last=16_000, points=40)) for seed in range(5)]
    assert sibling_prior([fits[at] for at in (3, 0, 4, 2, 1)]) == sibling_prior(fits)


def test_a_prior_of_all_but_one_is_the_same_to_the_last_digit_when_it_is_made_alone() -> None:
    """What runs say by themselves is kept from one such prior to the next."""
    runs = [noisy_curve(seed, A=0.5 + 0.03 * seed, last=16_000, points=20) for seed in range(6)]
    curves = [replace(run, name=f"arm {seed // 2}", seed=seed % 2) for seed, run in enumerate(runs)]
    siblings = Siblings([*curves, curves[0]])  # a copy counts once
    for at, curve in enumerate(curves):
        others = [fit(other) for other in curves if other is not curve]
        assert siblings.prior(at) == sibling_prior(others, curve.arm, finished=len(others))


def test_runs_that_never_rose_lower_the_weight_and_say_nothing_else():
    risen = [fit(noisy_curve(seed, last=16_000, points=40)) for seed in range(3)]
    never = [fit(flat_curve(seed)) for seed in range(2)]
    alone, mixed = sibling_prior(risen), sibling_prior([*risen, *never])
    assert (alone.weight, mixed.weight) == (MEMBER, pytest.approx(MEMBER * 3 / 5))
    assert (mixed.name, mixed.A, mixed.log_B, mixed.log_C_mid) == ("3 siblings", alone.A, alone.log_B, alone.log_C_mid)
    assert not sibling_prior(never).informative


def test_slow_siblings_that_have_not_reached_their_middle_count():
    slow = [fit(noisy_curve(seed, C_mid=20_000, last=16_000, points=40)) for seed in range(4)]
    prior = sibling_prior(slow)
    assert prior.weight == MEMBER
    assert prior.log_C_mid is not None
    assert abs(prior.log_C_mid[0] - np.log(20_000)) < 2 * prior.log_C_mid[1]


def test_noisy_siblings_whose_ceilings_are_not_identified_narrow_a_forecast_together():
    noisy = [fit(noisy_curve(seed, B=3.0, last=5000, points=25, sd=0.04)) for seed in range(12)]
    assert all(found.identified["A"] < 0.5 for found in noisy[:3])
    early = noisy_curve(99, B=3.0, last=1500, points=10, sd=0.04)
    alone, helped = fit(early).predict(5000).at(0), fit(early, prior=sibling_prior(noisy)).predict(5000).at(0)
    truth = 0.2 + 0.41 / (1 + 0.5**3)
    assert helped.upper - helped.lower < 0.6 * (alone.upper - alone.lower)
    assert helped.lower < truth < helped.upper
