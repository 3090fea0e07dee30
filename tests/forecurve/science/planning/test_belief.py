"""The value of a look: against Monte Carlo, closed forms and textbook conditioning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from forecurve.science.planning.belief import Belief, Look, Prospect
from forecurve.science.planning.gradients import knowledge_gradients

LINES = st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(LINES)
def test_the_knowledge_gradient_is_the_expected_rise_of_the_best_line(lines: list[tuple[float, float]]) -> None:
    mean, slope = np.array(lines).T
    assert knowledge_gradients(mean, slope[None])[0] == pytest.approx(_simulated(mean, slope), abs=2e-3)


def _simulated(mean: np.ndarray, slope: np.ndarray) -> float:
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    return float((mean[:, None] + slope[:, None] * z).max(axis=0).mean() - mean.max())


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.floats(-6, 1), st.integers(0, 1000))
def test_looks_that_are_valued_together_are_worth_what_each_is_alone(
    looks: int, arms: int, size: float, seed: int
) -> None:
    """Also where most lines can never be on top, and where one row's can that no other's can."""
    rng = np.random.default_rng(seed)
    mean, slopes = rng.standard_normal(arms), 10.0**size * rng.standard_normal((looks, arms))
    together = knowledge_gradients(mean, slopes)
    assert together == pytest.approx([_simulated(mean, slope) for slope in slopes], abs=2e-3 * max(10.0**size, 1e-3))


def test_parallel_lines_have_no_value() -> None:
    assert knowledge_gradients(np.array([0.1, 0.5, 0.3]), np.array([[0.7, 0.7, 0.7]])).tolist() == [0.0]


def test_no_look_has_no_value() -> None:
    assert knowledge_gradients(np.array([0.1, 0.5]), np.empty((0, 2))).tolist() == []


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


NOISE = ([0.01, 0.02], [0.015, 0.03])


def _correlated() -> tuple[Belief, np.ndarray]:
    """Two arms of two bins each that all tell of one another, and their covariance: V first, then each arm's Y."""
    rng = np.random.default_rng(1)
    draws = rng.standard_normal((50_000, 6)) @ (rng.standard_normal((6, 6)) * 0.1).T
    prospects = [Prospect(np.array([2.0, 3.0]), np.array(noise)) for noise in NOISE]
    belief = Belief(draws[:, :2], [draws[:, 2:4], draws[:, 4:]], prospects, np.array([1.0, 1.0]))
    return belief, np.cov(draws.T, bias=True)


def _moves_by_the_textbook(covariance: np.ndarray, seen: list[int]) -> float:
    """sd of how far the looks at these of the six move the expected gap between the arms: by the joint precision."""
    noise = np.concatenate(NOISE)
    telling = np.zeros(6)
    telling[seen] = 1 / noise[np.array(seen) - 2]
    after = np.linalg.inv(np.linalg.inv(covariance) + np.diag(telling))  # independent measurements add up
    gap = np.array([1.0, -1.0, 0, 0, 0, 0])
    return float(np.sqrt(gap @ (covariance - after) @ gap))


def test_looks_one_after_the_other_save_what_a_joint_normal_says() -> None:
    belief, covariance = _correlated()
    mean_gap = abs(float(belief.mean[0] - belief.mean[1]))
    seen: list[int] = []
    for arm, edge in ((0, 0), (1, 1), (0, 1)):
        belief.after(belief.look(arm, edge))
        seen += [column for column in range(2 + 2 * arm, 3 + 2 * arm + edge) if column not in seen]
        moved = _moves_by_the_textbook(covariance, seen)
        z = mean_gap / moved
        assert belief.saved() == pytest.approx(moved * (norm.pdf(z) - z * norm.sf(z)), rel=0.02)
    assert belief.now.tolist() == [3.0, 3.0]
    assert belief.best_look(np.inf) is None  # nothing is left to ask


def test_a_look_after_others_is_worth_what_a_joint_normal_says() -> None:
    """What the first looks told of the second arm is known by then."""
    belief, covariance = _correlated()
    belief.after(belief.look(0, 1))
    look = belief.look(1, 1)
    noise = np.diag(np.concatenate(NOISE))
    seen, coming = [2, 3], [4, 5]
    known = covariance - covariance[:, seen] @ np.linalg.solve(
        covariance[np.ix_(seen, seen)] + noise[:2, :2], covariance[seen]
    )
    told = known[:2, coming] @ np.linalg.inv(known[np.ix_(coming, coming)] + noise[2:, 2:])
    moves = told @ known[coming, :2]  # covariance of how far both means move
    slope = moves[:, 1] / np.sqrt(moves[1, 1])  # along what matters to the arm that is looked at
    assert look.value == pytest.approx(_simulated(belief.mean, slope), rel=1e-3)


def test_the_best_look_is_that_with_the_highest_rate() -> None:
    belief, _ = _correlated()
    for _ in range(3):
        every = [
            belief.look(arm, edge)
            for arm in range(2)
            for edge in range(2)
            if belief.prospects[arm].edges[edge] > belief.now[arm]
        ]
        best = belief.best_look(np.inf)
        assert best is not None
        assert best == max(every, key=lambda look: look.rate)
        belief.after(best)


def test_no_look_is_worth_more_than_knowing_the_run_is() -> None:
    _, ends = _two_arms(1e-8)
    prospects = [Prospect(np.empty(0), np.empty(0)), Prospect(np.array([200.0]), np.array([1e-8]))]
    most = np.array([np.inf, 0.001])
    belief = Belief(ends, [np.empty((len(ends), 0)), ends[:, [1]]], prospects, np.array([100.0, 100.0]), most=most)
    assert belief.best_look(np.inf) == Look(1, 0, 200.0, 100.0, 0.001)


def test_a_look_that_is_too_dear_is_not_taken() -> None:
    belief, _ = _two_arms(0.001)
    assert belief.best_look(99.0) is None
    look = belief.best_look(100.0)
    assert look is not None
    assert look.arm == 1
    assert look.rate == look.value / 100.0
