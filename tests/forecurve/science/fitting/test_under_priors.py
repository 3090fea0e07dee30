"""Fits of the same evaluations under one prior after another."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, Prior, fit
from forecurve.science.curves.noise import NoiseKnown
from forecurve.science.curves.wandering import HYPOTHESES
from forecurve.science.fitting.outcome import predict_mean
from forecurve.science.fitting.under_priors import fits_under
from forecurve.science.posterior.prior import FLAT, PAPER

NOISE = NoiseKnown(tuple(np.full(len(HYPOTHESES), 1 / len(HYPOTHESES)).tolist()), ())
PRIORS = (FLAT, PAPER, Prior("siblings", A=(0.8, 0.05), log_C_mid=(9.0, 2.0), noise=NOISE, runs=4))


@pytest.mark.parametrize("points", [40, 500])
def test_a_prior_that_comes_later_is_fitted_as_by_itself(points: int) -> None:
    compute = np.linspace(0.0, 100.0, points + 1)[1:]
    noise = np.random.default_rng(points).normal(0, 0.02, points)
    late = np.where(compute > 60, 0.15, 0.0)
    curve = Curve(compute, 0.1 + 0.3 / (1 + (20 / compute) ** 3) + late + noise)
    for found, prior in zip(fits_under(curve, PRIORS), PRIORS, strict=True):
        alone = fit(curve, prior=prior)
        assert found.prior == prior
        assert found.misfit == alone.misfit
        assert predict_mean(found, [150.0]) == predict_mean(alone, [150.0])
        assert (found.posterior.A == alone.posterior.A).all()
