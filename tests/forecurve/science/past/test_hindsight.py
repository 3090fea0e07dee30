"""Hindsight: what past forecasts got wrong together moves the gain that an advice rests on."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from forecurve.science import (
    Curve,
    Estimate,
    FieldError,
    Fit,
    Hindsight,
    Past,
    Siblings,
    advise,
    fit,
    past_forecast,
    predict_ending,
)
from forecurve.science.past.analogues import expected_errors

from ..synthetic import noisy_curve, sigmoid

BUDGET = 20_000.0
PLATEAU = fit(noisy_curve(0, last=16_000, points=90))


def _told(errors: np.ndarray | list[float], fitted: Fit = PLATEAU) -> Hindsight:
    """Past runs with forecasts like the new one's, which came out so much higher."""
    ending = predict_ending(fitted, BUDGET)
    past = [Past(str(at), 0.8, ending, ending.median + float(error)) for at, error in enumerate(errors)]
    return Hindsight.of(past, ending, fraction=0.8)


def _late(seed: int, growth: float = 0.05) -> Curve:
    """A run that goes on growing with the logarithm of compute after its sigmoid has bent."""
    rng = np.random.default_rng(seed)
    compute = np.linspace(400.0, BUDGET, 50)
    later = growth * np.maximum(np.log(compute / 8000), 0.0)
    reward = sigmoid(compute, 0.6 + 0.02 * rng.normal(), 2.0, 2000.0, 0.2) + later + rng.normal(0, 0.004, 50)
    return Curve(compute, reward, unit="GPU-hours", prompts=1000, samples=16, start=0.2)


def test_past_runs_that_all_gained_more_than_was_said_keep_a_run_from_being_stopped() -> None:
    alone = advise(PLATEAU, budget=BUDGET)
    told = advise(PLATEAU, budget=BUDGET, hindsight=_told(0.03 + 0.003 * np.random.default_rng(0).normal(size=12)))
    assert alone.action == "stop"
    assert told.action == "continue"
    assert told.numbers["expected_gain"] == pytest.approx(alone.numbers["expected_gain"] + 0.03, abs=0.003)
    assert told.numbers["past_runs"] == 12
    assert "by what 12 past runs gained" in told.reason
    json.dumps(told.to_dict(), allow_nan=False)


def test_errors_that_past_runs_do_not_share_change_hardly_anything() -> None:
    hindsight = _told(0.01 * np.random.default_rng(1).choice([-1.0, 1.0], size=14))
    assert abs(hindsight.shift) < 0.003
    assert advise(PLATEAU, budget=BUDGET, hindsight=hindsight).action == "stop"


def test_of_two_past_runs_nothing_is_learned() -> None:
    hindsight = _told([0.1, 0.1])
    assert (hindsight.runs, hindsight.shift, hindsight.sd) == (0, 0.0, 0.0)
    assert advise(PLATEAU, budget=BUDGET, hindsight=hindsight).to_dict() == advise(PLATEAU, budget=BUDGET).to_dict()


def test_a_spent_budget_has_no_end_to_come() -> None:
    hindsight = _told([0.1] * 12)
    spent = advise(PLATEAU, budget=16_000, hindsight=hindsight)
    assert spent.to_dict() == advise(PLATEAU, budget=16_000).to_dict()


def test_the_sentence_names_what_past_runs_had_on_top() -> None:
    hindsight = _told(0.03 + 0.003 * np.random.default_rng(0).normal(size=12))
    assert PLATEAU.sentence(budget=BUDGET).endswith("GPU-hours more would buy +0.01, the budget less: stop.")
    told = PLATEAU.sentence(budget=BUDGET, hindsight=hindsight)
    assert told.endswith("more would buy +0.01 by its curve, +0.03 on top to the end by 12 past runs: continue.")
    climbing, lower = fit(noisy_curve(0, last=6000, points=30)), 0.01 * np.random.default_rng(0).normal(size=12) - 0.06
    less = climbing.sentence(budget=BUDGET, hindsight=_told(lower))
    assert " more would buy +0.01 by its curve, 0.06 less to the end by 12 past runs (5" in less
    assert less.endswith(" % sure that it gains less than 0.01, a stop takes 90 %): continue.")


def test_what_is_shared_becomes_sure_with_many_runs_and_what_is_a_run_s_own_does_not() -> None:
    errors = 0.05 + 0.03 * np.random.default_rng(2).normal(size=60)
    found = expected_errors(errors, np.full(61, 0.5), np.full(61, 0.01), None)
    assert found.shared == (pytest.approx(0.05, abs=0.012), pytest.approx(0.03 / 60**0.5, rel=0.6))
    assert found.new == (pytest.approx(found.shared[0], abs=1e-3), pytest.approx(0.03, rel=0.4))


def test_shared_errors_are_those_of_a_gaussian_with_an_unknown_mean() -> None:
    """The closed form of one run more, integrated over the same lattice by brute force."""
    errors = np.array([0.02, 0.035, 0.05, 0.01, 0.04])
    found = expected_errors(errors, np.full(6, 0.5), np.full(6, 0.01), None)
    weights, means, variances = [], [], []
    for bias, weight in ((0.0, 0.95), (0.05, 0.05 * 0.5 / 0.6), (0.0, 0.05 * 0.1 / 0.6)):  # .95: nothing shared
        for spread in (0.003, 0.01, 0.03, 0.1):
            for trust in (0.3, 1.0):
                noise = spread**2 + (0.01 * trust) ** 2
                among = np.full((5, 5), bias**2) + noise * np.eye(5)
                inverse = np.linalg.inv(among)
                log_likelihood = -0.5 * errors @ inverse @ errors - 0.5 * np.log(np.linalg.det(among))
                weights.append(weight * np.exp(log_likelihood))
                means.append(bias**2 * inverse.sum(axis=0) @ errors)
                variances.append(bias**2 - bias**4 * inverse.sum())
    share, mean = np.array(weights) / sum(weights), np.array(means)
    centre = share @ mean
    assert found.shared[0] == pytest.approx(centre)
    assert found.shared[1] == pytest.approx(np.sqrt(share @ (np.array(variances) + (mean - centre) ** 2)))


def test_the_finished_runs_of_a_file_keep_a_late_grower_from_being_stopped_too_early() -> None:
    curves = [_late(seed) for seed in range(8)]
    alone, told = [], []
    for at in range(3):
        siblings = Siblings([*curves[:at], curves[at].until(11_000), *curves[at + 1 :]])
        fitted = siblings.fit(at)
        hindsight = siblings.hindsight(fitted, BUDGET, at)
        assert hindsight is not None
        assert hindsight.runs == 7
        alone.append(advise(fitted, budget=BUDGET).numbers["expected_gain"])
        told.append(advise(fitted, budget=BUDGET, hindsight=hindsight).numbers["expected_gain"])
    truth = sigmoid(np.array([11_000, BUDGET]), 0.6, 2.0, 2000.0, 0.2)
    really = 0.05 * np.log(BUDGET / 11_000) + truth[1] - truth[0]
    assert np.abs(np.mean(told) - really) < 0.5 * np.abs(np.mean(alone) - really)


def test_only_others_that_have_spent_the_budget_tell_how_it_ends() -> None:
    whole, copy = [_late(seed) for seed in range(4)], _late(0)
    siblings = Siblings([*whole, copy, _late(5).until(15_000), _late(6).until(9_000)])
    fitted = siblings.fit(6)
    hindsight = siblings.hindsight(fitted, BUDGET, 6)
    assert hindsight is not None
    assert sorted(one.run for one in hindsight.known) == ["0", "1", "2", "3"]  # 4 is a copy of 0
    assert siblings.hindsight(siblings.fit(0), BUDGET, 0) is None


def test_a_run_that_is_not_among_them_is_told_by_all() -> None:
    finished = [_late(seed) for seed in range(4)]
    siblings, young = Siblings([*finished, finished[1]]), _late(7).until(11_000)
    among = Siblings([*finished, young])
    forecast = fit(young, prior=siblings.prior())
    assert forecast.A.to_dict() == pytest.approx(among.fit(4).A.to_dict(), rel=1e-12)  # sums in another order
    hindsight = siblings.hindsight(forecast, BUDGET)
    assert hindsight is not None
    assert sorted(one.run for one in hindsight.known) == ["0", "1", "2", "3"]


def test_a_past_forecast_sees_only_the_first_part_of_its_run() -> None:
    curve = _late(1)
    past = past_forecast(curve, 0.25)
    assert past is not None
    assert past.estimate == predict_mean_of(curve)
    assert past.actual == pytest.approx(float(curve.reward[-5:].mean()))
    assert past_forecast(curve, 0.01) is None


def predict_mean_of(curve: Curve) -> Estimate:
    from forecurve.science import predict_mean

    return predict_mean(fit(curve.until(0.25 * BUDGET)), curve.compute[-5:])


UNIT = Estimate(0.5, 0.4, 0.6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"actual": math.nan}, r"past\[0\].actual"),
        ({"actual": "a"}, r"past\[0\].actual"),
        ({"said": Estimate(0.5, 0.6, 0.4)}, r"past\[0\].estimate"),
        ({"said": Estimate(math.nan, 0.4, 0.6)}, r"past\[0\].estimate"),
        ({"share": math.nan}, r"past\[0\].fraction"),
        ({"estimate": Estimate(0.5, 0.4, math.inf)}, "estimate"),
        ({"estimate": 0.5}, "estimate"),
        ({"width": 0.0}, "width"),
        ({"width": 1e-300}, "width"),
        ({"width": "a"}, "width"),
        ({"fraction": "a"}, "fraction"),
        ({"mates": (math.nan,)}, r"mates\[0\]"),
        ({"ahead": [0.5]}, r"ahead\[0\]"),
        ({"past": 3}, "past"),
        ({"past": [3]}, r"past\[0\]"),
    ],
)
def test_what_past_runs_cannot_have_said_is_refused(told: dict[str, Any], field: str) -> None:
    given = {"actual": 0.5, "said": UNIT, "share": 0.5, "estimate": UNIT, **told}
    share, said, actual = given.pop("share"), given.pop("said"), given.pop("actual")
    past = given.pop("past", [Past(str(at), share, said, actual) for at in range(4)])
    with pytest.raises(FieldError, match=f"^{field}: "):
        Hindsight.of(past, given.pop("estimate"), **given)
