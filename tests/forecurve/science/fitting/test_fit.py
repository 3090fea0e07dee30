"""The posterior: exact where it can be known, calibrated by simulation, honest where the ceiling is not identified."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, CurveError, Prior, PriorError, fit, predict_ending, sibling_prior
from forecurve.science.arrays import FloatArray
from forecurve.science.curves.noise import ALPHA_PRIOR
from forecurve.science.curves.wandering import hypotheses_for
from forecurve.science.posterior.prior import C_MID_REACH, LOG_B_BOX
from forecurve.science.wording import compute_text

from ..dense import wandering_covariance
from ..synthetic import exact_curve, flat_log_b, noisy_curve, sigmoid


def test_the_truth_is_recovered_from_noise_free_evaluations() -> None:
    result = fit(exact_curve())
    assert result.A.median == pytest.approx(0.6, abs=2e-3)
    assert result.B.median == pytest.approx(1.7, rel=0.02)
    assert result.C_mid.median == pytest.approx(30.0, rel=0.02)
    assert result.R0.median == pytest.approx(0.2, abs=2e-3)
    assert abs(result.best.A - 0.6) < 1e-6


# --- an independent oracle: random-walk MCMC on the same model with dense covariances ---


def _mcmc(curve: Curve, walkers: int = 60, steps: int = 6000) -> FloatArray:
    """Draws of (A, R0, ln B, ln C_mid), alpha integrated and hypotheses summed; shape (4, n)."""
    x, y, v = curve.compute, curve.reward, curve.noise.variance
    unit, (shape, rate) = v[:8].mean(), ALPHA_PRIOR[curve.noise.source]
    guesses = hypotheses_for(len(x))
    clock = np.concatenate([[0.0], np.cumsum(np.clip(np.diff(x) / np.median(np.diff(x)), 0.2, 5))])
    dense = [np.diag(v / unit) + wandering_covariance(guess, clock, unit) for guess in guesses]
    inverses = np.stack([np.linalg.inv(m) for m in dense])
    constants = np.array([np.log(h.weight) - np.linalg.slogdet(m)[1] / 2 for h, m in zip(guesses, dense, strict=True)])
    low = np.array([0, 0, LOG_B_BOX[0], np.log(x[x > 0][0] / C_MID_REACH)])
    high = np.array([1, 1, LOG_B_BOX[1], np.log(x[-1] * C_MID_REACH)])

    def log_density(theta: FloatArray) -> FloatArray:
        A, R0, log_b, log_mid = theta.T
        inside = ((theta > low) & (theta < high)).all(axis=1) & (A > R0)
        with np.errstate(divide="ignore", over="ignore"):
            g = 1 / (1 + (np.exp(log_mid)[:, None] / x) ** np.exp(log_b)[:, None])
        residual = y - (R0[:, None] + (A - R0)[:, None] * g)
        q = np.einsum("wn,hnm,wm->hw", residual, inverses, residual) / unit
        each = constants[:, None] - (shape + len(y) / 2) * np.log(rate + q / 2)
        top = each.max(axis=0)
        total = top + np.log(np.exp(each - top).sum(axis=0)) - np.log(1 - R0) + flat_log_b(log_b)
        return np.where(inside, total, -np.inf)

    rng = np.random.default_rng(0)
    start = fit(curve).draws(walkers, seed=1)
    theta = np.stack([start.A, start.R0, np.log(start.B), np.log(start.C_mid)], axis=1)
    now, kept, half = log_density(theta), [], walkers // 2
    for step in range(steps):
        # differential evolution: one half jumps along differences within the other one
        moving, still = (slice(0, half), slice(half, walkers)) if step % 2 else (slice(half, walkers), slice(0, half))
        others = theta[still][rng.permuted(np.tile(np.arange(half), (half, 1)), axis=1)[:, :2]]
        size = 1.0 if step % 10 < 2 else 2.38 / np.sqrt(8) * rng.uniform(0.5, 1.2)
        trial = theta[moving] + size * (others[:, 0] - others[:, 1]) + rng.normal(0, 1e-5, (half, 4))
        value = log_density(trial)
        accept = np.log(rng.uniform(size=half)) < value - now[moving]
        theta[moving] = np.where(accept[:, None], trial, theta[moving])
        now[moving] = np.where(accept, value, now[moving])
        if step > steps // 5 and step % 10 < 2:
            kept.append(theta[moving].copy())
    return np.concatenate(kept).T


@pytest.mark.parametrize("last", [1200.0, pytest.param(4000.0, marks=pytest.mark.slow)])
def test_the_quadrature_agrees_with_a_long_mcmc(last: float) -> None:
    """Early the ceiling is hardly identified and the posterior is long and bent; later it is nearly normal."""
    curve = noisy_curve(5, last=last, points=10)
    chain, result = _mcmc(curve), fit(curve)
    log_b, log_mid = (
        [np.log(getattr(e, end)) for end in ("lower", "median", "upper")] for e in (result.B, result.C_mid)
    )
    for ours, theirs in (
        ([result.A.lower, result.A.median, result.A.upper], chain[0]),
        ([result.R0.lower, result.R0.median, result.R0.upper], chain[1]),
        (log_b, chain[2]),
        (log_mid, chain[3]),
    ):
        lower, median, upper = np.quantile(theirs, (0.05, 0.5, 0.95))
        np.testing.assert_allclose(ours, [lower, median, upper], atol=0.08 * (upper - lower))


# --- invariances ---


@settings(max_examples=15, deadline=None)
@given(scale=st.floats(1e-6, 1e6), seed=st.integers(0, 50))
def test_the_unit_of_compute_does_not_matter(scale: float, seed: int) -> None:
    curve = noisy_curve(seed, points=12)
    other = Curve(curve.compute * scale, curve.reward, prompts=1000, samples=16)
    one, two = fit(curve), fit(other)
    assert two.A.median == pytest.approx(one.A.median, abs=0.02 * one.A.width + 1e-4)
    assert two.A.upper == pytest.approx(one.A.upper, abs=0.05 * one.A.width + 1e-4)
    assert two.C_mid.median / scale == pytest.approx(one.C_mid.median, rel=0.02)


def test_a_stated_range_is_only_a_change_of_scale() -> None:
    plain = noisy_curve(4)
    moved = Curve(plain.compute, plain.reward * 2 - 1, prompts=1000, samples=16, bounds=(-1.0, 1.0))
    one, two = fit(plain), fit(moved)
    assert two.A.median == pytest.approx(2 * one.A.median - 1, abs=1e-9)
    assert two.predict(9000).upper90[0] == pytest.approx(2 * one.predict(9000).upper90[0] - 1, abs=1e-9)


def test_a_fit_is_deterministic() -> None:
    curve = noisy_curve(1)
    assert fit(curve).A == fit(curve).A
    one, two = fit(curve).draws(50, seed=3), fit(curve).draws(50, seed=3)
    np.testing.assert_array_equal(one.C_mid, two.C_mid)


# --- identifiability ---


def test_an_early_run_says_that_its_ceiling_is_not_identified() -> None:
    result = fit(noisy_curve(0, last=900.0, points=8))
    assert result.identified["A"] < 0.3
    assert result.A.upper > 0.85
    assert not result.ceiling_identified
    assert "not identified yet" in result.sentence()
    when = result.decide_at()
    assert when is not None
    assert 900 < when < 16000


def test_a_finished_run_has_identified_everything() -> None:
    result = fit(noisy_curve(0, last=16000.0, points=90))
    assert min(result.identified.values()) > 0.9
    assert result.A.width < 0.02
    assert result.decide_at() == result.curve.now


def test_ceilings_are_known_about_when_it_was_said_that_they_would_be() -> None:
    ratios = []
    for seed in range(10):
        whole = noisy_curve(seed, last=16_050.0, points=107)
        when = fit(whole.until(1200.0)).decide_at()
        assert when is not None
        later = whole.compute[whole.compute > max(1200.0, 0.5 * when)][::2]
        known = next(compute for compute in later if fit(whole.until(float(compute))).ceiling_identified)
        ratios.append(known / when)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.2)
    assert np.max(ratios) < 1.7


def test_every_share_is_a_share() -> None:
    for curve in (noisy_curve(0, points=3), Curve([1, 2, 3], [0.5, 0.5, 0.5]), Curve([1, 2, 3], [1, 1, 1])):
        assert all(0 <= share <= 1 for share in fit(curve).identified.values())


# --- calibration ---


def _runs(kind: str, number: int, limit: float, seed: int) -> tuple[list[bool], list[float]]:
    rng = np.random.default_rng(seed)
    compute = np.linspace(0, 16000, 99)
    covered, errors = [], []
    for _ in range(number):
        truth = (rng.normal(0.619, 0.02), np.exp(rng.normal(0.61, 0.15)), np.exp(rng.normal(7.84, 0.25)), 0.2)
        noise = rng.normal(0, 0.0035, 99)
        if kind == "wandering":
            step = rng.normal(0, 0.006 * np.sqrt(1 - 0.7**2), 99)
            walk = [rng.normal(0, 0.006)]
            for at in range(1, 99):
                walk.append(0.7 * walk[-1] + step[at])
            noise = noise + np.array(walk)
        curve = Curve(compute, np.clip(sigmoid(compute, *truth) + noise, 0, 1), prompts=1000, samples=16)
        at_end = fit(curve.until(limit)).predict(16000.0).at(0)
        actual = float(sigmoid(np.array([16000.0]), *truth)[0])
        covered.append(at_end.lower <= actual <= at_end.upper)
        errors.append(abs(at_end.median - actual))
    return covered, errors


@pytest.mark.parametrize(
    ("kind", "limit", "least", "worst"),
    [("white", 4000.0, 0.8, 0.05), ("white", 8000.0, 0.8, 0.006), ("wandering", 8000.0, 0.7, 0.02)],
)
def test_the_90_percent_interval_covers_about_90_percent(kind: str, limit: float, least: float, worst: float) -> None:
    """60 runs a cell: a smoke test; the full table is a benchmark. `least` is 3 binomial sd below what was measured."""
    covered, errors = _runs(kind, 60, limit, seed=11)
    assert least <= np.mean(covered) <= 1.0
    assert np.mean(errors) < worst


# --- predictions ---


def test_an_evaluation_is_predicted_more_widely_than_the_curve() -> None:
    result = fit(noisy_curve(0), prior="paper")
    curve, evaluation = result.predict([9000, 16000]), result.predict_evaluation([9000, 16000])
    assert (evaluation.upper90 - evaluation.lower90 > curve.upper90 - curve.lower90).all()
    small = result.predict_evaluation(9000, prompts=100).at(0)
    assert small.width > 1.5 * evaluation.at(0).width


def test_headroom_is_the_ceiling_above_the_curve_and_never_negative() -> None:
    curve = noisy_curve(0)
    high = Curve(curve.compute, np.append(curve.reward[:-1], 0.9), prompts=1000, samples=16)  # a lucky last one
    for one in (curve, high):
        found = fit(one)
        draws = found.all_draws
        left = draws.A - draws.R0 - (draws.A - draws.R0) / (1 + (draws.C_mid / one.now) ** draws.B)
        assert found.headroom.median == pytest.approx(np.median(left), abs=1e-9)
        assert 0 <= found.headroom.lower < found.headroom.median < found.headroom.upper


def test_bands_are_ordered_and_stay_in_the_range() -> None:
    result = fit(noisy_curve(0, last=900, points=6))
    for band in (result.predict(np.geomspace(1, 1e6, 50)), result.predict_evaluation(np.geomspace(1, 1e6, 50))):
        order = np.stack([band.lower90, band.lower50, band.median, band.upper50, band.upper90])
        assert (np.diff(order, axis=0) >= 0).all()
        assert order.min() >= 0
        assert order.max() <= 1
    assert (np.diff(result.predict(np.geomspace(1, 1e6, 50)).median) >= 0).all()


def test_the_next_evaluations_fall_into_their_band() -> None:
    inside = []
    for seed in range(40):
        curve = noisy_curve(seed, last=8000, points=40)
        past = curve.until(6500)
        band = fit(past).predict_evaluation(curve.compute[past.points :])
        later = curve.reward[past.points :]
        inside.extend((band.lower90 <= later) & (later <= band.upper90))
    assert 0.85 <= np.mean(inside) <= 0.99  # the drift allows for more than these runs do


def test_compute_to_reach_a_target() -> None:
    result = fit(noisy_curve(0, last=16000, points=90))
    middle = result.compute_to_reach(0.5)
    truth = 2500 * ((0.5 - 0.2) / (0.61 - 0.5)) ** (1 / 1.9)
    assert middle.lower < truth < middle.upper
    assert middle.p_never == 0
    never = result.compute_to_reach(0.9)
    assert never.p_never > 0.97
    assert never.to_dict()["median"] is None
    assert result.compute_to_reach(0.1).median == 0


def test_a_prediction_at_no_sensible_compute_is_refused() -> None:
    result = fit(noisy_curve(0))
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="compute"):
            result.predict(bad)


# --- priors ---


def test_siblings_narrow_an_early_forecast_and_move_it_to_the_truth() -> None:
    siblings = [fit(noisy_curve(seed, A=0.6 + 0.01 * (seed % 3), last=16000, points=60)) for seed in range(5)]
    prior = sibling_prior(siblings)
    assert prior.name == "5 siblings"
    early = noisy_curve(9, last=1200, points=8)
    alone, helped = fit(early), fit(early, prior=prior)
    assert helped.A.width < 0.4 * alone.A.width
    assert helped.A.lower < 0.61 < helped.A.upper
    assert helped.identified["A"] < 0.75
    assert "by 5 siblings, hardly by its own data yet" in helped.sentence()


def test_data_overrule_a_wrong_prior() -> None:
    wrong = Prior("wrong", A=(0.9, 0.02), log_B=(0.0, 0.1))
    result = fit(noisy_curve(0, last=16000, points=60), prior=wrong)
    assert result.A.lower < 0.61 < result.A.upper


def test_one_finished_run_tells_where_the_next_may_go_and_two_tell_it_better() -> None:
    young = noisy_curve(9, last=1_500, points=8)
    alone = fit(young).A.width
    known = [fit(noisy_curve(seed, last=16_000, points=60)) for seed in range(2)]
    one, two = (fit(young, prior=sibling_prior(known[:number])) for number in (1, 2))
    assert one.prior.name == "1 sibling"
    assert two.A.width < one.A.width < 0.5 * alone
    assert one.A.lower < 0.61 < one.A.upper


def test_siblings_that_tell_nothing_give_the_flat_prior() -> None:
    early = [fit(noisy_curve(seed, last=300, points=5)) for seed in range(3)]
    assert not sibling_prior(early).informative
    assert not sibling_prior([]).informative


def test_an_impossible_prior_is_refused() -> None:
    with pytest.raises(PriorError, match="no such prior, got 'papr'"):
        fit(noisy_curve(0), prior="papr")
    with pytest.raises(PriorError, match="positive sd"):
        Prior("bad", A=(0.5, 0.0))
    with pytest.raises(PriorError, match="flat part"):
        Prior("bad", weight=1.0)


@pytest.mark.parametrize("size", ["prompts", "samples"])
@pytest.mark.parametrize("bad", [0, -1, float("inf")])
def test_an_evaluation_of_an_impossible_size_is_refused(size: str, bad: float) -> None:
    with pytest.raises(CurveError, match=f"^{size}: a number from 1"):
        fit(noisy_curve(0)).predict_evaluation(9000, **{size: bad})


# --- what a fit says ---


def test_the_dictionary_is_plain_json_with_the_fixed_keys() -> None:
    result = fit(noisy_curve(0, last=900, points=5))
    body = json.loads(json.dumps(result.to_dict(budget=16000), allow_nan=False))
    assert list(body) == [
        "series", "points", "A", "B", "C_mid", "R0", "identified", "ceiling_known", "misfit", "withheld", "cutoff",
        "outliers", "at_budget", "ending", "advice", "seconds",
    ]  # fmt: skip
    assert set(body["A"]) == {"median", "lower", "upper"}
    assert set(body["at_budget"]) == {"compute", "curve", "evaluation"}
    assert body["advice"]["action"] in {"stop", "continue", "scale", "undecided"}
    end = predict_ending(result, 16000)
    calibration = "without past runs"
    assert body["ending"] == {"compute": 16000.0, **end.to_dict(), "calibration": calibration}
    assert (result.to_dict()["at_budget"], result.to_dict()["ending"]) == (None, None)
    spent = result.to_dict(budget=800)
    assert (spent["at_budget"]["compute"], spent["ending"]) == (800, None)


def test_what_the_end_rests_on_is_said_of_past_runs_in_the_prior() -> None:
    past = [fit(noisy_curve(seed)) for seed in range(1, 3)]
    said = fit(noisy_curve(0, last=900, points=5), prior=sibling_prior(past)).to_dict(budget=16000)
    assert said["ending"]["calibration"] == "with 2 past runs"


def test_sentences_never_show_more_digits_than_the_interval_supports() -> None:
    wide = fit(noisy_curve(0, last=900, points=5)).sentence()
    assert "0.610" not in wide
    late = fit(noisy_curve(0, last=16000, points=90)).sentence(budget=16000)
    assert late.startswith("Ceiling 0.6")
    assert "of it reached" in late
    assert "GPU-hours more would buy +0.01" in late
    assert late.rstrip(".").endswith(("stop", "scale"))


@pytest.mark.parametrize("told", ["prompts", "counts"])
def test_many_small_evaluations_are_not_drawn_to_the_nearer_end_of_the_range(told: str) -> None:
    compute, rng = np.linspace(1 / 400, 1, 400), np.random.default_rng(0)
    rate = sigmoid(compute, 0.85, 1.6, 0.25, 0.3)
    errors = []
    for _ in range(12):
        counts = rng.binomial(2, rate[:, None], (400, 16))
        size: dict[str, Any] = {"prompts": 16} if told == "prompts" else {"counts": list(counts)}
        found = fit(Curve(compute, counts.mean(axis=1) / 2, samples=2, **size))
        errors.append(found.predict([1.0]).median[0] - rate[-1])
    assert abs(np.mean(errors)) < 0.009


def test_the_repr_is_one_readable_line() -> None:
    text = repr(fit(noisy_curve(0)))
    assert text.startswith("Fit('run 0': 41 evaluations to 8000 GPU-hours, A 0.6")
    assert "\n" not in text


def test_a_figure_has_the_bands_and_the_evaluations() -> None:
    pytest.importorskip("plotly")
    figure = fit(noisy_curve(0)).plot(budget=16000)
    assert [trace.name for trace in figure.data] == ["90 %", "50 %", "fit", "forecast", "evaluations"]


# --- cost and size ---


@pytest.mark.parametrize(("points", "limit"), [(10, 0.25), (100, 0.6)])
def test_a_refit_is_cheap(points: int, limit: float) -> None:
    """Bounds several times what was measured (20 and 60 ms on one core), so that only a change of order fails."""
    curve = noisy_curve(0, points=points)
    fit(curve)
    began = time.perf_counter()
    for _ in range(3):
        fit(curve)
    assert (time.perf_counter() - began) / 3 < limit


def test_a_very_long_curve_is_averaged_rather_than_slow() -> None:
    curve = noisy_curve(0, last=16000, points=20_000, sd=0.02)
    result = fit(curve)
    assert result.A.lower < 0.61 < result.A.upper
    assert result.seconds < 10
    assert result.points == 20_001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.41, "0.41"),
        (38.2, "38"),
        (2345.0, "2,300"),
        (1.5e11, "150,000,000,000"),
        (1e39, "1e+39"),
        (2.34e-30, "2.3e-30"),
    ],
)
def test_compute_is_written_without_an_exponent_for_everyday_sizes_only(value: float, text: str) -> None:
    assert compute_text(value) == text


def test_a_rise_at_the_very_beginning_of_a_long_run_is_read_rightly() -> None:
    """Neighbours are averaged beyond 400 evaluations, but not across the bend."""
    compute = np.arange(1.0, 20_001.0) / 2
    truth = {"A": 0.6, "B": 2.0, "C_mid": 50.0, "R0": 0.2}
    rates = sigmoid(compute, **truth)
    for seed in range(3):
        reward = np.random.default_rng(seed).binomial(1600, rates) / 1600
        found = fit(Curve(compute, reward, prompts=100, samples=16))
        assert found.misfit is None
        for name in ("C_mid", "R0"):
            estimate = getattr(found, name)
            middle, half = (estimate.lower + estimate.upper) / 2, (estimate.upper - estimate.lower) / 2
            assert abs(truth[name] - middle) < 1.5 * half  # the 90 % interval, and as much again on either side
