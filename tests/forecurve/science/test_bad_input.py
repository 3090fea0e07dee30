"""Whatever comes in: a result that is finite and in order, or an error that names field, value and way out.

All of it runs with warnings as errors: a warning storm is a failure too.
"""

from __future__ import annotations

import json
import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, Evaluation, alternatives, fit, freeze, least_squares, watch
from forecurve.science import errors as e
from forecurve.science.departures.misfit import HOLDS
from forecurve.science.values import jsonable

from .synthetic import noisy_curve, sigmoid

pytestmark = pytest.mark.filterwarnings("error")

X, Y = [1.0, 2.0, 3.0, 4.0], [0.2, 0.3, 0.4, 0.5]


# --- named errors ---


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"compute": None}, e.UnequalLengths, "got None; pass a flat list"),
        ({"compute": iter([1, 2, 3, 4])}, e.NotFinite, "; pass a list"),
        ({"compute": {1: 2, 3: 4}.values()}, e.NotFinite, "got dict_values([2, 4]); pass a list"),
        ({"compute": "abcd"}, e.NotFinite, "'abcd'"),
        ({"reward": [0.1, None, 0.3, 0.4]}, e.NotFinite, "nan at evaluation 2"),
        ({"reward": [0.1, 0.2j, 0.3, 0.4]}, e.NotFinite, "numbers"),
        ({"reward": 0.4}, e.UnequalLengths, "one row of numbers is needed, got 0.4;"),
        ({"compute": [1e-300, 1, 2, 3]}, e.ComputeOrder, "another unit"),
        ({"compute": [1, 2, 3, 1e300]}, e.ComputeOrder, "another unit"),
        ({"compute": [0, 0, 1, 2]}, e.ComputeOrder, "repeated"),
        ({"compute": [3, 2, 1, 0.5]}, e.ComputeOrder, "backwards"),
        ({"compute": [-1, 0, 1, 2]}, e.ComputeOrder, "negative"),
        ({"prompts": "many"}, e.BadCount, "'many'"),
        ({"prompts": 1e300}, e.BadCount, "1e+300"),
        ({"variance": ["a", 1, 1, 1]}, e.BadCount, "numbers"),
        ({"variance": 5.0}, e.BadCount, "5.0"),
        ({"variance": 1e-300}, e.BadCount, "1e-300"),
        ({"start": "low"}, e.NotFinite, "'low'"),
        ({"start": float("nan")}, e.NotFinite, "nan"),
        ({"bounds": (0, 1, 2)}, e.RewardRange, "(low, high)"),
        ({"bounds": "ab"}, e.RewardRange, "'ab'"),
        ({"bounds": (0, float("inf"))}, e.RewardRange, "inf"),
        ({"bounds": (-1e300, 1e300)}, e.RewardRange, "1e-12 to 1e+12 wide"),
        ({"bounds": (0, 1e-200)}, e.RewardRange, "1e-12 to 1e+12 wide"),
        ({"counts": [[1.5]] * 4, "samples": 4}, e.BadCount, "1.5"),
        ({"counts": [["a"]] * 4, "samples": 4}, e.BadCount, "'a'"),
        ({"counts": np.array(5), "samples": 4}, e.BadCount, "one list an evaluation"),
        ({"counts": [[1], None, None, None], "samples": 2.5}, e.BadCount, "a whole number of samples"),
        ({"counts": [[-1], None, None, None], "samples": [None, 4, 4, 4]}, e.BadCount, "at least 0, got [-1, -1]"),
    ],
)
def test_bad_input_is_refused_by_name_value_and_way_out(arguments: dict[str, Any], kind: type, says: str) -> None:
    with pytest.raises(kind) as caught:
        Curve(**{"compute": X, "reward": Y, **arguments})
    assert says in str(caught.value)
    assert ";" in str(caught.value)  # the way out
    assert len(str(caught.value)) < 250


class _Endless:
    """A billion points that must not be touched."""

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, at: int) -> float:
        raise AssertionError("read before its length was looked at")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise AssertionError("allocated before its length was looked at")


@pytest.mark.parametrize(
    "many", [_Endless(), range(10**9), np.broadcast_to(np.float64(0.5), 10**9)], ids=["sequence", "range", "view"]
)
@pytest.mark.parametrize("field", ["compute", "reward", "prompts", "variance"])
def test_a_billion_points_are_refused_before_anything_is_allocated(field: str, many: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(e.TooManyPoints, match=f"{field}.*got 1000000000 evaluations"):
            Curve(**{"compute": X, "reward": Y, field: many})
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_target_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(e.RewardRange, match="target"):
        fit(Curve(X, Y)).to_dict(target=bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_that_is_no_compute_is_refused(bad: float) -> None:
    with pytest.raises(e.AdviceError, match="budget"):
        fit(Curve(X, Y)).to_dict(budget=bad)


# --- stated verdicts ---


@pytest.mark.parametrize("points", [4, 10])
def test_a_start_above_all_points_is_a_stated_fall(points: int) -> None:
    later = np.linspace(0.3, 0.5, points)
    result = fit(Curve(range(1, points + 1), later, start=0.9, prompts=1000, samples=16))
    detail = result.misfit_detail
    assert detail is not None
    assert detail.fallen
    assert detail.since == 0.0
    assert detail.sentence == "The pass rate fell by 0.40 and never came back, beginning about 0"
    assert "no ceiling can be read" in result.sentence()


def test_a_run_that_only_falls_is_a_decline() -> None:
    rng = np.random.default_rng(0)
    for points in (8, 40):
        reward = np.linspace(0.8, 0.3, points) + rng.normal(0, 0.01, points)
        result = fit(Curve(range(1, points + 1), reward, prompts=500, samples=4))
        assert result.misfit in {"decline", "collapse"}


@pytest.mark.parametrize(("level", "name"), [(0.0, "pinned"), (1.0, "pinned"), (0.37, "constant")])
@pytest.mark.parametrize("points", [3, 30])
def test_a_curve_without_a_shape_is_named(points: int, level: float, name: str) -> None:
    result = fit(Curve(range(1, points + 1), [level] * points))
    assert result.misfit == name
    assert result.identified["A"] < 1


@pytest.mark.parametrize(
    ("level", "beside", "name"), [(0.3, 0.1 + 0.2, "constant"), (0.0, 1e-17, "pinned"), (1.0, 1 - 1e-16, "pinned")]
)
@pytest.mark.parametrize("bounds", [(0, 1), (0, 100)])
def test_rewards_that_differ_by_rounding_are_the_same(
    level: float, beside: float, name: str, bounds: tuple[float, float]
) -> None:
    reward = bounds[1] * np.where(np.arange(30) % 2, level, beside)
    flat = fit(Curve(range(1, 31), np.full(30, bounds[1] * level), prompts=1000, samples=16, bounds=bounds))
    found = fit(Curve(range(1, 31), reward, prompts=1000, samples=16, bounds=bounds))
    assert found.misfit == flat.misfit == name
    assert found.to_dict(budget=60)["advice"] == flat.to_dict(budget=60)["advice"]


@pytest.mark.parametrize("points", [5, 12])
def test_evaluations_that_lie_close_together_still_say_when_to_decide(points: int) -> None:
    """What those to come would tell was so much that its matrix had no inverse."""
    reward = 0.5 + np.random.default_rng(0).normal(0, 0.001, points)
    found = fit(Curve(1e15 + np.arange(points), reward, prompts=1000, samples=16))
    decide = found.decide_at()
    assert decide is None or decide >= found.curve.now


# --- properties ---


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Any curve that is taken: any shape, gaps over orders of magnitude, any unit and range."""
    size = draw(st.integers(3, 25))
    scale = draw(st.sampled_from([1e-12, 1e-3, 1.0, 1e6, 1e26]))
    gaps = draw(st.lists(st.floats(1e-3, 1e3), min_size=size, max_size=size))
    compute = np.cumsum(gaps) * scale
    if draw(st.booleans()):
        compute[0] = 0.0
    low = draw(st.sampled_from([0.0, -1.0, 100.0]))
    width = draw(st.sampled_from([1.0, 2.0, 1000.0]))
    level = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5]))
    reward = low + width * np.array(draw(st.lists(level, min_size=size, max_size=size)))
    counted = draw(
        st.sampled_from([{}, {"prompts": 1000, "samples": 16}, {"prompts": 3}, {"variance": 1e-4 * width**2}])
    )
    return Curve(compute, np.clip(reward, low, low + width), bounds=(low, low + width), **counted)


def _in_order(estimate: dict[str, float | None]) -> bool:
    lower, median, upper = (estimate[name] for name in ("lower", "median", "upper"))
    if lower is None:
        return median is None and upper is None
    if median is None:
        return upper is None
    return lower <= median and (upper is None or median <= upper)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(curve=curves(), beyond=st.floats(1.0, 1e4))
def test_any_curve_gives_finite_ordered_numbers_within_its_range(curve: Curve, beyond: float) -> None:
    budget = curve.now * beyond
    low, high = curve.bounds
    result = fit(curve)
    body = result.to_dict(budget=budget, target=low + 0.7 * (high - low))
    json.dumps(body, allow_nan=False)
    for name in ("A", "B", "C_mid", "R0"):
        assert _in_order(body[name]), name
    for name in ("A", "R0"):
        assert low <= body[name]["lower"]
        assert body[name]["upper"] <= high
    withheld = result.misfit_detail is not None and result.misfit_detail.withheld
    assert (body["at_budget"] is None) == (body["target"] is None) == withheld
    assert withheld or _in_order(body["target"])
    for part in [] if withheld else [body["at_budget"]["curve"], body["at_budget"]["evaluation"]]:
        assert _in_order(part)
        assert low <= part["lower"] <= part["upper"] <= high
    assert all(0 <= share <= 1 for share in body["identified"].values())
    assert body["advice"]["action"] in {"stop", "continue", "scale", "undecided"}
    assert "nan" not in result.sentence(budget=budget).lower()


@settings(max_examples=25, deadline=None)
@given(curve=curves(), later=st.lists(st.floats(0, 1), min_size=1, max_size=12), noise=st.sampled_from([None, 1e-4]))
@example(curve=Curve([1e-12, 2e-12, 3e-12, 1e-11], [0.0, 0.0, 0.0, 1.0]), later=[0.0], noise=None)  # it warns
def test_any_curve_can_be_frozen_and_watched(curve: Curve, later: list[float], noise: float | None) -> None:
    low, high = curve.bounds
    found = fit(curve)
    if found.misfit not in HOLDS:
        with pytest.raises(e.FrozenError, match="withheld"):
            freeze(found)
        return
    frozen = freeze(found, horizon=20)
    reward = low + (high - low) * np.array(later)
    variance = None if noise is None else np.full(len(later), noise * (high - low) ** 2)
    verdict = watch(frozen, curve.now * (1 + 0.1 * np.arange(1, len(later) + 1)), reward, variance)
    json.dumps(verdict.to_dict(), allow_nan=False)
    assert (verdict.since_compute is None) == (verdict.level is None)
    assert np.isfinite(verdict.z).all()
    assert (verdict.lower <= verdict.upper).all()


@settings(max_examples=15, deadline=None)
@given(curve=curves())
def test_least_squares_and_its_alternatives_are_finite(curve: Curve) -> None:
    assume(curve.compute[0] > 0 or curve.points > 3)
    best = least_squares(curve)
    assert np.isfinite([best.A, best.B, best.C_mid, best.R0, best.sse]).all()
    for one in alternatives(curve, compute=curve.now * 3):
        json.dumps(one.to_dict(), allow_nan=False)
        assert curve.bounds[0] <= one.value <= curve.bounds[1]


@settings(max_examples=12, deadline=None)
@given(factor=st.floats(1e-9, 1e9), seed=st.integers(0, 100))
def test_another_unit_of_compute_moves_only_the_midpoint(factor: float, seed: int) -> None:
    one = noisy_curve(seed, points=15)
    other = Curve(one.compute * factor, one.reward, prompts=1000, samples=16)
    a, b = fit(one), fit(other)
    assert b.C_mid.median == pytest.approx(factor * a.C_mid.median, rel=0.01)
    assert (b.A.lower, b.A.median, b.A.upper) == pytest.approx((a.A.lower, a.A.median, a.A.upper), abs=0.02 * a.A.width)
    assert a.misfit == b.misfit


@settings(max_examples=12, deadline=None)
@given(low=st.floats(-1000, 1000), width=st.floats(1e-3, 1e4), seed=st.integers(0, 100))
def test_another_range_of_the_reward_only_moves_it(low: float, width: float, seed: int) -> None:
    one = noisy_curve(seed, points=15)
    other = Curve(
        one.compute,
        np.clip(low + width * one.reward, low, low + width),
        prompts=1000,
        samples=16,
        bounds=(low, low + width),
    )
    a, b = fit(one), fit(other)
    assert (b.A.median - low) / width == pytest.approx(a.A.median, abs=1e-5 * (1 + abs(low) / width))
    assert (b.A.upper - low) / width == pytest.approx(a.A.upper, abs=1e-5 * (1 + abs(low) / width))


def test_a_fit_of_garbage_claims_nothing() -> None:
    """Rewards at random: whatever is said of the ceiling, it is not that it is known and above all that was seen."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        reward = rng.uniform(0, 1, 20)
        result = fit(Curve(range(1, 21), reward))
        assert result.misfit is not None or result.A.width > 0.05


def test_repeated_fits_of_exact_data_raise_no_warning() -> None:
    x = np.linspace(0, 100, 40)
    result = fit(Curve(x, sigmoid(x, 0.6, 1.5, 20, 0.1)))
    assert result.A.lower <= 0.6 <= result.A.upper


def test_counts_that_are_not_those_of_the_reward_are_refused() -> None:
    with pytest.raises(e.CurveError, match=r"the reward there is 0\.1.*a pass rate of 1 at evaluation 1"):
        Curve([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], counts=[[4, 4]] * 4, samples=4)
    shifted = Curve([1, 2, 3], [-1.0, 0.0, 0.5], counts=[[0, 0], [2, 2], [3, 3]], samples=4, bounds=(-1, 1))
    with pytest.raises(e.CurveError, match="counts"):
        shifted.extended(Evaluation(4, 0.5, counts=[4, 4], samples=4))


@pytest.mark.parametrize(
    ("compute", "reward", "says"),
    [
        ([1, 2, 3], [0.1, 1.0000000000000002, 0.2], "got 1.0000000000000002 at evaluation 2"),
        ([1, 1000000.5, 1000000.25], [0.1, 0.2, 0.3], "backwards from 1000000.5, got 1000000.25 at evaluation 3"),
    ],
)
def test_a_value_that_is_off_by_rounding_is_told_in_full(compute: list[float], reward: list[float], says: str) -> None:
    with pytest.raises(e.CurveError, match=re.escape(says)):
        Curve(compute, reward)


@pytest.mark.parametrize("points", [3, 4, 5, 8])
@pytest.mark.parametrize("prior", ["none", "paper"])
def test_an_evaluation_is_never_surer_than_its_curve(points: int, prior: str) -> None:
    rng = np.random.default_rng(points)
    for _ in range(4):
        compute = np.linspace(1, 10, points)
        reward = np.clip(sigmoid(compute, 0.6, 1.5, 6.0, 0.1) + rng.normal(0, 0.02, points), 0, 1)
        found, where = fit(Curve(compute, reward), prior=prior), 10 * np.array([0.5, 1, 1.3, 2, 4, 100])
        curve, evaluation = found.predict(where), found.predict_evaluation(where)
        assert (evaluation.lower90 <= curve.lower90).all()
        assert (evaluation.upper90 >= curve.upper90).all()


SURE = {
    "all answers of a large evaluation": {"prompts": 1e9},
    "as many as are taken": {"prompts": 1e9, "samples": 1e9},
    "the least variance": {"variance": 1e-12},
}
SHAPES = {
    "down": np.linspace(1, 0, 15),
    "all right": np.ones(15),
    "nearer to 1 each time": 1 - 10.0 ** -np.arange(15),
    "a step": np.repeat([0.0, 1.0], [7, 8]),
    "a last fall": np.repeat([1.0, 0.0], [14, 1]),
}


@pytest.mark.parametrize("noise", SURE.values(), ids=SURE)
@pytest.mark.parametrize("reward", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("first", [1.0, 1e15])
def test_evaluations_said_to_be_next_to_exact_still_have_a_forecast(
    noise: dict[str, Any], reward: np.ndarray, first: float
) -> None:
    compute = first + np.arange(len(reward))
    found = fit(Curve(compute, reward, **noise))
    body = found.to_dict(budget=3 * compute[-1])
    for name in ("A", "R0"):
        assert 0 <= body[name]["lower"] <= body[name]["median"] <= body[name]["upper"] <= 1
    assert "nan" not in found.sentence(budget=3 * compute[-1])


@pytest.mark.parametrize("loops", ["numba", "numpy"])
@pytest.mark.parametrize("noise", [SURE["all answers of a large evaluation"], SURE["the least variance"]])
def test_a_ceiling_next_to_exact_is_a_number(
    noise: dict[str, Any], loops: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draws had been NaN: where rises at a node differ hardly, a determinant came out below 0 by rounding."""
    if loops == "numpy":
        for room in ("advancing", "kernels", "masses", "patches", "weighing"):
            monkeypatch.setattr(f"forecurve.science.posterior.{room}.compiled", lambda loop, twin, *parts: twin)
    compute, reward = 1e15 + np.arange(450), 1 - 10.0 ** -np.minimum(np.arange(450), 300)
    assert fit(Curve(compute, reward, **noise)).A.lower > 0.9


@pytest.mark.parametrize("unit", ["", "  ", None])
def test_compute_without_a_unit_is_refused(unit: object) -> None:
    with pytest.raises(e.CurveError, match=f"unit: compute needs a named unit, got {unit!r};"):
        Curve([1, 2, 3], [0.1, 0.2, 0.3], unit=unit)  # type: ignore[arg-type]


def test_what_json_cannot_hold_is_left_out_of_lists_too() -> None:
    told = {"a": [np.nan, np.float64(3)], "b": (np.inf, {"c": [np.nan]}), "d": np.array([1.0, np.nan]), "e": np.True_}
    assert jsonable(told) == {"a": [None, 3.0], "b": [None, {"c": [None]}], "d": [1.0, None], "e": True}
    json.dumps(jsonable(told), allow_nan=False)
