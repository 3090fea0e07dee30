"""Whose knowledge it is: what the data tell of the ceiling is not what past runs had told."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve import Curve, advise, fit
from forecurve.science.posterior.prior import Prior


def curve(points: int) -> Curve:
    """The first of 50 evaluations to 400 GPU-hours; the ceiling is .61."""
    compute = np.arange(1, points + 1) * 8.0
    noise = np.random.default_rng(4).normal(0.0, 0.006, points)
    return Curve(compute, 0.2 + 0.41 / (1 + (120 / compute) ** 1.8) + noise, unit="h", prompts=512, samples=4)


def told(sd: float) -> Prior:
    """As siblings that agree to `sd` tell it."""
    return Prior("6 siblings", A=(0.61, sd), log_B=(0.6, 0.1), log_C_mid=(4.8, 0.13))


@pytest.mark.parametrize("sd", [0.004, 0.013, 0.03, 0.06])
def test_what_past_runs_tell_is_not_the_datas_however_closely_they_agree(sd: float) -> None:
    assert fit(curve(6), prior=told(sd)).identified["A"] < 0.5


def test_the_more_past_runs_tell_the_less_of_it_is_the_datas() -> None:
    shares = [fit(curve(20), prior=told(sd)).identified["A"] for sd in (0.002, 0.01, 0.03, 0.1)]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] > 0.8


def test_a_ceiling_that_past_runs_tell_is_known_and_said_to_be_theirs() -> None:
    early = fit(curve(6), prior=told(0.013))
    assert (early.ceiling_known, early.ceiling_identified) == (True, False)
    assert " by 6 siblings, hardly by its own data yet, " in early.sentence(budget=400)
    assert advise(early, budget=400).action in ("continue", "scale")


def test_data_that_say_more_than_past_runs_did_count() -> None:
    assert fit(curve(50), prior=told(0.06)).identified["A"] > 0.75
