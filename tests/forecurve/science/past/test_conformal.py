"""Conformal scaling against its definition, its guarantee by simulation, and the track record that feeds it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Conformal, Course, Estimate, Hindsight, Past, score
from forecurve.science.backtesting.track_record import Forecast
from forecurve.science.past.hindsight import bin_of

UNIT = Estimate(0.5, 0.4, 0.6)


def _told(*past: Any, **known: Any) -> Conformal:
    return Conformal.of(Hindsight.of(*past, **known))


def _past(errors: list[float] | np.ndarray, fraction: float = 0.25) -> list[Past]:
    """Runs whose forecasts were all the same, with an interval of 0.1 to either side."""
    return [Past(str(at), fraction, UNIT, 0.5 + float(error)) for at, error in enumerate(errors)]


def test_with_two_past_runs_the_posterior_stays_as_it_is_and_says_so() -> None:
    conformal = _told(_past([0.5] * 2), UNIT)
    assert conformal.label == "posterior"
    assert conformal.apply(UNIT) == UNIT


def test_with_eight_past_runs_the_interval_is_adjusted_and_says_so() -> None:
    """As told where past runs bear it out, wider where they do not."""
    signs = np.where(np.arange(8) % 2, 1, -1)
    borne_out, wrong = (_told(_past(size * signs * np.linspace(0.2, 1, 8)), UNIT) for size in (0.1, 0.4))
    assert {borne_out.label, wrong.label} == {"adjusted (8 past runs)"}
    assert 0.7 < borne_out.factor < 1.2
    assert 3.0 < wrong.factor < 6.0


def test_with_nine_the_factor_lies_between_the_two_largest_errors_in_half_widths() -> None:
    conformal = _told(_past([0.03, -0.04, 0.05, -0.14, 0.01, -0.02, 0.09, -0.09, 0.25]), UNIT)
    assert conformal.label == "conformal (9 past runs)"
    assert 1.4 < conformal.factor < 2.5
    assert conformal.shift == 0
    half = 0.1 * conformal.factor
    assert conformal.apply(UNIT) == Estimate(0.5, pytest.approx(0.5 - half), pytest.approx(0.5 + half))


def test_with_nineteen_the_second_largest_error_in_half_widths_is_the_factor() -> None:
    signs = np.where(np.arange(19) % 2, 1, -1)
    conformal = _told(_past(np.array([*(0.01 * np.arange(17)), 0.2, 0.25]) * signs), UNIT)
    assert (conformal.shift, conformal.factor) == (0, pytest.approx(2.0))


def test_errors_are_measured_on_their_own_side_of_a_lopsided_interval() -> None:
    lopsided = Estimate(0.5, 0.45, 0.7)
    ends = [0.45, 0.7, 0.5, 0.55, 0.48, 0.49, 0.52, 0.6, 0.47, 0.7]
    past = [Past(str(at), 0.25, lopsided, end) for at, end in enumerate(ends)]
    conformal = _told(past, lopsided)
    assert (conformal.shift, conformal.factor) == (0, pytest.approx(1))
    assert conformal.apply(lopsided) == Estimate(0.5, pytest.approx(0.45), pytest.approx(0.7))


def test_a_bias_that_all_past_runs_share_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    moved = _told(_past(0.15 + 0.01 * rng.normal(size=20)), UNIT)
    scaled = moved.apply(UNIT)
    assert scaled.median == pytest.approx(0.65, abs=0.01)
    assert scaled.width < 0.5 * UNIT.width


def test_errors_that_scatter_around_zero_move_hardly_anything() -> None:
    rng = np.random.default_rng(1)
    moved = [_told(_past(0.1 * rng.normal(size=12)), UNIT).shift for _ in range(200)]
    assert np.mean(np.abs(moved) > 0.01) < 0.1
    assert np.max(np.abs(moved)) < 0.1


def test_runs_that_went_the_same_way_tell_where_this_one_will_end() -> None:
    """Half of the past rose early and was forecast too high, half rose late and was forecast too low."""
    rng = np.random.default_rng(2)
    compute = np.linspace(0, 10, 21)
    early, late = 0.3 * compute / (1 + compute), 0.3 * compute**2 / (30 + compute**2)
    past = []
    for at in range(16):
        course = Course(compute, (early if at % 2 else late) + 0.005 * rng.normal(size=21))
        past.append(Past(str(at), 0.25, UNIT, 0.5 + (-0.1 if at % 2 else 0.1) + 0.01 * rng.normal()))
        past[-1] = replace(past[-1], course=course)
    unlike = _told(past, UNIT)
    like_early = _told(past, UNIT, course=Course(compute[:9], early[:9]))
    like_late = _told(past, UNIT, course=Course(compute[:9], late[:9]))
    assert abs(unlike.shift) < 0.02
    assert like_early.shift == pytest.approx(-0.1, abs=0.02)
    assert like_late.shift == pytest.approx(0.1, abs=0.02)
    assert like_early.apply(UNIT).width < 0.5 * unlike.apply(UNIT).width


def test_of_many_past_runs_those_are_asked_that_went_most_alike() -> None:
    compute = np.linspace(0, 10, 11)
    past = [
        Past(str(at), 0.25, UNIT, 0.55 if at < 50 else 0.1, Course(compute, compute / (20 if at < 50 else 200)))
        for at in range(100)
    ]
    conformal = _told(past, UNIT, course=Course(compute[:4], compute[:4] / 20))
    assert conformal.runs == 40
    assert conformal.apply(UNIT).median == pytest.approx(0.55, abs=0.005)


def test_the_interval_stays_within_the_range_of_rewards() -> None:
    wide = Conformal(shift=0.0, factor=40.0, runs=9)
    assert wide.apply(UNIT) == Estimate(0.5, 0.0, 1.0)
    assert wide.apply(UNIT, (0.45, 0.55)) == Estimate(0.5, 0.45, 0.55)


def test_a_posterior_that_is_sure_of_one_side_is_stretched_there_too() -> None:
    pinned = Estimate(0.6, 0.4, 0.6)
    assert Conformal(shift=0.0, factor=2.0, runs=9).apply(pinned).upper == pytest.approx(0.7)


ESTIMATES = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)).map(sorted)


@settings(max_examples=60, deadline=None)
@given(
    ended=st.lists(st.tuples(ESTIMATES, st.floats(0, 1)), min_size=3, max_size=20),
    new=ESTIMATES,
)
def test_what_comes_out_is_always_an_interval_around_its_median(
    ended: list[tuple[list[float], float]], new: list[float]
) -> None:
    past = [
        Past(str(at), 0.25, Estimate(median, lower, upper), actual)
        for at, ((lower, median, upper), actual) in enumerate(ended)
    ]
    lower, median, upper = new
    estimate = Estimate(median, lower, upper)
    scaled = _told(past, estimate).apply(estimate)
    assert 0 <= scaled.lower <= scaled.median <= scaled.upper <= 1


@pytest.mark.parametrize(("runs", "bias"), [(9, 0.0), (14, 0.0), (30, 0.0), (14, 0.15), (30, 0.15)])
def test_exchangeable_runs_are_covered_nine_times_in_ten(runs: int, bias: float) -> None:
    """Heavy tails, an interval twice too narrow, with and without a shared bias."""
    rng = np.random.default_rng(runs)
    said = Estimate(0.5, 0.45, 0.55)
    covered = []
    for _ in range(600):
        errors = bias + 0.04 * rng.standard_t(3, size=runs + 1)
        past = [Past(str(at), 0.25, said, 0.5 + error) for at, error in enumerate(errors[1:])]
        scaled = _told(past, said).apply(said, (-9.0, 9.0))
        covered.append(scaled.lower <= 0.5 + errors[0] <= scaled.upper)
    assert 0.86 <= np.mean(covered) <= 0.95


def _of_a_kind(rng: np.random.Generator, run: int) -> Past:
    """A run of one of three kinds: they went differently, and were forecast too high, too low and rightly."""
    compute, kind = np.linspace(0, 10, 21), int(rng.integers(3))
    way = (0.3 * compute / (1 + compute), 0.3 * compute**2 / (30 + compute**2), 0.02 * compute)[kind]
    half = rng.uniform(0.02, 0.08)
    ended = 0.5 + (-0.06, 0.06, 0.0)[kind] + 0.02 * rng.standard_t(3)
    course = Course(compute, way + 0.01 * rng.normal(size=21))
    return Past(str(run), 0.25, Estimate(0.5, 0.5 - half, 0.5 + half), ended, course)


@pytest.mark.parametrize("runs", [9, pytest.param(30, marks=pytest.mark.slow)])
def test_what_likeness_tells_is_covered_nine_times_in_ten_too(runs: int) -> None:
    rng = np.random.default_rng(7)
    covered = []
    for _ in range(200):  # nine times in ten; a share of .8 is found 96 times in 100
        new, *past = (_of_a_kind(rng, run) for run in range(runs + 1))
        assert new.course is not None
        so_far = Course(new.course.compute[:9], new.course.reward[:9])
        scaled = _told(past, new.estimate, course=so_far).apply(new.estimate, (-9.0, 9.0))
        covered.append(scaled.lower <= new.actual <= scaled.upper)
    assert 0.85 <= np.mean(covered) <= 0.96


def test_a_range_of_rewards_twice_as_wide_moves_and_stretches_alike() -> None:
    rng = np.random.default_rng(8)
    new, *past = (_of_a_kind(rng, run) for run in range(15))
    assert new.course is not None
    one = _told(past, new.estimate, course=new.course)
    two = _told([_doubled(run) for run in past], _double(new.estimate), course=_doubled(new).course, width=2.0)
    assert one.shift != 0
    assert (two.shift, two.factor) == (pytest.approx(2 * one.shift), pytest.approx(one.factor))


def _double(one: Estimate) -> Estimate:
    return Estimate(2 * one.median, 2 * one.lower, 2 * one.upper)


def _doubled(run: Past) -> Past:
    assert run.course is not None
    course = Course(run.course.compute, 2 * run.course.reward)
    return Past(run.run, run.fraction, _double(run.estimate), 2 * run.actual, course)


def test_each_run_counts_once_with_its_forecast_nearest_in_the_same_range_of_the_budget() -> None:
    past = [
        Past(str(run), fraction, UNIT, 0.5 + error) for run in range(9) for fraction, error in ((0.2, 0.4), (0.25, 0.1))
    ]
    early = [Past(str(run), 0.1, UNIT, 0.9) for run in range(9)]
    conformal = _told([*past, *early], UNIT, fraction=0.26)
    assert conformal.runs == 9
    assert conformal.shift == pytest.approx(0.1, abs=0.002)
    assert conformal.factor < 0.05
    assert _told(early, UNIT, fraction=0.26).runs == 0


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
    conformal = _told([Past(one.forecast.run, 0.25, UNIT, one.actual) for one in record.scored], UNIT, fraction=0.3)
    assert conformal.factor == pytest.approx(1.8)  # the tenth of ten; the ninth would leave out one in eleven
    assert "10 of 10 runs" in repr(record)


def test_an_empty_track_record_has_no_lines() -> None:
    assert score([], {}).to_dict() == {"forecasts": [], "table": [], "waiting": 0}
