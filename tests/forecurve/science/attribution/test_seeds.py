"""The spread between seeds against closed forms: conjugate normal theory where a run's value is known exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, t

from forecurve.science import CompareError, SeedSpread, compare, pool_seeds
from forecurve.science.attribution.seeds import (
    CEILING_SPREAD,
    COMPUTE_SPREAD,
    differences,
    learn,
    means,
    summarised,
)

from ..sweeps import normal_draws
from ..synthetic import noisy_curve

SPREAD = SeedSpread(0.0125, 6.0)


def _exact(*values: float) -> list[np.ndarray]:
    return [np.full(3, value) for value in values]


def test_the_mean_of_one_run_is_its_posterior_widened_by_the_seed_spread() -> None:
    sds = np.array([0.005, 0.02])
    found = means([normal_draws(0.6, 0.01, 4000)], sds)
    for density, sd in zip(np.exp(found.log_density), sds, strict=True):
        wanted = norm.pdf(found.grid, 0.6, np.hypot(0.01, sd))
        assert np.abs(density - wanted).max() < 0.01 * wanted.max()


def test_several_runs_count_as_a_normal_model_says() -> None:
    values, errors, sd = (0.60, 0.63, 0.61), (0.004, 0.010, 0.006), 0.01
    found = means([normal_draws(v, e, 4000) for v, e in zip(values, errors, strict=True)], np.array([sd]))
    precision = 1 / (np.square(errors) + sd**2)
    mean, total = (precision * values).sum() / precision.sum(), 1 / np.sqrt(precision.sum())
    wanted = norm.pdf(found.grid, mean, total)
    assert np.abs(np.exp(found.log_density[0]) - wanted).max() < 0.01 * wanted.max()


def test_the_evidence_for_a_spread_is_the_marginal_likelihood() -> None:
    values, sds = np.array([0.60, 0.63, 0.61, 0.615]), np.array([0.006, 0.0125, 0.03])
    found = means(_exact(*values), sds).log_evidence

    def closed_form(sd: float) -> float:  # mu ~ N(0, 100^2) in place of a flat prior: its constant cancels
        return float(multivariate_normal.logpdf(values, np.zeros(4), sd**2 * np.eye(4) + 1e4))

    wanted = np.array([closed_form(sd) for sd in sds])
    assert np.allclose(found - found[0], wanted - wanted[0], atol=0.02)


def test_a_single_seed_teaches_nothing_of_the_spread() -> None:
    learned = summarised(SPREAD, learn([_exact(0.6), _exact(0.9)], SPREAD))
    assert learned.sd == pytest.approx(0.0125, rel=0.02)
    assert learned.dof == pytest.approx(6.0, rel=0.05)


def test_replicates_add_their_degrees_of_freedom_and_their_variance() -> None:
    rng = np.random.default_rng(3)
    groups = [0.6 + rng.normal(0, 0.008, 3) for _ in range(5)]
    learned = summarised(SPREAD, learn([_exact(*group) for group in groups], SPREAD))
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    dof = 6 + 10
    assert learned.dof == pytest.approx(dof, rel=0.05)
    assert learned.sd == pytest.approx(np.sqrt((6 * 0.0125**2 + squares) / dof), rel=0.02)


def test_a_known_spread_stays_as_it_is() -> None:
    known = SeedSpread(0.01)
    assert summarised(known, learn([_exact(0.5, 0.7)], known)) == known
    assert known.to_dict() == {"sd": 0.01, "dof": None, "past": 0}


def test_with_an_uncertain_spread_a_difference_of_single_seeds_has_the_tails_of_a_t() -> None:
    found = differences([(_exact(0.60), _exact(0.65))], [], SPREAD, 20_000)
    shares = np.array([0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995])
    wanted = 0.05 + np.sqrt(2) * 0.0125 * t.ppf(shares, 6)
    assert np.abs(np.quantile(found.draws[:, 0], shares) - wanted).max() < 0.004


def test_arms_share_the_error_of_their_control() -> None:
    control = _exact(0.60)
    found = differences([(control, _exact(0.60)), (control, _exact(0.61))], [], SeedSpread(0.01), 20_000)
    assert np.corrcoef(found.draws.T)[0, 1] == pytest.approx(0.5, abs=0.03)


def test_draws_are_the_same_every_time() -> None:
    pairs = [(_exact(0.60, 0.61), _exact(0.62))]
    first = differences(pairs, [], SPREAD, 500).draws
    assert (differences(pairs, [], SPREAD, 500).draws == first).all()


@pytest.mark.parametrize(
    ("sd", "dof"),
    [
        (0.0, 6),
        (-1.0, 6),
        (float("nan"), 6),
        (float("inf"), 6),
        (0.01, 0.0),
        (0.01, 0.1),
        (0.01, float("nan")),
        (0.1, "a"),
    ],
)
def test_an_impossible_spread_is_refused_with_its_value(sd: float, dof: float) -> None:
    with pytest.raises(CompareError, match=r"number.* is needed, got"):
        SeedSpread(sd, dof)


@pytest.mark.parametrize("past", ["x", -1, 1.5])
def test_a_spread_is_learned_from_a_number_of_runs(past: Any) -> None:
    with pytest.raises(CompareError, match="past: a whole number"):
        SeedSpread(0.01, 6.0, past)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rough", [False, True])
@pytest.mark.parametrize("sd", [1e-320, 1e-18, 500.0, 1e300])
def test_an_sd_that_has_nothing_to_do_with_seeds_is_refused(sd: float, rough: bool) -> None:
    """Else the grid of means is too fine to be counted, or the compute to a level beyond what a float holds."""
    for default in (CEILING_SPREAD.scaled(100.0), COMPUTE_SPREAD):
        with pytest.raises(CompareError, match=f"seed sd: an sd from .* is needed, .*{default.sd:g}"):
            SeedSpread.of(SeedSpread(sd, 6.0) if rough else sd, default)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dof", [0.5, float("inf")])
@pytest.mark.parametrize("times", [1e-6, 50.0])
def test_the_farthest_sd_that_is_taken_gives_finite_verdicts(times: float, dof: float) -> None:
    arms = {"a": noisy_curve(0, last=16_000.0, points=40), "b": noisy_curve(1, last=16_000.0, points=40)}
    spreads = [SeedSpread(times * one.sd, dof) for one in (CEILING_SPREAD, COMPUTE_SPREAD)]
    verdict = compare(arms, "a", seed_sd=spreads[0], seed_sd_log_compute=spreads[1]).arms[0]
    assert verdict.difference is not None
    assert verdict.multiplier is not None
    assert np.isfinite([verdict.difference.lower, verdict.difference.upper, verdict.multiplier.ratio.upper]).all()


@pytest.mark.parametrize("groups", [3, [3], [[noisy_curve(0)]], "ab"])
def test_what_is_no_group_of_fits_teaches_nothing(groups: Any) -> None:
    with pytest.raises(CompareError, match="groups"):
        pool_seeds(groups)
