"""A power law and a broken line beside the sigmoid: each wins on its own curve."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from forecurve.science import Curve, alternatives
from forecurve.science.errors import ComputeOrder, TooFewPoints

from ..synthetic import noisy_curve, sigmoid

X = np.geomspace(100, 16000, 60)
NOISE = np.random.default_rng(0).normal(0, 0.003, 60)


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("sigmoid", sigmoid(X, 0.61, 1.9, 2500, 0.2)),
        ("power law", 0.7 - 3.0 / X**0.4),
        ("broken", np.interp(np.log(X), np.log([100, 1200, 16000]), [0.2, 0.25, 0.6])),
    ],
)
def test_the_best_supported_curve_is_the_one_that_made_the_data(name: str, mean: np.ndarray) -> None:
    found = alternatives(Curve(X, mean + NOISE), compute=32_000)
    assert found[0].name == name
    assert [one.bic for one in found] == sorted(one.bic for one in found)
    assert {one.name for one in found} == {"sigmoid", "power law", "broken"}
    json.dumps([one.to_dict() for one in found], allow_nan=False)


def test_a_broken_line_is_as_good_as_a_general_optimiser_finds() -> None:
    reward = np.interp(np.log(X), np.log([100, 1200, 16000]), [0.2, 0.25, 0.6]) + NOISE

    def sse(theta: np.ndarray) -> float:
        level, first, second, joint = theta
        rest = np.log(X) - joint
        return float(((reward - level - first * np.minimum(rest, 0) - second * np.maximum(rest, 0)) ** 2).sum())

    free = minimize(sse, [0.3, 0.02, 0.1, 7.0], method="Nelder-Mead", options={"maxiter": 20_000, "fatol": 1e-14})
    ours = next(one for one in alternatives(Curve(X, reward)) if one.name == "broken")
    assert ours.sse <= free.fun * 1.01


def test_a_measured_start_is_left_out_and_the_value_stays_in_the_range() -> None:
    for one in alternatives(noisy_curve(0, last=2000, points=12), compute=1e9):
        assert 0 <= one.value <= 1


def test_too_little_and_no_compute_are_refused() -> None:
    with pytest.raises(TooFewPoints, match="above 0"):
        alternatives(Curve([0, 1, 2], [0.1, 0.2, 0.3]))
    for bad in (0.0, float("nan"), -1.0):
        with pytest.raises(ComputeOrder, match="compute"):
            alternatives(Curve([1, 2, 3], [0.1, 0.2, 0.3]), compute=bad)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("compute", [1e-30, 1e40])
def test_a_steep_curve_is_read_however_far_from_its_evaluations(compute: float) -> None:
    steep = Curve(np.arange(1.0, 9.0), [0.1] + [0.5] * 7)
    assert all(0 <= one.value <= 1 for one in alternatives(steep, compute=compute))
