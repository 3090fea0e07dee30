"""What the end of a run is asked for: computes that cannot be are refused by name, and others of any kind are taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, CurveError, fit, predict_ending, predict_mean

from ..synthetic import noisy_curve, sigmoid

FIT = fit(noisy_curve(3, last=4_000.0, points=20))

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("budget", [math.nan, math.inf, -5, 0, 1e41, "a", None, []])
def test_an_end_at_a_budget_that_cannot_be_is_refused(budget: Any) -> None:
    with pytest.raises(CurveError, match=r"budget: .*; give compute in"):
        predict_ending(FIT, budget)


@pytest.mark.parametrize("compute", [math.nan, [math.nan], [5_000.0, math.inf], -1.0, [], [[1.0, 2.0]], "a", None])
def test_a_mean_over_computes_that_cannot_be_is_refused(compute: Any) -> None:
    with pytest.raises(CurveError, match="compute: "):
        predict_mean(FIT, compute)


@pytest.mark.parametrize("ask", [predict_ending, predict_mean])
def test_only_a_fit_has_an_end(ask: Callable[..., Any]) -> None:
    with pytest.raises(CurveError, match="fit: a Fit is needed, got Curve"):
        ask(FIT.curve, 5_000.0)


def test_a_place_or_a_budget_may_be_a_number_of_any_kind() -> None:
    assert predict_mean(FIT, 5_000) == predict_mean(FIT, np.array([5_000.0]))
    assert predict_ending(FIT, np.float32(5_000)) == predict_ending(FIT, 5_000)


def test_the_order_of_places_has_no_say_in_their_mean() -> None:
    noise = np.random.default_rng(5).normal(0, 0.02, 30).cumsum() / 4
    compute = np.linspace(100.0, 4_000.0, 30)
    found = fit(Curve(compute, sigmoid(compute, 0.6, 1.6, 1_500, 0.2) + noise, prompts=1000, samples=16))
    assert predict_mean(found, [4_100.0, 5_000.0, 6_000.0]) == predict_mean(found, [6_000.0, 4_100.0, 5_000.0])


@pytest.mark.parametrize("steep", [1.5, 8.0])
@pytest.mark.parametrize("first", [0.97, 0.5, 0.02])
def test_a_mean_over_evenly_spaced_places_is_that_over_all_of_them(first: float, steep: float) -> None:
    """Of many that are near one another few are read; with one moved a little all are."""
    compute = np.arange(1, 26) * 40.0
    found = fit(Curve(compute, sigmoid(compute, A=0.7, B=steep, C_mid=900.0, R0=0.2), prompts=256, samples=4))
    evenly = np.linspace(first, 1.0, 30) * 1_600.0
    moved = evenly.copy()
    moved[17] *= 1 + 1e-8
    few, every = predict_mean(found, evenly), predict_mean(found, moved)
    for name in ("median", "lower", "upper"):
        assert getattr(few, name) == pytest.approx(getattr(every, name), abs=1e-6)
