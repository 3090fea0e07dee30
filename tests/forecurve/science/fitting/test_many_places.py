"""A band at more places than are drawn at a time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import astuple

import numpy as np
import pytest

from forecurve import Fit, fit
from forecurve.science.arrays import FloatArray
from forecurve.science.values import Band

from ..synthetic import noisy_curve

FITTED = fit(noisy_curve(0))
PLACES = np.linspace(1.0, 40_000.0, 1_234)


@pytest.mark.parametrize("band", [Fit.predict, Fit.predict_evaluation])
def test_each_place_has_the_band_that_it_has_by_itself(band: Callable[[Fit, FloatArray], Band]) -> None:
    whole, few = band(FITTED, PLACES), band(FITTED, PLACES[::100])
    np.testing.assert_array_equal(whole.compute, PLACES)
    np.testing.assert_allclose([column[::100] for column in astuple(whole)], astuple(few), rtol=1e-12)


def test_many_places_are_not_drawn_all_at_once() -> None:
    """100,000 had taken 5 GB."""
    tracemalloc.start()
    FITTED.predict_evaluation(np.linspace(1.0, 40_000.0, 10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
