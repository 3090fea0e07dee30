"""Which runs tell of one: those that are over where it will be, those that are far ahead of it or, later, beside it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.science import Curve, Outcome, PriorError, Siblings, fit, predict_mean
from forecurve.science.past.telling import is_finished, least_far_ahead, least_to_tell
from forecurve.science.posterior.prior import FLAT

from ..synthetic import noisy_curve

BUDGET = 16_000.0


def _run(seed: int, ceiling: float = 0.6) -> Curve:
    return noisy_curve(seed, last=BUDGET, points=60, A=ceiling)


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e6))
def test_more_is_asked_of_others_the_further_a_run_is_and_never_more_than_to_be_finished(
    now: float, budget: float
) -> None:
    least = least_far_ahead(now, budget)
    assert 0.5 * budget <= least <= 0.9 * budget
    assert least_far_ahead(1.5 * now, budget) >= least
    assert is_finished(budget, budget)
    assert least >= 2 * now or is_finished(least, budget)


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e6), st.integers(0, 5))
def test_less_is_asked_of_those_beside_a_run_that_is_on_its_way_while_few_are_finished(
    now: float, budget: float, finished: int
) -> None:
    least, far = least_to_tell(now, budget, finished), least_far_ahead(now, budget)
    beside = now >= 0.25 * budget and finished < 3
    assert least == (min(far, 0.9 * now) if beside else far)


def test_a_prior_is_made_of_those_that_are_over_far_ahead_or_beside_it() -> None:
    whole, half, early = _run(0), [_run(seed).until(8_500) for seed in (1, 2, 3)], [_run(4).until(3_000)]
    runs = [whole, *half, *early]
    siblings = Siblings(runs)
    young, later, last = (siblings.prior(now=now, budget=BUDGET) for now in (3_000, 8_000, 10_000))
    assert (young.name, young.runs, young.ahead) == ("4 siblings", 1, 3)  # only one has shown the end
    assert (later.name, later.runs, later.ahead) == ("4 siblings", 1, 3)
    assert (last.name, last.runs, last.ahead) == ("1 sibling", 1, 0)
    of_more = Siblings([*runs, _run(5), _run(6)]).prior(now=8_000, budget=BUDGET)
    assert (of_more.name, of_more.runs, of_more.ahead) == ("3 siblings", 3, 0)
    assert siblings.prior(now=3_000, budget=20 * BUDGET) == FLAT
    assert siblings.prior(now=1_000, budget=8_000).runs == 4
    assert siblings.prior(4, budget=BUDGET) == young
    assert siblings.prior().name == "5 siblings"
    with pytest.raises(PriorError, match="give what it has spent"):
        siblings.prior(budget=BUDGET)


def test_what_is_past_is_told_by_runs_that_were_ahead_of_it_alone() -> None:
    """Live runs at the beginning change nothing of what would have been said of those that are over."""
    finished, live = [_run(seed, 0.58 + 0.01 * seed) for seed in range(5)], [_run(9).until(1_500)] * 2
    young = _run(7).until(4_000)
    told = []
    for curves in (finished, [*finished, *live]):
        siblings = Siblings(curves)
        forecast = fit(young, prior=siblings.prior(now=young.now, budget=BUDGET))
        hindsight = siblings.hindsight(forecast, BUDGET)
        assert hindsight is not None
        told.append([(one.estimate, one.actual) for one in hindsight.known])
    assert told[0] == told[1]


@pytest.mark.slow
def test_runs_at_half_of_the_budget_tell_where_one_that_began_will_end() -> None:
    """Of where its curve leads; how far it will leave that, nobody has seen."""
    rng = np.random.default_rng(3)
    wrong: dict[str, list[float]] = {"told": [], "alone": []}
    widths: dict[str, list[float]] = {"told": [], "alone": []}
    held = 0
    for family in range(20):
        ceilings = 0.6 + 0.02 * rng.normal(size=6)
        runs = [_run(100 * family + at, float(ceiling)) for at, ceiling in enumerate(ceilings)]
        young, outcome = runs[0].until(0.15 * BUDGET), Outcome.of(runs[0])
        siblings = Siblings([run.until(0.6 * BUDGET) for run in runs[1:]])
        fits = {"told": fit(young, prior=siblings.prior(now=young.now, budget=BUDGET)), "alone": fit(young)}
        for who, fitted in fits.items():
            expected = predict_mean(fitted, outcome.compute)
            wrong[who].append(abs(expected.median - outcome.reward))
            widths[who].append(expected.width)
            held += who == "told" and expected.lower <= outcome.reward <= expected.upper
    assert held >= 17
    assert np.mean(wrong["told"]) < 0.5 * np.mean(wrong["alone"])
    assert np.median(widths["told"]) < 0.8 * np.median(widths["alone"])
