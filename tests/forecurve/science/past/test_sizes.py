"""How many answers an evaluation rests on, told by runs of the same task."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, Evaluation, Fit, PriorError, Siblings, fit
from forecurve.science.fitting.outcome import predict_ending
from forecurve.science.fitting.under_priors import fits_under
from forecurve.science.past.sizes import answers_of_all
from forecurve.science.posterior.prior import FLAT, Prior

from ..synthetic import sigmoid

PROMPTS = 500


def _held_out(seed: int, points: int = 8, prompts: int = PROMPTS, decimals: int = 3) -> Curve:
    """Evaluations of so many prompts of which nobody says it, as they are written in a log."""
    compute = np.arange(1.0, points + 1) * 50
    rate = np.random.default_rng(seed).binomial(prompts, sigmoid(compute, 0.6, 1.5, 150.0, 0.2)) / prompts
    return Curve(compute, np.round(rate, decimals), unit="steps", name=f"run {seed}")


def _prior(runs: int = 3) -> Prior:
    return Siblings([_held_out(seed) for seed in range(runs)]).prior()


def test_runs_tell_together_what_none_of_them_tells() -> None:
    curves = [_held_out(seed) for seed in range(3)]
    assert [curve.answers for curve in curves] == [None] * 3
    assert answers_of_all(curves) == PROMPTS
    found = fit(_held_out(9, points=3), prior=_prior())
    assert (found.curve.answers, found.curve.noise.source) == (PROMPTS, "rewards")
    assert found.curve.sizes == pytest.approx([PROMPTS] * 3)
    told = Curve(found.curve.compute, found.curve.reward, prompts=PROMPTS, samples=1)
    np.testing.assert_allclose(found.curve.noise.variance, told.noise.variance)


def test_one_that_tells_it_tells_it_of_all() -> None:
    long, short = _held_out(0, points=40), _held_out(1, points=3)
    assert (long.answers, short.answers) == (PROMPTS, None)
    assert answers_of_all([long, short]) == PROMPTS


@pytest.mark.parametrize(
    "curves",
    [
        [],
        [_held_out(0, points=40), _held_out(1, points=40, prompts=1319, decimals=9)],  # two tasks
        [_held_out(0, points=40), _held_out(1, prompts=1319)],
        [_held_out(seed, prompts=997) for seed in range(5)],  # three decimals do not tell so many
        [Curve([1, 2, 3], [0.2, 0.4, 0.5], prompts=PROMPTS, samples=4)],  # told, and no word of another run's
    ],
    ids=["none", "two tasks", "one cannot be", "too many", "told"],
)
def test_where_runs_do_not_agree_nothing_is_told(curves: list[Curve]) -> None:
    assert answers_of_all(curves) is None


@pytest.mark.parametrize(
    "curve",
    [
        Curve([50, 100, 150], [0.3, 0.4, 0.5001]),
        Curve([50, 100, 150], [0.3, 0.4, 0.5], prompts=100, samples=1),
        Curve([50, 100, 150], [0.3, 0.4, 0.5], variance=1e-4),
        Curve([50, 100, 150, 200], np.array([994, 1021, 1056, 1080]) / 1319),
    ],
    ids=["no such rate", "told", "variance told", "tells another number"],
)
def test_what_is_known_of_the_run_itself_goes_before(curve: Curve) -> None:
    assert fit(curve, prior=Prior("x", weight=0.0, answers=PROMPTS)).curve is curve


def test_a_collapse_is_known_at_its_first_evaluation() -> None:
    """Of 500 prompts none is right by no luck; of an evaluation of unknown size nobody can say."""
    curve = Curve([50, 100, 150], [0.156, 0.408, 0.0], unit="steps")
    alone, told = fit(curve), fit(curve, prior=_prior())
    assert (alone.misfit, told.misfit) == (None, "collapse")
    assert told.withheld
    assert predict_ending(told, 600).lower == pytest.approx(0, abs=0.01)
    assert predict_ending(told, 600).median < predict_ending(alone, 600).median


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 20), st.integers(0, 999), st.booleans(), st.booleans())
def test_one_evaluation_more_leads_to_the_same_fit(size: int, seed: int, breaks: bool, sized: bool) -> None:
    """Also where it cannot be of as many answers, or where its own size is told."""
    whole, prior = _held_out(seed, size + 1), Prior("x", weight=0.0, answers=PROMPTS)
    rate = 0.4321 if breaks else float(whole.reward[-1])
    last = Evaluation(float(whole.compute[-1]), rate, **({"prompts": 400, "samples": 1} if sized else {}))
    seen = Curve(whole.compute[:-1], whole.reward[:-1], unit="steps")
    updated, again = fit(seen, prior=prior).update(last), fit(seen.extended(last), prior=prior)
    assert updated.curve.answers == again.curve.answers
    np.testing.assert_allclose(updated.curve.noise.variance, again.curve.noise.variance)
    assert updated.A.median == pytest.approx(again.A.median, abs=0.06 * max(again.A.width, 1e-3))


def test_under_one_prior_after_another_it_is_the_fit_of_each() -> None:
    curve = _held_out(4, points=5)
    priors = [FLAT, _prior(), Prior("x", weight=0.0, answers=PROMPTS), FLAT]
    for prior, found in zip(priors, fits_under(curve, priors), strict=True):
        by_itself: Fit = fit(curve, prior=prior)
        assert found.curve.answers == by_itself.curve.answers == prior.answers
        assert found.A.median == pytest.approx(by_itself.A.median, abs=1e-9)


def test_a_number_that_cannot_be_is_refused() -> None:
    for answers in (0, -1, 2.5, True):
        with pytest.raises(PriorError, match="answers: a whole number from 1 on is needed"):
            Prior("x", answers=answers)
