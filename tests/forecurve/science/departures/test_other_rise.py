"""Burr's law beside the sigmoid: how probable each is, and what becomes of evaluations to come."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import qmc
from scipy.stats import t as student

from forecurve.science import Curve, Fit, advise, fit, predict_ending, predict_mean, sibling_prior
from forecurve.science.arrays import FloatArray
from forecurve.science.departures.other_rise import P_BURR
from forecurve.science.posterior.prior import C_MID_REACH, LOG_B_BOX, PAPER, Prior

from ..posterior.test_oracles import flat_log_b, log_likelihood, log_rise_of
from ..synthetic import noisy_curve, sigmoid


def burr(compute: FloatArray, A: float, B: float, C_mid: float, R0: float) -> FloatArray:
    """The law, written down once more."""
    return R0 + (A - R0) * (1 - (1 + (np.asarray(compute, dtype=np.float64) / C_mid) ** B) ** (-1 / 3))


def _run(law, seed: int, last: float = 4000.0, points: int = 25, sd: float = 0.0035) -> Curve:  # type: ignore[no-untyped-def]
    compute = np.linspace(0, last, points + 1)
    reward = law(compute, 0.9, 2.0, 800.0, 0.2) + sd * np.random.default_rng(seed).normal(size=points + 1)
    return Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16, unit="GPU-hours")


def _share(found: Fit) -> float:
    return 0.0 if found.other_rise is None else found.other_rise.slower


def test_the_law_that_made_a_run_is_the_more_probable() -> None:
    assert np.median([_share(fit(_run(burr, seed))) for seed in range(5)]) > 0.9
    assert np.median([_share(fit(_run(sigmoid, seed, last=8000.0, points=60))) for seed in range(5)]) < 0.1


def test_ends_of_runs_of_the_other_law_are_foreseen() -> None:
    """Beside the sigmoid's own draws: of 8 runs seen to a quarter."""
    end = burr(np.array([16_000.0]), 0.9, 2.0, 800.0, 0.2)[0]
    both, alone = [], []
    for seed in range(8):
        found = fit(_run(burr, seed))
        both.append(abs(predict_mean(found, [16_000.0]).median - end))
        alone.append(abs(found.predict(16_000.0).median[0] - end))
    assert np.mean(both) < 0.6 * np.mean(alone)


def test_a_few_noisy_evaluations_leave_both_as_likely_as_they_were() -> None:
    assert _share(fit(_run(sigmoid, 1, points=4, sd=0.05))) == pytest.approx(P_BURR, abs=0.15)


@pytest.mark.parametrize(("law", "seed"), [(sigmoid, 3), (burr, 3), (sigmoid, 19)])
def test_its_probability_is_that_of_dense_integration(law, seed: int) -> None:  # type: ignore[no-untyped-def]
    """Evidence as the mean likelihood over the prior, by 2^18 points of a Sobol sequence.

    With seed 19 the mass has a peak and tails as wide as the box: no lattice is small enough for it, and 2^19 points
    are needed.
    """
    compute = np.linspace(0, 4000.0, 7)
    reward = law(compute, 0.9, 2.5, 2000.0, 0.05) + 0.05 * np.random.default_rng(seed).normal(size=7)
    curve = Curve(compute, np.clip(reward, 0, 1), prompts=60, samples=1)
    places = _places(compute, 19 if seed == 19 else 18)
    laws = (lambda odds: 1 / (1 + odds), lambda odds: 1 - (1 + 1 / odds) ** (-1 / 3))
    evidence = [logsumexp(_likelihoods(curve, places, rise) + flat_log_b(places[2])) for rise in laws]
    expected = 1 / (1 + 2 * np.exp(evidence[0] - evidence[1]))
    assert _share(fit(curve)) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("ceiling", "start"), [(0.6, 0.2), (0.2, 0.05)])
def test_how_far_a_run_is_like_past_ones_is_that_of_dense_integration(ceiling: float, start: float) -> None:
    """The probability of the informative part of the paper's prior, by the mean likelihood over either part."""
    compute = np.linspace(0, 8000.0, 9)
    reward = sigmoid(compute, ceiling, 1.8, 2500.0, start) + 0.05 * np.random.default_rng(4).normal(size=9)
    curve = Curve(compute, np.clip(reward, 0, 1), prompts=60, samples=1)
    A, R0, log_b, _ = places = _places(compute, 18)
    likelihood = _likelihoods(curve, places, lambda odds: 1 / (1 + odds))
    assert PAPER.A is not None
    assert PAPER.log_B is not None
    scale = np.sqrt((PAPER.dof - 2) / PAPER.dof)
    of_A, of_B = (
        student.logpdf(x, PAPER.dof, pair[0], pair[1] * scale) for x, pair in ((A, PAPER.A), (log_b, PAPER.log_B))
    )
    flat = np.log(1 - PAPER.weight) + logsumexp(likelihood + np.log(1 - R0) + log_rise_of(A, R0) + flat_log_b(log_b))
    informed = np.log(PAPER.weight) + logsumexp(likelihood + np.log(1 - R0) + of_A + of_B)
    expected = 1 / (1 + np.exp(flat - informed))
    assert fit(curve, prior="paper").posterior.informed.mean() == pytest.approx(expected, abs=0.02)


def _places(compute: FloatArray, power: int) -> tuple[FloatArray, ...]:
    """A, R0, ln B and ln C_mid, evenly spread over the flat part's box."""
    u = qmc.Sobol(4, seed=1).random_base2(power)
    log_b, log_mid = (low + (high - low) * u[:, at] for at, (low, high) in zip((2, 3), _boxes(compute), strict=True))
    return u[:, 0] + (1 - u[:, 0]) * u[:, 1], u[:, 0], log_b, log_mid


def _likelihoods(curve: Curve, places: tuple[FloatArray, ...], rise: Callable[[FloatArray], FloatArray]) -> FloatArray:
    A, R0, log_b, log_mid = places
    likelihood, parts = log_likelihood(curve), []
    for rows in np.array_split(np.arange(len(A)), 32):
        with np.errstate(divide="ignore", over="ignore"):
            g = rise((np.exp(log_mid[rows])[:, None] / curve.compute) ** np.exp(log_b[rows])[:, None])
        parts.append(likelihood(R0[rows, None] + (A - R0)[rows, None] * g))
    return np.concatenate(parts)


def _boxes(compute: FloatArray) -> tuple[tuple[float, float], tuple[float, float]]:
    return LOG_B_BOX, (float(np.log(compute[1] / C_MID_REACH)), float(np.log(compute[-1] * C_MID_REACH)))


def test_past_runs_leave_no_doubt_of_the_sigmoid_of_a_run_like_theirs() -> None:
    past = [fit(noisy_curve(seed)) for seed in range(1, 4)]
    early = noisy_curve(5, last=3000, points=15)
    assert _share(fit(early)) > 0.01
    assert fit(early, prior=sibling_prior(past)).other_rise is None
    assert fit(_run(burr, 1), prior=sibling_prior(past[:2])).other_rise is not None


def test_a_run_unlike_its_past_ones_is_doubted_as_one_without_any() -> None:
    """Its ceiling is far above theirs: the flat part of their prior is all that is left, and advice is what it was."""
    past = [fit(noisy_curve(seed, A=0.3, R0=0.05)) for seed in range(1, 4)]
    curve = _run(burr, 2)
    alone, known = fit(curve), fit(curve, prior=sibling_prior(past))
    assert known.other_rise is not None
    assert known.other_rise.untold.mean() > 0.95
    assert known.other_rise.slower == pytest.approx(_share(alone), abs=0.05)
    numbers = [advise(one, budget=16_000.0).numbers for one in (known, alone)]
    assert numbers[0]["p_slower_end"] == pytest.approx(known.other_rise.slower * known.other_rise.untold.mean())
    assert numbers[0]["expected_gain"] == pytest.approx(numbers[1]["expected_gain"], rel=0.1)


def test_a_sentence_says_where_another_law_leads_beyond_the_ceiling() -> None:
    found = fit(_run(burr, 1))
    assert predict_ending(found, 16_000.0).median > found.A.upper
    assert re.fullmatch(
        r"Ceiling 0\.\d+ \(90 %: [0-9. to]+\) by a sigmoid, but a slower end than a sigmoid's is more probable "
        r"\((over )?9\d %\) and leads beyond it; \+0\.\d+ \(0\.\d+ to 0\.\d+\) expected to "
        r"16,000 GPU-hours: (scale|continue)\.",
        found.sentence(budget=16_000.0),
    )
    within = found.sentence(budget=4_400.0)  # so near an end says nothing against the ceiling
    assert "of it reached" in within
    assert within.endswith("with a slower end than a sigmoid's: scale.")


def test_a_run_that_fell_has_no_other_rise() -> None:
    compute = np.linspace(0, 4000.0, 26)
    reward = np.where(compute > 3000, 0.1, sigmoid(compute, 0.61, 1.2, 1500.0, 0.2))
    found = fit(Curve(compute, reward, prompts=1000, samples=16, unit="GPU-hours"))
    assert found.misfit == "collapse"
    assert found.other_rise is None


def test_the_curve_and_its_parameters_stay_the_sigmoids() -> None:
    """And the band of evaluations is that of the share that each law has."""
    found = fit(_run(burr, 2))
    other = found.other_rise
    assert other is not None
    assert other.slower > 0.9
    later = np.array([16_000.0])
    A, B, C_mid, R0 = (getattr(found.all_draws, name)[:, None] for name in ("A", "B", "C_mid", "R0"))
    by_hand = np.median(sigmoid(later, A, B, C_mid, R0))
    assert found.predict(later).median[0] == pytest.approx(by_hand)
    draws = other.laws[0][0].all_draws
    assert np.median(draws.reward_at(later)) == pytest.approx(np.median(
        burr(later, draws.A, draws.B, draws.C_mid, draws.R0)
    ))  # fmt: skip
    assert found.predict_evaluation(later).median[0] > found.predict(later).median[0] + 0.01


def test_draws_are_mixed_in_the_shares() -> None:
    other = fit(_run(burr, 3, points=12, sd=0.01)).other_rise
    assert other is not None
    zeros = np.zeros((3, 2000))
    np.testing.assert_allclose(other.mixed(zeros, lambda law: zeros + 1).mean(axis=1), other.share, atol=0.002)


def test_draws_take_the_place_of_those_alone_that_no_past_run_speaks_for() -> None:
    """And are taken from all of the other law's, whose order is that of their ceilings."""
    other = fit(_run(burr, 3, points=12, sd=0.01)).other_rise
    assert other is not None
    untold, law = np.arange(2000) >= 1500, other.laws[0][0]
    few = replace(other, laws=((law, 0.3), (law, 0.1)), untold=untold)
    mixed = few.mixed(np.full(2000, -1.0), lambda law: np.linspace(0.0, 1.0, 2000))
    assert (mixed[~untold] == -1).all()
    taken = mixed[untold][mixed[untold] >= 0]
    assert len(taken) / 2000 == pytest.approx(few.share * untold.mean(), abs=0.002)
    np.testing.assert_allclose(np.quantile(taken, (0.1, 0.5, 0.9)), (0.1, 0.5, 0.9), atol=0.02)


def test_a_run_of_which_no_draw_is_like_its_past_ones_is_asked_under_the_flat_prior() -> None:
    """And one of which a single draw is, too."""
    sharp = Prior("5 runs", A=(0.3, 0.005), log_B=(0.7, 0.05), log_C_mid=(float(np.log(900.0)), 0.05), runs=5)
    found = fit(_run(burr, 2), prior=sharp)
    assert not found.posterior.informed.any()
    assert found.other_rise is not None
    assert not found.other_rise.laws[0][0].posterior.informed.any()
    assert found.other_rise.slower == pytest.approx(_share(fit(_run(burr, 2))), abs=0.02)


@pytest.mark.parametrize("law", [sigmoid, burr])
def test_a_stream_of_more_evaluations_than_are_fitted_whole_says_what_a_refit_says(law) -> None:  # type: ignore[no-untyped-def]
    """Beyond 400 a refit averages neighbours, and the stream holds what came since one by one."""
    compute = np.linspace(0, 8000.0, 411)
    noisy = law(compute, 0.7, 1.8, 900.0, 0.1) + 0.01 * np.random.default_rng(6).normal(size=411)
    curve = Curve(compute, np.clip(noisy, 0, 1))
    streamed = fit(curve.until(float(compute[-4])))
    for at in (-3, -2, -1):
        streamed = streamed.update((float(compute[at]), float(curve.reward[at])))
    assert streamed.setting.points > streamed.problem.setting.points, "the stream has not been refitted"
    assert _share(streamed) == pytest.approx(_share(fit(curve)), abs=0.05)


def test_draws_of_the_other_law_are_of_that_law() -> None:
    other = fit(_run(burr, 2)).other_rise
    assert other is not None
    slower = other.laws[0][0]
    assert slower.draws(5, seed=0).burr
    assert slower.problem.setting.burr


def test_a_stream_says_what_a_refit_says() -> None:
    curve = _run(burr, 4)
    streamed = fit(curve.until(float(curve.compute[-4])))
    for at in (-3, -2, -1):
        streamed = streamed.update((float(curve.compute[at]), float(curve.reward[at])))
    assert _share(streamed) == pytest.approx(_share(fit(curve)), abs=0.02)


def test_shares_do_not_depend_on_the_range_of_rewards() -> None:
    curve = _run(burr, 5, points=14, sd=0.01)
    percent = Curve(curve.compute, 100 * curve.reward, bounds=(0, 100), prompts=1000, samples=16, unit="GPU-hours")
    assert _share(fit(percent)) == pytest.approx(_share(fit(curve)), abs=1e-6)


def test_advice_heeds_a_slower_end_once_it_is_the_more_probable() -> None:
    """Of a run that Burr's law made a sigmoid alone says that less is left than there is."""
    found, end = fit(_run(burr, 2)), burr(np.array([4000.0, 16_000.0]), 0.9, 2.0, 800.0, 0.2)
    numbers = advise(found, budget=16_000.0).numbers
    assert numbers["p_slower_end"] > 0.9
    by_sigmoid = np.subtract(*found.all_draws.reward_at(np.array([16_000.0, 4000.0])))
    left = float(end[1] - end[0])
    assert numbers["gain"]["lower"] < left < numbers["gain"]["upper"]
    assert abs(numbers["expected_gain"] - left) < 0.5 * abs(by_sigmoid.mean() - left)


def test_advice_on_a_sigmoid_is_the_sigmoids() -> None:
    found = fit(_run(sigmoid, 3, last=8000.0, points=60))
    assert _share(found) < 0.5
    by_sigmoid = np.subtract(*found.all_draws.reward_at(np.array([16_000.0, 8000.0])))
    assert advise(found, budget=16_000.0).numbers["expected_gain"] == pytest.approx(by_sigmoid.mean(), rel=1e-9)
