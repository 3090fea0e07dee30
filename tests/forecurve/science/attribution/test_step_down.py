"""Many claims, one error rate: against scipy's Dunnett, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dunnett, norm

from forecurve.science.attribution.step_down import adjusted, below, bounds, critical, either_way

ARMS = 7


def _shared_control(rng: np.random.Generator, size: int, arms: int = ARMS) -> np.ndarray:
    """Unit normal z of arms against one control: correlation 1/2."""
    return np.asarray((rng.normal(size=(size, arms)) + rng.normal(size=(size, 1))) / np.sqrt(2))


def test_the_strongest_claim_has_the_p_of_dunnetts_test() -> None:
    rng = np.random.default_rng(5)
    n = 2000  # so many that the sd is known
    control, arms = rng.normal(0, 1, n), [rng.normal(0.02 * at, 1, n) for at in range(ARMS)]
    oracle = dunnett(*arms, control=control, alternative="greater", random_state=np.random.default_rng(1))
    p = norm.sf(oracle.statistic)
    reference = below(_shared_control(rng, 200_000))
    assert adjusted(p, reference)[p.argmin()] == pytest.approx(oracle.pvalue[p.argmin()], abs=0.004)


def test_the_critical_p_of_seven_arms_is_dunnetts() -> None:
    # one-sided 5 %, 7 arms, correlation 1/2, infinite degrees of freedom: z = 2.34 (Dunnett 1955, Table 1a)
    reference = below(_shared_control(np.random.default_rng(6), 200_000))
    assert norm.isf(critical(reference, 0.05)) == pytest.approx(2.34, abs=0.02)


def test_any_wrong_claim_is_as_rare_as_asked_when_all_claims_are_wrong() -> None:
    rng = np.random.default_rng(7)
    reference = below(_shared_control(rng, 20_000))
    seen = norm.sf(_shared_control(rng, 1000))
    wrong = np.mean([(adjusted(p, reference) <= 0.05).any() for p in seen])
    uncorrected = (seen <= 0.05).any(axis=1).mean()
    assert wrong == pytest.approx(0.05, abs=0.02)
    assert uncorrected > 0.15


def test_a_proven_claim_leaves_more_room_for_the_others() -> None:
    reference = below(_shared_control(np.random.default_rng(8), 20_000))
    alone = adjusted(np.array([0.012] + [0.5] * 6), reference)[0]
    beside = adjusted(np.array([0.012] + [1e-6] * 5 + [0.5]), reference)[0]
    assert beside < alone


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_adjusting_never_helps_a_claim_and_keeps_the_order(values: list[float]) -> None:
    p = np.array(values)
    found = adjusted(p, below(_shared_control(np.random.default_rng(9), 500, len(p))))
    assert ((found >= p - 1e-12) & (found <= 1)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


def test_ranks_are_shares_below() -> None:
    draws = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
    assert below(draws) == pytest.approx((draws - 0.5) / 3)


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0, 4.0])
def test_a_side_that_the_draws_chose_is_wrong_as_rarely_as_its_p_says(margin: float) -> None:
    error = np.random.default_rng(3).normal(size=20_000)
    p, reference = either_way(error - np.median(error) + 2.0, margin)
    assert p == pytest.approx(norm.sf(2.0 - margin) + norm.sf(2.0 + margin), abs=0.01)
    seen = np.abs(margin + np.random.default_rng(4).normal(size=20_000))  # of an effect at the edge
    expected = norm.sf(seen - margin) + norm.sf(seen + margin)
    levels = [0.02, 0.05, 0.2, 0.5, 0.8]
    assert np.quantile(reference, levels) == pytest.approx(np.quantile(expected, levels), abs=0.015)
    assert (reference <= 0.05).mean() == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_bound_lies_beyond_the_margin_exactly_where_the_claim_is_made(margin: float, side: float) -> None:
    error = np.random.default_rng(5).gamma(2.0, size=20_000)  # skewed: the two sides have tails of their own
    error = (error - np.median(error)) * side
    verdicts = []
    for middle in np.linspace(0, margin + 6, 60):
        lower, upper = bounds(side * middle + error, margin, 0.02)
        claimed = either_way(middle + side * error, margin)[0] <= 0.02
        assert (lower > margin if side > 0 else upper < -margin) == claimed
        verdicts.append(claimed)
    assert len(set(verdicts)) == 2


def test_bounds_leave_half_to_either_side_where_there_is_no_margin() -> None:
    draws = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    assert bounds(draws, 0.0, 0.05) == pytest.approx((-1.96, 1.96), abs=0.01)
    assert bounds(draws, 4.0, 0.05) == pytest.approx((-1.645, 1.645), abs=0.01)
