"""Evaluations to come, and the mean of the last ones: what they hold beside the curve."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, CurveError, fit, predict_ending

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


@pytest.mark.parametrize("told", [{}, {"samples": 8}])
def test_an_evaluation_of_another_size_is_as_noisy_as_its_answers_are_many(told: dict[str, int]) -> None:
    """The rewards are multiples of 1/8: eight answers each, whatever is said of samples."""
    found = fit(Curve(COMPUTE, np.round(8 * _wandering(3).reward) / 8, **told))
    same, many = found.predict_evaluation(6_400.0).at(0), found.predict_evaluation(6_400.0, 100, 16).at(0)
    assert found.predict_evaluation(6_400.0, 1, 8).at(0) == same
    assert many.width < 0.6 * same.width
    per_prompt = told.get("samples", 1)
    assert found.predict_evaluation(6_400.0, prompts=1600 / per_prompt).at(0) == many


def test_of_counted_answers_too_the_size_of_the_next_evaluation_matters() -> None:
    counts = np.random.default_rng(0).binomial(8, _wandering(3).reward[:, None], (SIZE, 10))
    found = fit(Curve(COMPUTE, counts.mean(axis=1) / 8, samples=8, counts=list(counts)))
    one, ten, many = (found.predict_evaluation(6_400.0, prompts=size).at(0).width for size in (1, 10, 1000))
    assert one > 1.5 * ten > 1.5 * 1.1 * many
    assert ten == found.predict_evaluation(6_400.0).at(0).width


@pytest.mark.parametrize("bad", ["many", [100], 0.5])
def test_a_size_that_is_none_is_refused(bad: object) -> None:
    with pytest.raises(CurveError, match=r"^prompts: "):
        fit(_wandering(3)).predict_evaluation(6_400.0, prompts=bad)  # type: ignore[arg-type]
