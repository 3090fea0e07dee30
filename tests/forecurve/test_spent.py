"""The compute of a step is read between evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.spent import spent_at

EVALUATED = st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e9)), min_size=1, max_size=20)


@given(EVALUATED, st.integers(0, 10**6))
def test_it_is_linear_interpolation_from_the_runs_beginning_on(told: list[tuple[int, float]], step: int) -> None:
    steps, computes = sorted({one for one, _ in told}), sorted(compute for _, compute in told)
    computes = computes[: len(steps)]
    found = spent_at(step, steps, computes)
    if step > steps[-1]:
        assert found is None
    else:
        beginning = ([], []) if steps[0] == 0 else ([0], [0.0])
        expected = np.interp(step, [*beginning[0], *steps], [*beginning[1], *computes])
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_without_evaluations_nothing_is_known() -> None:
    assert spent_at(0, [], []) is None
