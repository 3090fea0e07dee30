"""The value of a look: against Monte Carlo, closed forms and textbook conditioning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from forecurve.science.planning.belief import Belief, Prospect, knowledge_gradient

LINES = st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(LINES)
def test_the_knowledge_gradient_is_the_expected_rise_of_the_best_line(lines: list[tuple[float, float]]) -> None:
    mean, slope = np.array(lines).T
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    simulated = (mean[:, None] + slope[:, None] * z).max(axis=0).mean() - mean.max()
    assert knowledge_gradient(mean, slope) == pytest.approx(simulated, abs=2e-3)


def test_parallel_lines_have_no_value() -> None:
    assert knowledge_gradient(np.array([0.1, 0.5, 0.3]), np.array([0.7, 0.7, 0.7])) == 0.0


def _two_arms(noise: float, shared: float = 0.0) -> tuple[Belief, np.ndarray]:
    """Arm 0 known to be 0.5; arm 1 ~ N(0.48, .05^2), seen directly with noise; `shared` is common to both."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((400_000, 2))
    common = shared * z[:, 0]
    ends = np.stack([0.5 + common, 0.48 + common + 0.05 * z[:, 1]], axis=1)
    prospects = [Prospect(np.empty(0), np.empty(0)), Prospect(np.array([200.0]), np.array([noise]))]
    return Belief(ends, [np.empty((len(ends), 0)), ends[:, [1]]], prospects, np.array([100.0, 100.0])), ends


@pytest.mark.parametrize("noise", [1e-8, 0.05**2, 0.2**2])
def test_a_look_at_one_of_two_arms_has_the_closed_form(noise: float) -> None:
    belief, _ = _two_arms(noise)
    look = belief.look(1, 0)
    moved = 0.05**2 / np.sqrt(0.05**2 + noise)  # sd of the posterior mean that is to come
    z = 0.02 / moved
    assert look.value == pytest.approx(moved * (norm.pdf(z) - z * norm.sf(z)), rel=0.02, abs=1e-6)
    assert (look.spend, look.compute) == (100.0, 200.0)


def test_what_the_arms_share_is_worth_nothing() -> None:
    alone, _ = _two_arms(1e-8)
    together, _ = _two_arms(1e-8, shared=0.3)
    # the level common to both is far more uncertain, but it moves both alike
    assert together.look(1, 0).value < 2 * alone.look(1, 0).value


@pytest.mark.parametrize(("arms", "highest"), [(2, 0.5642), (4, 1.0294)])  # E[max] of so many standard normals
def test_looks_save_together_what_knowing_all_ends_would(arms: int, highest: float) -> None:
    ends = 0.5 + 0.05 * np.random.default_rng(2).standard_normal((100_000, arms))
    prospects = [Prospect(np.array([200.0]), np.array([1e-9]))] * arms
    belief = Belief(ends, [ends[:, [arm]] for arm in range(arms)], prospects, np.full(arms, 100.0))
    assert belief.saved() == pytest.approx(0.0, abs=1e-5)
    for arm in range(arms):
        belief.after(belief.look(arm, 0))
    assert belief.saved() == pytest.approx(0.05 * highest, rel=0.03)


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(4)))
def test_what_looks_save_together_does_not_hang_on_the_order_of_the_arms(order: list[int]) -> None:
    def saved(which: list[int]) -> float:
        ends = 0.5 + np.random.default_rng(3).normal(0.0, [0.01, 0.03, 0.05, 0.08], (2_000, 4))[:, which]
        prospects = [Prospect(np.array([200.0]), np.array([1e-4]))] * 4
        belief = Belief(ends, [ends[:, [arm]] for arm in range(4)], prospects, np.full(4, 100.0))
        for arm in range(4):
            belief.after(belief.look(arm, 0))
        return belief.saved()

    assert saved(order) == pytest.approx(saved([0, 1, 2, 3]), rel=1e-9)


def test_conditioning_on_a_look_is_that_of_a_joint_normal() -> None:
    rng = np.random.default_rng(1)
    root = rng.standard_normal((4, 4)) * 0.1
    draws = rng.standard_normal((50_000, 4)) @ root.T
    prospects = [Prospect(np.array([2.0, 3.0]), np.array([0.01, 0.02])), Prospect(np.empty(0), np.empty(0))]
    belief = Belief(draws[:, :2], [draws[:, 2:], np.empty((50_000, 0))], prospects, np.array([1.0, 1.0]))
    before = belief.covariance.copy()
    belief.after(belief.look(0, 1))
    precision = np.linalg.inv(before) + np.diag([0, 0, 1 / 0.01, 1 / 0.02])  # two independent measurements
    np.testing.assert_allclose(belief.covariance, np.linalg.inv(precision), rtol=1e-6, atol=1e-9)
    assert belief.now[0] == 3.0
    assert belief.best_look(np.inf) is None  # nothing is left to ask


def test_a_look_that_is_too_dear_is_not_taken() -> None:
    belief, _ = _two_arms(0.001)
    assert belief.best_look(99.0) is None
    look = belief.best_look(100.0)
    assert look is not None
    assert look.arm == 1
    assert look.rate == look.value / 100.0
