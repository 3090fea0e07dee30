"""Small drawings made on the server as inline SVG: sparklines with their band, and interval bars on one scale.

Coordinates are in CSS pixels; colours come from the style sheet by class, so that one drawing serves light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from markupsafe import Markup

SPARK_WIDTH, SPARK_HEIGHT = 156, 38
BAR_WIDTH, BAR_HEIGHT = 200, 18
MOST_DOTS = 40
"""Of a sparkline: more would be one line."""

_PAD = 3.0
Row = TypeVar("Row")


@dataclass(frozen=True)
class Scale:
    """A linear map of values onto pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)


@dataclass(frozen=True)
class Spark:
    """What a sparkline shows: (compute, pass rate) of evaluations, and the newest forecast's band, if any.

    `band` has the lists of server.forecasts.schemas.BandView; `budget` is in the same unit as the computes; `count` is
    how many evaluations there are, of which `points` may be some.
    """

    points: Sequence[tuple[float, float]]
    band: Mapping[str, Sequence[float]] | None
    budget: float | None
    count: int


def rate_range(sparks: Iterable[Spark]) -> tuple[float, float]:
    """One vertical range for all sparklines of a table, so that rows compare: it holds all that they show and all
    medians."""
    values: list[float] = []
    for spark in sparks:
        values += [rate for _, rate in spark.points]
        values += (spark.band or {}).get("median", [])
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = max(0.02, 0.08 * (high - low))
    return max(0.0, low - margin), min(1.0, high + margin)


def sparkline(spark: Spark, low: float, high: float) -> Markup:
    """The curve of a run in a table cell: 90 % band, median (dashed beyond the data), the points.

    Compute is on a log axis; the start (compute 0) stands at the left edge.
    """
    points = spark.points
    if not points:
        return Markup('<span class="quiet">no evaluation yet</span>')
    band = spark.band
    across = _log_scale([compute for compute, _ in points] + list(band["compute"] if band else []), spark.budget)
    up = Scale(low, high, SPARK_HEIGHT - _PAD, _PAD)
    parts = []
    if band and len(band["compute"]) > 1:
        columns = ("compute", "median", "lower90", "upper90")
        grid = _thin(list(zip(*(band[name] for name in columns), strict=True)), 32)
        curve = [(c, m) for c, m, _, _ in grid]
        seen = sum(c <= points[-1][0] for c, _ in curve)
        parts.append(_area([c for c, *_ in grid], [row[2] for row in grid], [row[3] for row in grid], across, up))
        parts.append(_line(curve[:seen], across, up, "fit"))
        parts.append(_line(curve[max(0, seen - 1) :], across, up, "fit beyond"))
    dots = "".join(f'<circle cx="{across(c)}" cy="{up(r)}" r="1.3"/>' for c, r in _thin(points, MOST_DOTS))
    parts.append(f'<g class="dots">{dots}</g>')
    count = "1 evaluation" if spark.count == 1 else f"{spark.count} evaluations"
    label = f"pass rate {points[0][1]:.2f} to {points[-1][1]:.2f} over {count}"
    return _svg("spark", SPARK_WIDTH, SPARK_HEIGHT, label, parts)


def bar_range(estimates: Sequence[Any]) -> tuple[float, float] | None:
    """The common horizontal range of interval bars; None when there is nothing to draw."""
    known = [estimate for estimate in estimates if estimate is not None]
    if not known:
        return None
    low, high = min(e.lower for e in known), max(e.upper for e in known)
    margin = max(0.01, 0.06 * (high - low))
    return max(0.0, low - margin), min(1.0, high + margin)


def interval_bar(
    estimate: Any, control: Any, bounds: tuple[float, float], series: int | None, known: bool = True
) -> Markup:
    """An arm's ceiling: its 90 % interval as a line, the median as a dot, over the control's interval as a grey field.

    `series` is the arm's colour; None draws the control's neutral. A ceiling that is not `known` is dashed and hollow.
    """
    across = Scale(*bounds, _PAD + 2, BAR_WIDTH - _PAD - 2)
    parts = []
    if control is not None:
        left, right = across(control.lower), across(control.upper)
        field = f'x="{left}" y="0" width="{max(1.0, right - left):.1f}" height="{BAR_HEIGHT}"'
        parts.append(f'<rect class="control-field" {field}/>')
        parts.append(_rule(across(control.median), "control-rule"))
    if estimate is None:
        return _svg("bar", BAR_WIDTH, BAR_HEIGHT, "no ceiling yet", parts)
    colour = "neutral" if series is None else f"series-{series}"
    middle = BAR_HEIGHT / 2
    left, right = across(estimate.lower), across(estimate.upper)
    parts.append(f'<g class="{colour}{"" if known else " unsure"}">')
    parts.append(f'<line class="whisker" x1="{left}" y1="{middle}" x2="{right}" y2="{middle}"/>')
    parts += [f'<line class="whisker" x1="{x}" y1="{middle - 4}" x2="{x}" y2="{middle + 4}"/>' for x in (left, right)]
    parts.append(f'<circle class="middle" cx="{across(estimate.median)}" cy="{middle}" r="3.5"/></g>')
    verdict = "ceiling" if known else "ceiling not identified:"
    label = f"{verdict} {estimate.median:.3f}, 90 % interval {estimate.lower:.3f} to {estimate.upper:.3f}"
    return _svg("bar", BAR_WIDTH, BAR_HEIGHT, label, parts)


def bar_axis(bounds: tuple[float, float]) -> Markup:
    """The scale above a column of interval bars."""
    across = Scale(*bounds, _PAD + 2, BAR_WIDTH - _PAD - 2)
    places = _round_values(*bounds, most=4)
    digits = max(2, math.ceil(-math.log10(places[1] - places[0]))) if len(places) > 1 else 2
    parts = []
    for value in places:
        x = across(value)
        parts.append(f'<text x="{x}" y="10">{value:.{digits}f}</text><line x1="{x}" y1="13" x2="{x}" y2="16"/>')
    return _svg("bar-axis", BAR_WIDTH, 16, f"scale from {bounds[0]:.2f} to {bounds[1]:.2f}", parts)


def _svg(name: str, width: int, height: int, label: str, parts: list[str]) -> Markup:
    """All text in `parts` is numbers of ours; nothing that a user typed comes in here."""
    body = "".join(parts)
    return Markup(
        f'<svg class="{name}" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}">{body}</svg>'
    )


def _log_scale(computes: Sequence[float], budget: float | None) -> Any:
    """Compute onto pixels: logarithmic, with compute 0 at the left edge."""
    positive = [compute for compute in [*computes, budget or 0.0] if compute > 0]
    low, high = min(positive, default=1.0), max(positive, default=1.0)
    log = Scale(math.log(low), max(math.log(high), math.log(low) + 1e-9), _PAD + 6, SPARK_WIDTH - _PAD)
    return lambda compute: _PAD if compute <= 0 else log(math.log(compute))


def _area(computes: Sequence[float], lower: Sequence[float], upper: Sequence[float], across: Any, up: Scale) -> str:
    there = [f"{across(c)},{up(v)}" for c, v in zip(computes, upper, strict=True)]
    back = [f"{across(c)},{up(v)}" for c, v in zip(computes, lower, strict=True)]
    return f'<polygon class="band" points="{" ".join(there + back[::-1])}"/>'


def _line(points: list[tuple[float, float]], across: Any, up: Scale, name: str) -> str:
    return (
        f'<polyline class="{name}" points="{" ".join(f"{across(c)},{up(v)}" for c, v in points)}"/>'
        if len(points) > 1
        else ""
    )


def _rule(x: float, name: str) -> str:
    return f'<line class="{name}" x1="{x}" y1="0" x2="{x}" y2="{BAR_HEIGHT}"/>'


def _thin(rows: Sequence[Row], most: int) -> Sequence[Row]:
    """At most `most` rows, evenly chosen: the last is always kept."""
    step = max(1, math.ceil(len(rows) / most))
    return rows[::-1][::step][::-1]


def _round_values(low: float, high: float, most: int) -> list[float]:
    """At most `most` round values inside [low, high]."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step)
    values = [round(k * step, 10) for k in range(first, first + most + 2) if k * step <= high + 1e-12]
    assert all(a < b for a, b in pairwise(values))
    return values
