"""What is no curve, no fit or no number is refused at the door by name, value and way out, not by a line inside."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from forecurve import FieldError, Siblings, advise, compare, freeze, plan, rank, watch
from forecurve.science import (
    Conformal,
    Course,
    Curve,
    Estimate,
    Evaluation,
    Forecast,
    Outcome,
    alternatives,
    backtest,
    fit,
    last_value,
    power_law,
    score,
    sibling_prior,
)
from forecurve.science.errors import NotFinite

from .synthetic import noisy_curve

CURVE = noisy_curve(3, last=4_000.0, points=20)
COMPUTE = CURVE.compute
FIT = fit(CURVE)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: fit(None), "curve: a Curve is needed, got NoneType"),
        (lambda: fit([1, 2, 3]), "got list; pass Curve(compute, reward)"),
        (lambda: fit(CURVE, prior=[CURVE]), "Siblings(curves).prior()"),
        (lambda: FIT.predict("far"), "compute: numbers are needed, got "),
        (lambda: FIT.predict([1.0, "far"]), "compute: numbers are needed"),
        (lambda: FIT.predict_evaluation(None), "compute: a finite compute"),
        (lambda: FIT.compute_to_reach("high"), "target: numbers are needed"),
        (lambda: FIT.update(0.5), "point: a compute and a reward are needed, got 0.5"),
        (lambda: FIT.update([(9, 0.5), (10, 0.6)]), "point: one evaluation is taken at a time, got [(9, 0.5), (10"),
        (lambda: FIT.update([Evaluation(9, 0.5)]), "point: one evaluation is taken at a time, got [Evaluation(compute"),
        (lambda: FIT.update("ab"), "got 'ab'; pass (compute, reward) or an Evaluation"),
        (lambda: FIT.update((5_000.0,)), "got (5000.0,)"),
        (lambda: advise(CURVE, budget=9_000), "fit: a Fit is needed, got Curve; pass fit(curve)"),
        (lambda: advise(FIT, budget="all"), "budget: a positive finite number is needed, got 'all'"),
        (lambda: advise(FIT, budget=9_000, delta=True), "delta: a positive finite number is needed, got True"),
        (lambda: advise(FIT, budget=[]), "got []"),
        (lambda: advise(FIT, target="high"), "target: numbers are needed"),
        (lambda: compare([CURVE, CURVE], "a"), "arms: a Mapping is needed, got list; pass name -> runs"),
        (lambda: compare({"a": CURVE, "b": 3}, "a"), "arms['b']: a Curve or a Fit or a Sequence is needed, got int"),
        (lambda: compare({"a": CURVE, "b": [CURVE, "c"]}, "a"), "arms['b']: a Curve or a Fit is needed, got str"),
        (lambda: compare({"a": CURVE, "b": FIT}, "a", rope="wide"), "rope: "),
        (lambda: plan(None, 9_000), "arms: a Sequence or a Mapping is needed, got NoneType"),
        (lambda: plan([CURVE, 3], 9_000), "arms[1]: a Curve or a Fit is needed, got int"),
        (lambda: plan({"a": "b"}, 9_000), "arms['a']: a Curve or a Fit is needed, got str"),
        (lambda: plan([CURVE], "all"), "budget: a positive number is needed, got 'all'"),
        (lambda: rank([CURVE], 9_000), "arms: a Mapping is needed, got list"),
        (lambda: rank({"a": [CURVE]}, "far"), "horizon: a positive number is needed, got 'far'"),
        (lambda: rank({1: [CURVE], 2: [CURVE]}, 9_000), "arms: a str is needed, got int; call each arm by a text"),
        (lambda: rank({1: [CURVE], "1": [CURVE]}, 9_000), "arms: a str is needed"),
        (lambda: rank({"a": [CURVE]}, 1e300), "horizon: compute above 0 must lie in 1e-30 to 1e+40, got 1e+300"),
        (lambda: plan([CURVE], 1e300), "budget: compute above 0 must lie in"),
        (lambda: plan([CURVE], 9_000, horizon=1e300), "horizon: compute above 0 must lie in"),
        *[
            (lambda ask=ask, seed=seed: ask({"a": CURVE}, 9_000, seed=seed), "seed: a whole number from 0 on is needed")
            for ask in (plan, rank)
            for seed in (-1, "a", 1.5, True, None)
        ],
        (lambda: rank({"a": [CURVE]}, 9_000, delta=-1), "delta: a positive number is needed, got -1"),
        (lambda: rank({"a": [CURVE]}, 9_000, delta="a"), "delta: a positive number is needed, got 'a'"),
        (lambda: rank({"a": [CURVE]}, 9_000, seed_sd="a"), "seed sd: a positive finite number is needed, got 'a'"),
        (lambda: Curve([1, 2, 3], [0.1, 0.2, 0.3], bounds=(0, 10**400)), "bounds: two numbers are needed"),
        (lambda: Curve([1, 2, 3], [0.1, 0.2, 0.3], start=10**400), "start: a number is needed"),
        (lambda: Curve([1, 2, 3], [0.1, 0.2, 0.3], counts=[[10**400]] * 3, samples=4), "counts: whole numbers"),
        (
            lambda: score([Forecast("a", 0.5, Estimate(math.nan, 0.5, 0.7))], {}),
            "forecasts[0].estimate: finite numbers in",
        ),
        (lambda: score([Forecast("a", 0.5, Estimate(0.6, 0.7, 0.5))], {}), "got 0.6 (0.7 to 0.5)"),
        (lambda: score([Forecast("a", -1, Estimate(0.6, 0.5, 0.7))], {}), "forecasts[0].fraction: a share above 0"),
        (
            lambda: score([Forecast("a", 25, Estimate(0.6, 0.5, 0.7))], {}),
            "a share above 0, at most 1, is needed, got 25",
        ),
        (
            lambda: score([Forecast("a", 0.25, Estimate(0.9, 0.5, 0.7))], {}),
            "in order are needed, got 0.9 (0.5 to 0.7)",
        ),
        (lambda: score([Forecast("a", 0.25, None)], {}), "forecasts[0].estimate: an Estimate is needed, got NoneType"),
        (
            lambda: score([Forecast("a", 0.25, Estimate(None, 0.5, 0.7))], {}),
            "in order are needed, got None (0.5 to 0.7)",
        ),
        (lambda: backtest([CURVE], prior="sibling"), "got 'sibling'; use 'none', 'paper', 'siblings' or a Prior"),
        (
            lambda: backtest([CURVE], baselines="paper-grid"),
            "baselines: a list of names is needed, got 'paper-grid'; pass ['paper-grid']",
        ),
        (lambda: sibling_prior([CURVE]), "fits[0]: a Fit is needed, got Curve; pass fit(curve)"),
        (lambda: sibling_prior(3), "fits: a Sequence is needed, got int"),
        (lambda: sibling_prior([FIT], finished="a"), "finished: a whole number from 0 on is needed, got 'a'"),
        (lambda: power_law("x"), "curve: a Curve is needed, got str"),
        (lambda: last_value("x"), "curve: a Curve is needed, got str"),
        (lambda: alternatives("x"), "curve: a Curve is needed, got str"),
        (lambda: alternatives(CURVE, compute="x"), "compute: a finite compute above 0 is needed, got 'x'"),
        (lambda: alternatives(CURVE, compute=1e300), "compute: compute above 0 must lie in 1e-30 to 1e+40, got 1e+300"),
        (lambda: FIT.plot(budget="x"), "budget: a positive finite number is needed, got 'x'"),
        (lambda: FIT.plot(budget=math.inf), "budget: a positive finite number is needed, got inf"),
        (lambda: FIT.plot(budget=1e300), "budget: compute above 0 must lie in"),
        (lambda: advise(FIT, now=1e308), "now: compute above 0 must lie in 1e-30 to 1e+40, got 1e+308"),
        (lambda: advise(FIT, budget=1e308), "budget: compute above 0 must lie in"),
        (lambda: FIT.sentence(target=math.nan), "target: a finite reward is needed, got nan"),
        (lambda: FIT.sentence(target=5.0), "target: no reward can be that, got 5.0"),
        (lambda: FIT.sentence(target="a"), "target: numbers are needed, got 'a'"),
        (lambda: freeze(CURVE), "fit: a Fit is needed, got Curve"),
        (lambda: freeze(FIT, horizon="far"), "horizon: "),
        (lambda: watch(FIT, [5_000.0], [0.5]), "frozen: a FrozenForecast is needed, got Fit; pass freeze(fit(curve))"),
        (lambda: Siblings(CURVE), "curves: a Sequence is needed, got Curve"),
        (lambda: Siblings([CURVE]).hindsight(CURVE, 9_000), "forecast: a Fit is needed, got Curve"),
        (lambda: advise(FIT, budget=9_000, hindsight=3), "hindsight: a Hindsight is needed, got int"),
        (lambda: advise(FIT, target="1"), "target: numbers are needed"),
        (lambda: advise(FIT, delta=2.0), "delta: no two rewards are so far apart"),
        (lambda: plan([FIT], 9_000, delta=3.0), "delta: no two rewards are so far apart"),
        (lambda: compare({"a": CURVE, "b": CURVE}, "a", rope=2.0), "rope: no two rewards are so far apart"),
        (lambda: compare({1: CURVE, 2: CURVE}, 1), "arms: a str is needed, got int; call each arm by a text"),
        (lambda: backtest([CURVE], fractions=0.5), "fractions: a Sequence is needed, got float"),
        (lambda: score(3, {}), "forecasts: an Iterable is needed, got int"),
        (lambda: FIT.draws(-1, 0), "n: a whole number is needed"),
        (lambda: Siblings([CURVE, FIT]), "curves[1]: a Curve is needed, got Fit"),
        (lambda: Outcome.of("x"), "curve: a Curve is needed, got str; pass Curve(compute, reward)"),
        (lambda: Course.of(FIT), "curve: a Curve is needed, got Fit"),
        (lambda: Conformal.of(None), "hindsight: a Hindsight is needed, got NoneType; pass Hindsight.of("),
        (lambda: FIT.predict([]), "compute: "),
        (lambda: backtest(3), "curves: a Sequence is needed, got int"),
        (lambda: backtest([FIT]), "curves[0]: a Curve is needed, got Fit"),
        (lambda: backtest([CURVE], fractions="a"), "fractions: a share of the run is needed, got a"),
        (lambda: Curve(COMPUTE, CURVE.reward, seed="three"), "seed: a whole number is needed, got 'three'"),
        (lambda: Curve(COMPUTE, CURVE.reward, seed=1.5), "seed: a whole number is needed, got 1.5"),
        (lambda: Curve(COMPUTE, CURVE.reward, restarts=[-1.0]), "restarts: compute cannot be negative, got -1.0"),
        (lambda: Curve(np.array([date(2026, 1, day) for day in (1, 2, 3)], "M8[D]"), [0.1, 0.2, 0.3]), "compute: numb"),
    ],
)
def test_what_a_door_does_not_take_is_refused_there(ask: Callable[[], Any], says: str) -> None:
    with pytest.raises(FieldError) as caught:
        ask()
    assert says in str(caught.value)
    assert caught.value.field
    assert caught.value.way_out


def test_numbers_of_other_libraries_are_numbers() -> None:
    assert advise(FIT, budget=np.float32(9_000)).action == advise(FIT, budget=9_000).action
    assert Curve(COMPUTE, CURVE.reward, seed=np.int64(3)).seed == 3
    again = FIT.update(Evaluation(5_000.0, 0.5)), FIT.update((5_000.0, 0.5)), FIT.update([np.float64(5_000.0), 0.5])
    assert len({one.A.median for one in again}) == 1


def test_what_a_mask_hides_is_not_known() -> None:
    rewards = np.ma.array([0.1, 0.2, 0.3, 0.9], mask=[False, False, False, True])
    with pytest.raises(NotFinite, match="reward: finite numbers are needed, got nan at evaluation 4"):
        Curve([1, 2, 3, 4], rewards)
    prompts = Curve([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4], prompts=np.ma.array([9] * 4, mask=[0, 1, 0, 0])).prompts
    assert prompts is not None
    assert np.isnan(prompts).tolist() == [False, True, False, False]


@pytest.mark.parametrize("precision", ["float64", "bfloat16"])
@pytest.mark.parametrize("of_a_graph", [False, True])
@pytest.mark.filterwarnings("error")
def test_tensors_are_numbers_whatever_their_precision_and_graph(precision: str, of_a_graph: bool) -> None:
    torch = pytest.importorskip("torch")

    def tensor(values: float | list[float]) -> Any:
        return torch.tensor(values, dtype=getattr(torch, precision), requires_grad=of_a_graph)

    compute, reward = [1.0, 2.0, 4.0, 8.0], [0.125, 0.25, 0.375, 0.5]  # exact in either precision
    plain = Curve(compute, reward, prompts=64, samples=4, restarts=[2.0])
    told = Curve(
        tensor(compute), tensor(reward), prompts=tensor(64.0), samples=tensor([4.0] * 4), restarts=tensor([2.0])
    )
    assert told.identity == plain.identity
    assert told.noise.variance.tolist() == plain.noise.variance.tolist()
    assert Curve([tensor(c) for c in compute], reward).identity == plain.identity
    forecast = fit(plain)
    assert fit(told).predict(tensor(16.0)).to_dict() == forecast.predict(16.0).to_dict()
    assert forecast.update(tensor([16.0, 0.5])).A == forecast.update((16.0, 0.5)).A


@pytest.fixture
def always_warning() -> Iterator[Any]:
    """torch, which else warns of each thing once a process: the test would hang on those before it."""
    torch = pytest.importorskip("torch")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield torch
    torch.set_warn_always(before)


@pytest.mark.filterwarnings("error")
def test_a_question_may_be_a_tensor_of_a_graph(always_warning: Any) -> None:
    def number(value: float) -> Any:
        return always_warning.tensor(value, dtype=always_warning.float64, requires_grad=True)

    arms = {"a": FIT, "b": noisy_curve(4, last=4_000.0, points=20)}
    assert FIT.compute_to_reach(number(0.6)) == FIT.compute_to_reach(0.6)
    told = advise(FIT, budget=number(9_000), delta=number(0.01), price=number(1e-6), target=number(0.6))
    assert told.to_dict() == advise(FIT, budget=9_000, delta=0.01, price=1e-6, target=0.6).to_dict()
    assert rank({"a": [FIT]}, number(9_000), delta=number(0.01)) == rank({"a": [FIT]}, 9_000, delta=0.01)
    planned = plan(arms, number(9_000), horizon=number(9_000), delta=number(0.01), price=number(1e-6))
    assert planned.to_dict() == plan(arms, 9_000, horizon=9_000, delta=0.01, price=1e-6).to_dict()
    compared = compare(arms, "a", rope=number(0.02), level=number(0.9), seed_sd=number(0.01))
    assert compared.to_dict() == compare(arms, "a", rope=0.02, level=0.9, seed_sd=0.01).to_dict()
    assert Siblings([arms["b"]]).hindsight(FIT, number(9_000)) is not None
    shown = Curve([1, 2, 4], [20, 30, 35], start=number(10), bounds=(number(0), number(100)))
    assert (shown.start, shown.bounds) == (10.0, (0.0, 100.0))


@pytest.mark.parametrize("number", [Decimal, Fraction, np.float32, np.array])
def test_answers_to_numbers_of_any_kind_are_json(number: Callable[[float], Any]) -> None:
    other = noisy_curve(4, last=4_000.0, points=20)
    for answer in (
        advise(FIT, budget=number(9_000), delta=number(0.01), price=number(1e-6), target=number(0.6)),
        plan({"a": FIT, "b": other}, number(9_000), horizon=number(9_000), delta=number(0.01), price=number(1e-6)),
        compare({"a": FIT, "b": other}, "a", rope=number(0.02), seed_sd=number(0.01)),
        freeze(FIT, horizon=number(80)),
        watch(freeze(FIT), number(4_100), number(0.5)),
        backtest([other], fractions=[number(0.5)]),
    ):
        json.dumps(answer.to_dict(), allow_nan=False)


def test_an_array_is_a_point_and_no_name_is_the_usual_one() -> None:
    assert FIT.update(np.array([5_000.0, 0.5])).A == FIT.update((5_000.0, 0.5)).A
    assert Curve(COMPUTE, CURVE.reward, name=None).name == "run"  # type: ignore[arg-type]
    assert ", 1 judged, " in repr(watch(freeze(FIT), 4_100, 0.5))


def test_a_plan_takes_runs_by_name_as_a_comparison_does() -> None:
    other = noisy_curve(4, last=4_000.0, points=20)
    named = plan({"base": FIT, "wide": other}, 9_000)
    assert [arm.arm for arm in named.arms] == ["base", "wide"]
    listed = plan([Curve(one.compute, one.reward, one.unit, name, prompts=one.prompts, samples=one.samples)
                   for name, one in (("base", CURVE), ("wide", other))], 9_000)  # fmt: skip
    assert named.to_dict() == listed.to_dict()
    assert FIT.curve.name == CURVE.name  # the caller's own fit keeps its name
