"""Sparklines and interval bars, read back from the SVG."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from web.drawings import (
    BAR_WIDTH,
    SPARK_HEIGHT,
    SPARK_WIDTH,
    Spark,
    bar_axis,
    bar_range,
    interval_bar,
    rate_range,
    sparkline,
)

RATES = st.floats(0, 1)


def _estimate(lower: float, median: float, upper: float) -> SimpleNamespace:
    return SimpleNamespace(lower=lower, median=median, upper=upper)


def _band(computes: list[float]) -> dict[str, list[float]]:
    median = [0.2 + 0.5 * c / (c + 5) for c in computes]
    return {
        "compute": computes,
        "median": median,
        "lower90": [m - 0.05 for m in median],
        "upper90": [m + 0.05 for m in median],
    }


def _places(svg: str, name: str) -> list[tuple[float, float]]:
    shape = next(e for e in ET.fromstring(svg).iter() if name == e.get("class"))
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in shape.get("points", "").split())]


def test_a_sparkline_rises_with_the_curve_and_is_dashed_beyond_the_data() -> None:
    spark = Spark([(0.0, 0.2), (2.0, 0.34), (8.0, 0.51)], _band([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), 32.0, 3)
    svg = str(sparkline(spark, 0.0, 1.0))
    fit, beyond = _places(svg, "fit"), _places(svg, "fit beyond")
    assert len(fit) == 4
    assert len(beyond) == 3
    assert fit[-1] == beyond[0]
    assert [x for x, _ in fit] == sorted(x for x, _ in fit)
    assert [y for _, y in fit] == sorted((y for _, y in fit), reverse=True)


@given(st.lists(st.tuples(st.floats(0, 1e6), RATES), min_size=1, max_size=300), st.none() | st.floats(1e-3, 1e7))
def test_a_sparkline_stays_in_its_box_whatever_the_curve(
    points: list[tuple[float, float]], budget: float | None
) -> None:
    spark = Spark(sorted(points), None, budget, len(points))
    low, high = rate_range([spark])
    assert 0 <= low < high <= 1
    dots = [e for e in ET.fromstring(str(sparkline(spark, low, high))).iter() if e.tag == "circle"]
    assert 1 <= len(dots) <= 41
    for dot in dots:
        assert 0 <= float(dot.get("cx", math.nan)) <= SPARK_WIDTH
        assert 0 <= float(dot.get("cy", math.nan)) <= SPARK_HEIGHT


def test_a_run_without_evaluations_says_so() -> None:
    assert "no evaluation yet" in sparkline(Spark([], None, None, 0), 0, 1)


def test_bars_share_one_scale_on_which_an_arm_can_be_read_against_the_control() -> None:
    control, arm = _estimate(0.75, 0.78, 0.81), _estimate(0.67, 0.70, 0.73)
    bounds = bar_range([control, arm, None])
    assert bounds is not None
    svg = ET.fromstring(str(interval_bar(arm, control, bounds, 2)))
    field = next(e for e in svg.iter() if e.get("class") == "control-field")
    whisker = next(e for e in svg.iter() if e.get("class") == "whisker")
    assert float(whisker.get("x2", "nan")) < float(field.get("x", "nan"))  # wholly below the control's interval
    assert any(e.get("class") == "series-2" for e in svg.iter())
    assert any(
        e.get("class") == "neutral" for e in ET.fromstring(str(interval_bar(control, control, bounds, None))).iter()
    )


def test_without_any_forecast_there_is_no_scale() -> None:
    assert bar_range([None, None]) is None


@given(RATES, RATES)
def test_the_scales_labels_are_round_and_inside(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    bounds = bar_range([_estimate(lower, lower, upper)])
    assert bounds is not None
    labels = [e for e in ET.fromstring(str(bar_axis(bounds))).iter() if e.tag == "text"]
    assert 1 <= len(labels) <= 5
    for label in labels:
        assert bounds[0] - 0.006 <= float(label.text or "nan") <= bounds[1] + 0.006
        assert 0 <= float(label.get("x", "nan")) <= BAR_WIDTH
    assert len({label.text for label in labels}) == len(labels)
