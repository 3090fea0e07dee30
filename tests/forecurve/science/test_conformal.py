"""Conformal scaling against its definition, its guarantee by simulation, and the track record that feeds it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Conformal, Estimate, Score, score
from forecurve.science.conformal import bin_of, score_of
from forecurve.science.track_record import Forecast

UNIT = Estimate(0.5, 0.4, 0.6)


def _scores(values: list[float] | np.ndarray) -> list[Score]:
    return [Score(str(at), 0.25, float(value)) for at, value in enumerate(values)]


def test_a_score_is_one_at_either_end_of_a_lopsided_interval() -> None:
    lopsided = Estimate(0.5, 0.45, 0.7)
    assert score_of(lopsided, 0.7) == pytest.approx(1)
    assert score_of(lopsided, 0.45) == pytest.approx(-1)
    assert score_of(lopsided, 0.5) == 0


def test_with_eight_past_runs_the_posterior_stays_as_it_is_and_says_so() -> None:
    conformal = Conformal.of(_scores([5.0] * 8))
    assert conformal.label == "posterior"
    assert conformal.apply(UNIT) == UNIT


def test_with_nine_the_largest_score_is_the_factor() -> None:
    conformal = Conformal.of(_scores([0.3, -0.4, 0.5, -1.4, 0.1, -0.2, 0.9, -0.9, 2.5]))
    assert conformal.label == "conformal (9 past runs)"
    assert conformal.factor == 2.5
    assert conformal.shift == 0
    assert conformal.apply(UNIT) == Estimate(0.5, pytest.approx(0.25), pytest.approx(0.75))


def test_a_bias_that_all_past_runs_share_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    conformal = Conformal.of(_scores(1.5 + 0.1 * rng.normal(size=20)))
    moved = conformal.apply(UNIT)
    assert moved.median == pytest.approx(0.65, abs=0.01)
    assert moved.upper - moved.lower < 0.5 * UNIT.width


def test_scores_that_scatter_around_zero_move_nothing() -> None:
    rng = np.random.default_rng(1)
    moved = [Conformal.of(_scores(rng.normal(size=12))).shift != 0 for _ in range(300)]
    assert np.mean(moved) < 0.15


def test_the_interval_stays_within_the_range_of_rewards() -> None:
    wide = Conformal(shift=0.0, factor=40.0, runs=9)
    assert wide.apply(UNIT) == Estimate(0.5, 0.0, 1.0)
    assert wide.apply(UNIT, (0.45, 0.55)) == Estimate(0.5, 0.45, 0.55)


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-20, 20), min_size=9, max_size=30),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(sorted),
)
def test_what_comes_out_is_always_an_interval_around_its_median(values: list[float], ends: list[float]) -> None:
    lower, median, upper = ends
    scaled = Conformal.of(_scores(values)).apply(Estimate(median, lower, upper))
    assert 0 <= scaled.lower <= scaled.median <= scaled.upper <= 1


@pytest.mark.parametrize(("runs", "bias"), [(9, 0.0), (14, 0.0), (30, 0.0), (14, 1.5), (30, 1.5)])
def test_exchangeable_runs_are_covered_nine_times_in_ten(runs: int, bias: float) -> None:
    """Heavy tails, an interval four times too narrow, with and without a shared bias."""
    rng = np.random.default_rng(runs)
    covered = []
    for _ in range(1500):
        values = bias + 4 * rng.standard_t(3, size=runs + 1)
        conformal = Conformal.of(_scores(values[1:]))
        covered.append(abs(values[0] - conformal.shift) <= conformal.factor)
    assert 0.87 <= np.mean(covered) <= 0.95


def test_each_run_counts_once_with_its_forecast_nearest_in_the_same_range_of_the_budget() -> None:
    scores = [Score(str(run), fraction, value) for run in range(9) for fraction, value in ((0.2, 9.0), (0.25, 1.0))]
    early = [Score(str(run), 0.1, 7.0) for run in range(9)]
    conformal = Conformal.of([*scores, *early], fraction=0.26)
    assert (conformal.runs, conformal.shift, conformal.factor) == (9, 1.0, 0.0)
    assert Conformal.of(early, fraction=0.26).runs == 0


def test_ranges_of_the_budget_hold_the_usual_fractions_apart() -> None:
    assert len({bin_of(fraction) for fraction in (0.1, 0.25, 0.5, 0.8)}) == 4
    assert bin_of(3.0) == bin_of(0.9)


# --- the track record ---


def test_forecasts_are_scored_against_what_came_and_the_open_ones_wait() -> None:
    said = [
        Forecast("a", 0.1, Estimate(0.60, 0.50, 0.70)),
        Forecast("a", 0.12, Estimate(0.64, 0.60, 0.70)),
        Forecast("b", 0.1, Estimate(0.50, 0.45, 0.55), withheld=True),
        Forecast("b", 0.5, Estimate(0.58, 0.55, 0.65)),
        Forecast("open", 0.5, Estimate(0.5, 0.4, 0.6)),
    ]
    record = score(said, {"a": 0.66, "b": 0.60})
    assert record.waiting == 1
    early, late = record.table
    assert (early.forecasts, early.runs, early.withheld) == (3, 2, 1)
    assert early.mae == pytest.approx((np.mean([0.06, 0.02]) + 0.10) / 2)  # each run counts once
    assert early.coverage == pytest.approx(0.5)
    assert late.mae == pytest.approx(0.02)
    assert late.coverage == 1


def test_a_track_record_is_one_json_object_and_feeds_the_scaling() -> None:
    said = [Forecast(str(run), 0.25, UNIT, id=f"f{run}") for run in range(10)]
    record = score(said, {str(run): 0.5 + 0.02 * (-1) ** run * run for run in range(10)})
    body = json.loads(json.dumps(record.to_dict(), allow_nan=False))
    assert body["forecasts"][3]["forecast"] == "f3"
    assert body["forecasts"][9]["covered"] is False
    assert body["table"][0]["runs"] == 10
    conformal = Conformal.of(record.scores(), fraction=0.3)
    assert conformal.factor == pytest.approx(1.8)  # the tenth of ten; the ninth would leave out one in eleven
    assert "10 of 10 runs" in repr(record)


def test_an_empty_track_record_has_no_lines() -> None:
    assert score([], {}).to_dict() == {"forecasts": [], "table": [], "waiting": 0}
