"""What is told of arms: where they are together, as unsure as each is alone."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve import advise, fit, plan
from forecurve.science import Estimate, predict_ending
from forecurve.science.planning.standing import Standing, enter, standing

from ..departures.test_shape import seen
from .arms import FITS, arm_of, never_moved


def test_an_end_is_told_about_where_the_arms_together_have_it_as_unsure_as_the_run_is_by_itself() -> None:
    here = standing([enter(each, 16_000.0) for each in FITS], 16_000.0)
    for at, arm in enumerate(plan(FITS, 40_000.0, horizon=16_000.0).arms):
        alone = predict_ending(FITS[at], 16_000.0)
        lower, median, upper = np.quantile(here.ends[:, at], [0.05, 0.5, 0.95])
        assert arm.end.median == pytest.approx(median, abs=1e-3)
        below, above = max(median - lower, alone.median - alone.lower), max(upper - median, alone.upper - alone.median)
        assert (arm.end.median - arm.end.lower, arm.end.upper - arm.end.median) == pytest.approx(
            (below, above), abs=3e-3
        )
        gain = Estimate(**advise(FITS[at], budget=16_000.0).numbers["gain"])
        assert arm.gain.width >= gain.width - 3e-3


def test_no_gain_is_told_that_a_run_cannot_have() -> None:
    high = [arm_of(f"high {at}", at, 4000.0, 12, A=0.97 + 0.01 * at, B=1.2, C_mid=1500.0) for at in range(2)]
    here = standing([enter(fit(one), 60_000.0) for one in [*high, never_moved(0)]], 60_000.0)
    for at in range(2):
        gained = here.levels[:, at] + here.told_gain(at, float(here.now[at]), 60_000.0)
        assert gained.min() >= 0
        assert gained.max() <= 1 + 1e-12
    assert here.told_gain(2, float(here.now[2]), 60_000.0).min() >= 0


def test_where_arms_tell_one_another_nothing_each_is_told_as_alone() -> None:
    for arm, alone in zip(plan(FITS, 40_000.0, horizon=16_000.0, siblings=False).arms, FITS, strict=True):
        assert arm.end.to_dict() == pytest.approx(predict_ending(alone, 16_000.0).to_dict(), abs=2e-3)
    (only,) = plan(FITS[:1], 40_000.0, horizon=16_000.0).arms
    assert only.end.to_dict() == pytest.approx(predict_ending(FITS[0], 16_000.0).to_dict(), abs=2e-3)


def test_a_choice_that_is_told_to_gain_nothing_is_not_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though by the draws that it was chosen by it gains enough."""
    assert plan(FITS, 40_000.0, horizon=16_000.0).allocation[-1].kind == "finish"
    monkeypatch.setattr(Standing, "told_gain", lambda self, arm, start, to: np.full(2000, -0.01))
    found = plan(FITS, 40_000.0, horizon=16_000.0)
    assert found.not_run_on == "it is 90 % sure to gain less than 0.01"
    assert all(row.kind == "look" for row in found.allocation)


def test_a_choice_whose_curve_has_nothing_left_is_not_run_on_unless_that_is_not_its_curve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told of its gain is less sure than the curve, and the words do not say otherwise."""
    monkeypatch.setattr(Standing, "gain", lambda self, arm, start, to: np.zeros(2000))
    found = plan(FITS[:1], 40_000.0, horizon=16_000.0)
    assert found.not_run_on == "by its curve it is 90 % sure to gain less than 0.01"
    assert found.allocation == ()
    assert found.chosen.gain.upper > 0.01
    other_shape = plan([fit(seen(1.0, 1))], 40_000.0, horizon=16_000.0)
    assert other_shape.chosen.misfit == "shape"
    assert [row.kind for row in other_shape.allocation] == ["finish"]
