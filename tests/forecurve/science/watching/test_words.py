"""What a watch says of a run is what its figures show: back, or never away, below by one evaluation, or within."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecurve.science import Curve, fit, freeze, watch
from forecurve.science.chart import VERMILION

from ..synthetic import noisy_curve, sigmoid

WIDE = freeze(fit(noisy_curve(1, last=4000, points=25)))
LATER = np.linspace(4160, 16000, 75)


def test_a_fall_within_a_wide_forecast_is_not_told_as_a_recovery() -> None:
    """By evidence it fell, though each evaluation by itself is within the interval: it has nowhere to be back from."""
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[30:] -= 0.02
    for size in (36, 45, len(LATER)):
        found = watch(WIDE, LATER[:size], reward[:size])
        assert (found.level, bool((found.reward >= found.lower).all())) == ("ALERT", True)
        assert found.back_since is None
        assert " fell below its own forecast: " in found.sentence
    reward[40] -= 0.1
    assert watch(WIDE, LATER, reward).back_since is None  # one evaluation by chance
    reward[41] -= 0.1
    assert watch(WIDE, LATER, reward).back_since == LATER[42]


def test_a_single_broken_evaluation_is_one_to_be_back_from() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[30] = 0
    found = watch(WIDE, LATER, reward)
    assert (found.level, found.since_compute, found.back_since) == ("WARN", LATER[30], LATER[31])


def test_a_sentence_does_not_contradict_its_figures() -> None:
    """The last evaluation has the digits of the interval that it is within, or that it is above or below by itself."""
    frozen = freeze(fit(noisy_curve(0, last=10_000, points=61)))
    later = np.linspace(10_160, 12_080, 13)
    reward = sigmoid(later, 0.61, 1.9, 2500, 0.2)
    lower, upper = watch(frozen, later, reward).lower[-1], watch(frozen, later, reward).upper[-1]
    assert upper - lower < 0.02
    for last, stands in ((upper - 0.0006, "follows"), (upper + 0.0006, "is above"), (lower - 0.0006, "is below")):
        reward[-1] = last
        said = watch(frozen, later, reward).sentence
        assert f" {stands} its forecast" in said
        assert f": {last:.3f} at 12,000 GPU-hours, forecast " in said
        assert f" (90 %: {lower:.3f} to {upper:.3f})." in said
    fell = replace(watch(frozen, later, reward), fall="The pass rate fell by 0.07, beginning about 35")
    assert " has hardly left its forecast, but has fallen by its own fit: " in fell.sentence
    assert fell.sentence.endswith("beginning about 35 GPU-hours.")
    for last, stands in ((upper + 1e-6, "is just above its forecast:"), (lower - 1e-6, "is just below its forecast,")):
        reward[-1] = last
        assert f" {stands} " in watch(frozen, later, reward).sentence


def test_where_the_last_evaluation_is_is_said_of_a_fall_too() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[10:25] -= 0.1
    upper = watch(WIDE, LATER, reward).upper[-1]
    assert " on and is back within it since 8,200 GPU-hours: 0.60 at " in watch(WIDE, LATER, reward).sentence
    reward[-1] = upper + 0.05
    assert " on and is back since 8,200 GPU-hours, now above it: " in watch(WIDE, LATER, reward).sentence
    reward[-1] = 0.1
    last = watch(WIDE, LATER, reward)
    assert " on and is back within it since 8,200 GPU-hours, but for its last evaluation: 0.10 at " in last.sentence
    reward[25] = upper
    alone = watch(WIDE, LATER[:26], reward[:26])
    assert alone.back_since is None
    assert alone.sentence.endswith(", since 5,800 GPU-hours, though by itself this evaluation is not below it.")
    low = watch(WIDE, LATER[:25], reward[:25])
    assert low.sentence.endswith(", since 5,800 GPU-hours.")


def test_computes_that_differ_are_told_apart() -> None:
    later = np.linspace(10_010, 10_120, 12)
    frozen = freeze(fit(noisy_curve(0, last=10_000, points=61)))
    reward = sigmoid(later, 0.61, 1.9, 2500, 0.2)
    reward[4:6] -= 0.2
    low = watch(frozen, later[:6], reward[:6])
    assert low.sentence.endswith(", since 10,050 GPU-hours.")
    assert " at 10,060 GPU-hours, forecast " in low.sentence
    back = watch(frozen, later, reward).sentence
    assert " from 10,050 GPU-hours on and is back within it since 10,070 GPU-hours: " in back
    assert " at 10,120 GPU-hours, forecast " in back


def test_evaluations_that_are_back_are_not_drawn_as_fallen() -> None:
    pytest.importorskip("plotly")
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[10:25] -= 0.1
    marked = np.array(watch(WIDE, LATER, reward).plot().data[-1].marker.color) == VERMILION
    assert np.flatnonzero(marked).tolist() == list(range(10, 25))


def test_nothing_is_forecast_beyond_the_range_of_rewards() -> None:
    """What wandered above the curve is expected to stay there, and the curve ends at the top."""
    frozen = freeze(fit(Curve([1, 2, 3], [1 / 3, 2 / 3, 1], variance=[6e-9, 1.7e-7, 2.5e-10])))
    found = watch(frozen, [3.3, 3.9], [1.0, 1.0])
    for ends in (found.lower, found.expected, found.upper):
        assert (ends <= 1).all()
    assert (found.lower <= found.expected).all()
    assert (found.expected <= found.upper).all()
