"""What a prior may say: anything else is refused when it is made, or when a curve tells the range of its ceiling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, FieldError, Prior, PriorError, fit

from ..synthetic import noisy_curve, sigmoid

CURVE = noisy_curve(3, last=4_000.0, points=20)
NAN, INF = math.nan, math.inf

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        *[({"dof": dof}, "dof") for dof in (2, 1.5, -1, NAN, INF, "a")],
        *[({"weight": weight}, "weight") for weight in (-0.1, 1.0, NAN, "a", [])],
        *[({"A": pair}, "A: two numbers are needed") for pair in (0.5, (0.5,), (0.5, 0.1, 0.2), ("a", 1), "ab")],
        *[({"A": pair}, "positive sd") for pair in ((0.5, 0.0), (NAN, 0.1), (0.5, NAN), (INF, 1.0))],
        ({"A": (0.6, 1e-300), "bounds": (0, 1)}, "an sd from 1e-06 to 1e"),
        ({"A": (60.0, 1e-5), "bounds": (0, 100)}, "an sd from 0.0001 to 1e"),
        ({"log_B": (1000.0, 1.0)}, "log_B: a mean from -7 to 7 is needed"),
        ({"log_B": (1.0, 1e4)}, "log_B: an sd from 0.001 to 5 is needed"),
        ({"log_B": (1.0, 1e-9)}, "log_B: an sd from"),
        ({"log_C_mid": (1e4, 1.0)}, "log_C_mid: a mean from -75 to 100 is needed"),
        ({"log_C_mid": (2.0, 1e4)}, "log_C_mid: an sd from"),
        ({"noise": "x"}, "noise: a NoiseKnown is needed, got str"),
        ({"unit": 3}, "unit: a str is needed"),
        ({"runs": 1.5}, "runs: a whole number"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"name": None}, "name: a str is needed"),
    ],
)
def test_what_cannot_be_known_is_refused(told: dict[str, Any], says: str) -> None:
    with pytest.raises(FieldError, match=says):
        Prior(**{"name": "bad", **told})


def test_a_ceiling_without_a_range_is_looked_at_when_a_curve_tells_it() -> None:
    with pytest.raises(PriorError, match="A: an sd from"):
        fit(CURVE, prior=Prior("sharp", A=(0.6, 1e-300)))


@pytest.mark.parametrize(
    "told",
    [
        {"A": (0.6, 0.05), "dof": math.nextafter(2.0, 3.0)},
        {"A": (0.6, 0.05), "dof": 1e9},
        {"A": (0.6, 1e-6)},
        {"A": (0.6, 1e6)},
        {"log_B": (7.0, 5.0), "log_C_mid": (100.0, 50.0)},
        {"log_B": (-7.0, 5.0), "log_C_mid": (-75.0, 50.0)},
        {"log_B": (7.0, 1e-3), "log_C_mid": (-75.0, 1e-3)},
    ],
)
@pytest.mark.parametrize("points", [3, 20])
def test_the_farthest_that_may_be_told_gives_finite_numbers(told: dict[str, Any], points: int) -> None:
    found = fit(CURVE.part(slice(points)), prior=Prior("far", **told))
    for estimate in (found.A, found.B, found.C_mid, found.R0, found.predict(1e6).at(0)):
        ends = estimate.lower, estimate.median, estimate.upper
        assert np.isfinite(ends).all()
        assert list(ends) == sorted(ends)
    assert 0 <= found.A.lower <= found.A.upper <= 1


@pytest.mark.parametrize("sd", [1e-3, 0.01, 0.05])
@pytest.mark.parametrize(("what", "truth"), [("log_B", math.log(1.9)), ("log_C_mid", math.log(2500.0))])
@pytest.mark.parametrize("points", [3, 5, 20])
def test_what_is_told_narrowly_does_not_fall_between_nodes(what: str, truth: float, sd: float, points: int) -> None:
    """Evaluations that agree with what is told leave it nearly all of the mass, wherever a lattice has its nodes."""
    compute = np.linspace(0, 8_000, points + 1)[1:]
    for seed in range(6):
        mean = truth + 0.05 * seed  # rows of the first lattice lie about .2 apart
        B, C_mid = (math.exp(mean), 2500.0) if what == "log_B" else (1.9, math.exp(mean))
        noise = np.random.default_rng(seed).normal(0, 0.004, points)
        curve = Curve(compute, sigmoid(compute, 0.61, B, C_mid, 0.2) + noise, prompts=1000, samples=16)
        told: dict[str, Any] = {what: (mean, sd)}
        found = fit(curve, prior=Prior("sharp", **told, weight=0.99))
        said = found.B if what == "log_B" else found.C_mid
        assert abs(math.log(said.median) - mean) < sd
        assert mean - 5 * sd < math.log(said.lower) < math.log(said.upper) < mean + 5 * sd


@pytest.mark.parametrize("told", [{"log_B": (3.0, 1.0)}, {"log_B": (0.6, 5.0)}, {"log_C_mid": (100.0, 1.0)}])
def test_steps_that_a_prior_lets_in_are_no_fall_of_a_smooth_run(told: dict[str, Any]) -> None:
    """Where factors of a step were beyond what a float holds half of the rise had been gained everywhere."""
    compute = np.linspace(50.0, 3_000.0, 60)
    noise = np.random.default_rng(4).normal(0, 0.01, 60)
    curve = Curve(compute, sigmoid(compute, 0.7, 1.2, 4_000, 0.2) + noise)
    assert fit(curve).misfit is None
    assert fit(curve, prior=Prior("far", **told)).misfit is None


def test_numbers_of_other_kinds_are_told_as_plain_ones() -> None:
    plain = Prior("plain", A=(0.6, 0.05), dof=6.0, bounds=(0.0, 1.0))
    assert Prior("plain", A=[np.float64(0.6), 0.05], dof=6, bounds=[0, 1]) == plain  # type: ignore[arg-type]
    assert hash(Prior("plain", A=np.array([0.6, 0.05]), bounds=(0, 1))) == hash(plain)  # type: ignore[arg-type]


def test_what_has_no_weight_changes_nothing() -> None:
    """Not the range of B and C_mid either."""
    plain, told = fit(CURVE), fit(CURVE, prior=Prior("unheard", log_B=(3.0, 2.0), log_C_mid=(20.0, 3.0), weight=0.0))
    assert (told.A, told.B, told.C_mid) == (plain.A, plain.B, plain.C_mid)


@pytest.mark.parametrize("told", [(8.0, 20.0), (8.0, 50.0), (38.0, 5.0)])
@pytest.mark.parametrize("points", [6, 10, 15])
def test_midpoints_that_may_lie_anywhere_are_as_good_as_none_told(told: tuple[float, float], points: int) -> None:
    compute = np.geomspace(50.0, 8000.0, points)
    noise = np.random.default_rng(0).normal(0.0, 0.004, points)
    curve = Curve(compute, sigmoid(compute, 0.6, 1.8, 1000.0, 0.2) + noise, prompts=1000, samples=16)
    found, flat = fit(curve, prior=Prior("x", log_C_mid=told, unit=curve.unit)), fit(curve)
    for name in ("A", "C_mid"):
        one, other = getattr(found, name), getattr(flat, name)
        assert one.median == pytest.approx(other.median, abs=0.1 * other.width)
        assert one.width == pytest.approx(other.width, rel=0.2)


@pytest.mark.parametrize("points", [3, 20])
def test_a_core_far_within_its_sd_does_not_fall_between_nodes(points: int) -> None:
    """With 2.00001 degrees of freedom nearly all lies within a few thousandths of an sd."""
    compute = np.linspace(0, 8_000, points + 1)[1:]
    for mean in (0.55, 0.6, 0.65, 0.7):
        noise = np.random.default_rng(int(100 * mean)).normal(0, 0.004, points)
        curve = Curve(compute, sigmoid(compute, 0.61, math.exp(mean), 2500.0, 0.2) + noise, prompts=1000, samples=16)
        found = fit(curve, prior=Prior("sharp", log_B=(mean, 0.01), dof=2.00001, weight=0.99))
        assert abs(math.log(found.B.median) - mean) < 0.02
