"""What siblings tell of the noise: whether it wanders, how large it is, and what that makes of a forecast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecurve.science import Curve, Fit, fit, sibling_prior
from forecurve.science.backtesting.siblings import Siblings
from forecurve.science.curves.noise import ALPHA_PRIOR, UNKNOWN_SD, NoiseKnown
from forecurve.science.curves.wandering import HYPOTHESES
from forecurve.science.past.family_noise import noise_known
from forecurve.science.posterior.prior import FLAT

from ..synthetic import noisy_curve, sigmoid

SLOW = np.array([kind.rho >= 0.95 for kind in HYPOTHESES])
WHITE = np.array([kind.eta == 0 for kind in HYPOTHESES])


def wandering_curve(
    seed: int, last: float = 16_000.0, points: int = 60, white: float = 0.0035, sd: float = 0.008, rho: float = 0.8
) -> Curve:
    rng = np.random.default_rng(seed)
    compute = np.linspace(0, last, points + 1)
    state = np.zeros(points + 1)
    state[0] = rng.normal()
    for at in range(points):
        state[at + 1] = rho * state[at] + np.sqrt(1 - rho**2) * rng.normal()
    reward = sigmoid(compute, 0.61, 1.9, 2500, 0.2) + sd * state + rng.normal(0, white, points + 1)
    return Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16, unit="GPU-hours")


def untold(curve: Curve) -> Curve:
    """The same evaluations, of whose size nothing is said."""
    return Curve(curve.compute, curve.reward, unit=curve.unit)


def told_by(curves: list[Curve]) -> NoiseKnown:
    found = noise_known([fit(curve) for curve in curves])
    assert found is not None
    return found


def width(found: Fit) -> float:
    band = found.predict(16_000.0).at(0)
    return band.upper - band.lower


def test_white_siblings_tell_of_white_noise_and_wandering_ones_of_wandering():
    white = told_by([noisy_curve(seed, last=16_000, points=60) for seed in range(6)])
    wandering = told_by([wandering_curve(seed) for seed in range(6)])
    usual = np.array([kind.weight for kind in HYPOTHESES])
    for known in (white, wandering):
        assert sum(known.weights) == pytest.approx(1.0)
        assert min(known.weights) > 0  # nothing is ruled out for the next run
    assert np.array(white.weights)[WHITE].sum() > 0.6 > usual[WHITE].sum()
    assert np.array(wandering.weights)[WHITE].sum() < 0.2 < usual[WHITE].sum()


def test_what_they_tell_narrows_the_forecast_of_a_white_run_and_widens_that_of_a_wandering_one():
    early = noisy_curve(50, last=8000, points=44)
    for curves, narrower in (
        ([noisy_curve(seed, last=16_000, points=60) for seed in range(6)], True),
        ([wandering_curve(seed) for seed in range(6)], False),
    ):
        known = told_by(curves)
        assert (width(fit(early, prior=replace(FLAT, noise=known))) < width(fit(early))) is narrower


def test_a_slow_wave_below_the_noise_of_an_evaluation_is_found_by_many_runs_together():
    """sd .01 beside .03, correlated over a hundred evaluations: no run shows it for certain."""
    runs = [wandering_curve(seed, points=300, white=0.03, sd=0.01, rho=0.99) for seed in range(10)]
    weights = np.array(told_by([untold(run) for run in runs]).weights)
    assert weights[SLOW].sum() > 0.4 > sum(kind.weight for kind in HYPOTHESES if kind.rho >= 0.95)
    still = [noisy_curve(seed, last=16_000, points=300, sd=0.03) for seed in range(10)]
    assert np.array(told_by([untold(run) for run in still]).weights)[SLOW].sum() < 0.15


def test_the_size_of_noise_is_told_where_the_evaluations_do_not_say_it():
    runs = [untold(noisy_curve(seed, last=16_000, points=40, sd=0.004)) for seed in range(5)]
    known = told_by(runs)
    shape, rate = known.alpha_prior("unknown")
    assert known.alpha_prior("known") == ALPHA_PRIOR["known"]  # no run whose variance is known
    assert UNKNOWN_SD * np.sqrt(rate / shape) == pytest.approx(0.004, rel=0.25)
    assert shape > 5 * ALPHA_PRIOR["unknown"][0]
    early = untold(noisy_curve(70, last=1500, points=6, sd=0.004))
    alone, helped = (fit(early, prior=replace(FLAT, noise=noise)) for noise in (None, known))
    assert helped.posterior.alpha.std() < 0.7 * alone.posterior.alpha.std()


def test_the_order_of_runs_does_not_matter():
    curves = [wandering_curve(0), noisy_curve(1, last=16_000), wandering_curve(2), noisy_curve(3, last=16_000)]
    there, back = told_by(curves), told_by(curves[::-1])
    assert there.weights == pytest.approx(back.weights, rel=1e-6)
    assert there.alpha_priors[0][1:] == pytest.approx(back.alpha_priors[0][1:], rel=1e-6)


def test_nothing_is_told_by_one_run_by_broken_ones_or_by_averages_of_neighbours():
    good = fit(noisy_curve(0, last=16_000))
    step = noisy_curve(1, last=16_000)
    broken = fit(Curve(step.compute, step.reward + 0.2 * (step.compute > 9000), prompts=1000, samples=16))
    long = fit(noisy_curve(2, last=16_000, points=450))
    assert broken.misfit == "break"
    assert long.averaged
    assert noise_known([good, broken, long]) is None
    assert noise_known([]) is None


def test_what_is_known_of_single_evaluations_is_not_asked_of_averages():
    known = told_by([noisy_curve(seed, last=16_000) for seed in range(3)])
    long = noisy_curve(9, last=16_000, points=450)
    assert fit(long, prior=replace(FLAT, noise=known)).A == fit(long).A


def test_siblings_that_have_not_risen_still_tell_of_the_noise():
    rng = np.random.default_rng(0)
    flat = [Curve(np.arange(1.0, 61.0), 0.2 + rng.normal(0, 0.0035, 60), prompts=1000, samples=16) for _ in range(8)]
    prior = sibling_prior([fit(curve) for curve in flat])
    assert not prior.informative
    assert prior.noise is not None
    assert np.array(prior.noise.weights)[WHITE].sum() > 0.5
    assert Siblings(flat).fit(0).prior.noise is not None


def test_a_stream_keeps_what_is_known_of_the_noise():
    prior = sibling_prior([fit(wandering_curve(seed)) for seed in range(5)])
    whole = wandering_curve(30, last=8000, points=40)
    streamed = fit(whole.until(5000), prior=prior)
    for point in zip(whole.compute[streamed.points :], whole.reward[streamed.points :], strict=True):
        streamed = streamed.update(point)
    again = fit(whole, prior=prior)
    assert "stream" in streamed.__dict__
    assert streamed.setting.log_weights.tolist() == again.setting.log_weights.tolist()
    assert abs(streamed.A.median - again.A.median) < 0.03 * again.A.width
