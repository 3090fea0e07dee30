"""Evaluations to come, and the mean of the last ones: what they hold beside the curve."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, fit, predict_ending

from ..synthetic import sigmoid

SIZE = 60
COMPUTE = np.arange(1, SIZE + 1) * 100.0


def _wandering(seed: int, restarts: tuple[float, ...] = ()) -> Curve:
    """It wanders, and stands well above its curve in the end."""
    rng = np.random.default_rng(seed)
    wander = np.zeros(SIZE)
    for at in range(1, SIZE):
        wander[at] = 0.95 * wander[at - 1] + rng.normal(0, 0.0026)
    wander[-12:] += np.linspace(0.0, 0.02, 12)
    reward = sigmoid(COMPUTE, 0.6, 1.6, 2500, 0.2) + wander + 0.003 * rng.normal(size=SIZE)
    return Curve(COMPUTE, reward, prompts=1500, samples=16, restarts=restarts)


@pytest.mark.parametrize("restart", [COMPUTE[-1], COMPUTE[-1] + 50.0])
def test_nothing_seen_carries_over_a_restart_that_no_evaluation_has_come_after(restart: float) -> None:
    """The run is resumed before its next evaluation: that knows the curve alone, and what noise is like."""
    on, resumed = fit(_wandering(8)), fit(_wandering(8, (restart,)))
    assert resumed.A == on.A, "the evaluations so far say the same"
    following = COMPUTE[-1] + 100.0
    near, anew = (found.predict_evaluation(following).at(0) for found in (on, resumed))
    curve = on.predict(following).at(0).median
    assert near.median - curve > 0.005
    assert anew.median == pytest.approx(curve, abs=0.002)
    assert anew.width > 1.2 * near.width
    ends = [predict_ending(found, 6_400.0) for found in (on, resumed)]
    assert ends[0].median - ends[1].median > 0.002
    assert ends[1].width > ends[0].width


def test_a_restart_farther_ahead_matters_behind_it_only() -> None:
    on, resumed = fit(_wandering(8)), fit(_wandering(8, (COMPUTE[-1] + 250.0,)))
    places = COMPUTE[-1] + np.array([100.0, 200.0, 300.0])
    near, anew = (found.predict_evaluation(places) for found in (on, resumed))
    np.testing.assert_array_equal(near.median[:2], anew.median[:2])
    assert near.median[2] > anew.median[2] + 0.002


def test_a_curve_that_is_cut_where_it_was_resumed_has_that_restart_ahead() -> None:
    whole = _wandering(2, (COMPUTE[49],))
    assert whole.until(COMPUTE[49]).restarts_ahead == (COMPUTE[49],)
    assert whole.restarts_ahead == ()
