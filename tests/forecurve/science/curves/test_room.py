"""Longer curves share memory with the shorter ones, and none of them sees another's evaluations."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, Evaluation


def _curve(points: int = 5) -> Curve:
    return Curve(np.arange(1.0, points + 1), np.linspace(0.2, 0.4, points), prompts=100, samples=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1), st.booleans()), min_size=1, max_size=40))
def test_every_continuation_of_every_curve_is_its_own(steps: list[tuple[int, float, bool]]) -> None:
    """Curves are extended in any order, so often as one likes: each is what it would be, made anew."""
    made = [(_curve(), [])]
    for chosen, reward, told in steps:
        curve, added = made[chosen % len(made)]
        point = Evaluation(curve.now + 1, reward, variance=1e-4 if told else None)
        made.append((curve.extended(point), [*added, point]))
    for curve, added in made:
        fresh = _curve()
        assert curve.points == fresh.points + len(added)
        assert curve.reward.tolist() == [*fresh.reward, *(point.reward for point in added)]
        assert curve.compute.tolist() == list(np.arange(1.0, curve.points + 1))
        if any(point.variance is not None for point in added):
            expected = [np.nan] * fresh.points + [np.nan if p.variance is None else p.variance for p in added]
            np.testing.assert_array_equal(curve.variance, expected)
        else:
            assert curve.variance is None


def test_a_longer_curve_is_where_the_shorter_one_is() -> None:
    longer = _curve().extended(Evaluation(6, 0.5))
    longest = longer.extended(Evaluation(7, 0.5))
    other = longer.extended(Evaluation(7, 0.6))
    assert np.shares_memory(longer.reward, longest.reward)
    assert not np.shares_memory(longer.reward, other.reward)
    assert (longest.reward[-1], other.reward[-1]) == (0.5, 0.6)


def test_the_columns_of_a_longer_curve_cannot_be_written() -> None:
    longer = _curve().extended(Evaluation(6, 0.5))
    with pytest.raises(ValueError, match="read-only"):
        longer.reward[0] = 0.9


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda curve: pickle.loads(pickle.dumps(curve))])
def test_a_copy_goes_on_by_itself(copied) -> None:
    longer = _curve().extended(Evaluation(6, 0.5))
    again = copied(longer)
    assert again.extended(Evaluation(7, 0.1)).reward.tolist() == [*longer.reward, 0.1]
    assert longer.extended(Evaluation(7, 0.9)).reward.tolist() == [*longer.reward, 0.9]
    assert again.points == 6


def test_threads_that_go_on_from_one_curve_do_not_meet() -> None:
    curve = _curve().extended(Evaluation(6, 0.5))
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda at: curve.extended(Evaluation(7, at / 1000)), range(400)))
    assert [end.reward[-1] for end in ends] == [at / 1000 for at in range(400)]
