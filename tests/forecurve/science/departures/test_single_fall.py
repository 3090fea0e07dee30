"""The last evaluation alone lies far below: a collapse, unless it is a broken one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, advise, fit
from forecurve.science.fitting.outcome import predict_ending

from ..synthetic import sigmoid

SIZES: dict[str, Any] = {"prompts": 1000, "samples": 16}


def _run(*last: float, points: int, seed: int = 0, **sizes: Any) -> Curve:
    """A healthy run and what is added to it."""
    compute = np.arange(1, points + len(last) + 1) * 500.0
    noise = np.random.default_rng(seed).normal(0, 0.004, points)
    healthy = sigmoid(compute[:points], 0.6, 1.9, 2500.0, 0.2) + noise
    return Curve(compute, np.append(healthy, last), unit="GPU-hours", **sizes)


@pytest.mark.parametrize("points", [2, 3, 5, 11])
def test_what_no_luck_explains_is_a_collapse_from_the_first_evaluation_on(points: int) -> None:
    """The best sigmoid goes between, where the run is in neither case."""
    found = fit(_run(0.0, points=points, **SIZES))
    detail = found.misfit_detail
    assert detail is not None
    assert (found.misfit, found.withheld, detail.since) == ("collapse", True, 500.0 * points)
    assert "unless its last evaluation is a broken one" in found.sentence()
    assert advise(found, budget=20_000).action == "undecided"


@pytest.mark.parametrize("points", [5, 11])
def test_an_end_that_is_asked_for_all_the_same_may_be_either(points: int) -> None:
    """Where the run stays at 0, or where it goes if that evaluation is broken."""
    fell, healthy = fit(_run(0.0, points=points, **SIZES)), fit(_run(points=points, **SIZES))
    end, whole = predict_ending(fell, 12_000), predict_ending(healthy, 12_000)
    assert end.lower < 0.05
    assert end.upper > whole.median


@pytest.mark.parametrize("points", [5, 11])
def test_the_next_evaluation_tells(points: int) -> None:
    compute = 500.0 * (points + 2)
    back = float(sigmoid(np.array([compute]), 0.6, 1.9, 2500.0, 0.2)[0])
    assert fit(_run(0.0, back, points=points, **SIZES)).misfit is None
    down = fit(_run(0.0, 0.0, points=points, **SIZES))
    assert down.misfit == "collapse"
    assert "unless" not in down.sentence()


@pytest.mark.parametrize("sizes", [{}, {"prompts": 8, "samples": 1}])
def test_where_luck_may_explain_it_one_evaluation_is_no_collapse(sizes: dict[str, Any]) -> None:
    assert fit(_run(0.0, points=5, **sizes)).misfit is None


@pytest.mark.parametrize("answers", [375, 1319, 3531])
def test_sizes_that_the_rewards_tell_are_known_as_well(answers: int) -> None:
    """Held-out evaluations of which nobody said how many prompts they have."""
    right = np.array([0.381, 0.386, 0.391]) * answers
    fell = Curve([50, 100, 150, 200], np.append(np.round(right) / answers, 0.0), unit="steps")
    assert fell.answers == answers
    assert fit(fell).misfit == "collapse"
    assert fit(Curve([50, 100, 150, 200], [0.381, 0.386, 0.391, 0.0], unit="steps")).misfit is None


@pytest.mark.parametrize("points", [4, 6, 12])
def test_heavy_tails_and_wandering_are_no_collapse(points: int) -> None:
    compute = np.arange(1, points + 1) * 500.0
    healthy = sigmoid(compute, 0.6, 1.9, 2500.0, 0.2)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noise = 0.004 * rng.standard_t(5, points) + 0.006 * np.cumsum(rng.normal(size=points)) / np.sqrt(points)
        assert fit(Curve(compute, healthy + noise, **SIZES)).misfit is None
