"""What `Siblings` and a past forecast are asked: places, shares and computes that cannot be are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forecurve.science import CurveError, FieldError, PriorError, Siblings, fit, past_forecast

from ..synthetic import noisy_curve

RUNS = [noisy_curve(seed, last=4_000.0, points=20) for seed in range(3)]
SIBLINGS = Siblings(RUNS)
YOUNG = fit(noisy_curve(7, last=4_000.0, points=20).until(1_000.0))
BUDGET = 4_000.0
NAN = float("nan")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("ask", "field", "kind"),
    [
        (lambda: SIBLINGS.prior(at=10), "at", PriorError),
        (lambda: SIBLINGS.prior(at=-1), "at", PriorError),
        (lambda: SIBLINGS.prior(at=True), "at", PriorError),
        (lambda: SIBLINGS.fit("a"), "at", PriorError),
        (lambda: SIBLINGS.fit(None), "at", PriorError),
        (lambda: SIBLINGS.hindsight(YOUNG, BUDGET, at=9), "at", PriorError),
        (lambda: Siblings([]).prior(at=0), "at", PriorError),
        (lambda: SIBLINGS.prior(now=1, budget=-5), "budget", PriorError),
        (lambda: SIBLINGS.prior(now=1, budget=1e300), "budget", PriorError),
        (lambda: SIBLINGS.prior(at=0, budget=NAN), "budget", PriorError),
        (lambda: SIBLINGS.prior(now=NAN, budget=BUDGET), "now", PriorError),
        (lambda: SIBLINGS.prior(now="a", budget=BUDGET), "now", PriorError),
        (lambda: SIBLINGS.prior(budget=BUDGET), "now", PriorError),
        (lambda: SIBLINGS.fit(0, budget=-1), "budget", PriorError),
        (lambda: SIBLINGS.hindsight(YOUNG, 1e300), "budget", PriorError),
        *[
            (lambda share=share: SIBLINGS.hindsight(YOUNG, BUDGET, share=share), "share", PriorError)
            for share in (0, 1.0, 5.0, -0.5, NAN, "a")
        ],
        *[
            (lambda share=share: past_forecast(RUNS[0], share), "fraction", CurveError)
            for share in (0, 1.0, 5.0, -0.5, NAN, "a")
        ],
        (lambda: past_forecast("x", 0.5), "curve", CurveError),
    ],
)
def test_what_cannot_be_is_refused(ask: Callable[[], Any], field: str, kind: type[FieldError]) -> None:
    with pytest.raises(kind) as caught:
        ask()
    assert caught.value.field == field
    assert caught.value.way_out


def test_a_share_that_is_given_is_where_past_forecasts_are_made() -> None:
    asked = SIBLINGS.hindsight(YOUNG, BUDGET, share=0.5)
    assert asked is not None
    assert {one.fraction for one in asked.known} == {0.5}


@pytest.mark.parametrize("other", ["unit", "bounds"])
def test_a_run_of_another_unit_or_range_is_not_told_by_them(other: str) -> None:
    curve = RUNS[0].until(1_000.0)
    changed = {"unit": "FLOP"} if other == "unit" else {"bounds": (-1.0, 1.0)}
    alien = type(curve)(curve.compute, curve.reward, **{"unit": curve.unit, **changed})
    with pytest.raises(PriorError) as caught:
        SIBLINGS.hindsight(fit(alien), BUDGET)
    assert caught.value.field == other


def test_siblings_say_which_runs_they_are() -> None:
    assert repr(SIBLINGS) == "Siblings(3 runs: run 0, run 1, run 2)"
