"""What a backtest gives: a row for each forecast, and their summary by fraction and method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..values import Estimate, finite, jsonable

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Row:
    """One forecast and what came.

    Attributes:
        series, fraction, method: which forecast.
        predicted: its point, None where there are fewer than 3 evaluations to fit. A forecast that is withheld for a
            misfit keeps the number that it would have given.
        lower, upper: its 90 % interval, None for a method without one.
        raw: median and interval of the posterior before any conformal scaling.
        actual: the mean of the last 10 % of the evaluations.
        withheld: a misfit that withholds the forecast was found, or there were too few evaluations.
        calibration: `posterior`, `adjusted (n past runs)` with 3 to 8, `conformal (n past runs)` with more, or None for
            a method without an interval.
        seconds: what the forecast cost.
    """

    series: str
    fraction: float
    method: str
    predicted: float | None
    lower: float | None
    upper: float | None
    actual: float
    withheld: bool
    seconds: float
    calibration: str | None = None
    raw: Estimate | None = None

    @property
    def error(self) -> float | None:
        """predicted - actual."""
        return None if self.predicted is None else self.predicted - self.actual

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the outcome."""
        if self.lower is None or self.upper is None:
            return None
        return self.lower <= self.actual <= self.upper

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe, with the keys of `forecurve backtest --json`."""
        names = ("series", "fraction", "method", "predicted", "lower", "upper", "actual", "error", "covered")
        body = {name: getattr(self, name) for name in (*names, "withheld", "seconds", "calibration")}
        return dict(jsonable({**body, "raw": None if self.raw is None else self.raw.to_dict()}))


@dataclass(frozen=True)
class Summary:
    """One method at one fraction.

    Attributes:
        n: rows with a prediction; mae, median and max of |error| are over these, withheld forecasts included.
        coverage, width: share of intervals that hold the outcome, median width; None for a method without intervals.
        raw_mae, raw_coverage, raw_width: of the posterior, before conformal scaling.
        withheld: rows whose forecast is withheld, those without a prediction included.
    """

    fraction: float
    method: str
    n: int
    mae: float | None
    median: float | None
    max: float | None
    coverage: float | None
    width: float | None
    withheld: int
    raw_mae: float | None
    raw_coverage: float | None
    raw_width: float | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return dict(jsonable(dict(vars(self))))


@dataclass(frozen=True)
class Backtest:
    """All rows, and their summary by fraction and method."""

    rows: tuple[Row, ...]

    @property
    def summary(self) -> tuple[Summary, ...]:
        """By fraction, then method, in the order in which they first appear."""
        groups: dict[tuple[float, str], list[Row]] = {}
        for row in self.rows:
            groups.setdefault((row.fraction, row.method), []).append(row)
        return tuple(_summary(*key, rows) for key, rows in groups.items())

    def to_dict(self) -> dict[str, Any]:
        """`{"series": [row...], "summary": [...]}`."""
        return {
            "series": [row.to_dict() for row in self.rows],
            "summary": [summary.to_dict() for summary in self.summary],
        }

    def plot(self) -> go.Figure:
        """Forecast minus outcome over the outcome, one trace a method and fraction. Needs plotly."""
        from .plot import plot

        return plot(self)

    def __repr__(self) -> str:
        lines = [f"Backtest: {len(self.rows)} forecasts"]
        for one in self.summary:
            mae = "-" if one.mae is None else f"{one.mae:.4f}"
            cover = "" if one.coverage is None else f", coverage {one.coverage:.2f}, width {one.width:.3f}"
            lines.append(f"  {one.fraction:g} {one.method}: n {one.n}, MAE {mae}{cover}, withheld {one.withheld}")
        return "\n".join(lines)


def _summary(fraction: float, method: str, rows: Sequence[Row]) -> Summary:
    wrong = np.abs([row.error for row in rows if row.error is not None])
    with_interval = [row for row in rows if row.raw is not None]
    return Summary(
        fraction=fraction,
        method=method,
        n=len(wrong),
        mae=_of(np.mean, wrong),
        median=_of(np.median, wrong),
        max=_of(np.max, wrong),
        coverage=_of(np.mean, [row.covered for row in with_interval]),
        width=_of(np.median, [(row.upper or 0.0) - (row.lower or 0.0) for row in with_interval]),
        withheld=sum(row.withheld for row in rows),
        raw_mae=_of(np.mean, [abs(row.raw.median - row.actual) for row in with_interval if row.raw is not None]),
        raw_coverage=_of(np.mean, [_holds(row) for row in with_interval]),
        raw_width=_of(np.median, [row.raw.width for row in with_interval if row.raw is not None]),
    )


def _holds(row: Row) -> bool:
    return row.raw is not None and row.raw.lower <= row.actual <= row.raw.upper


def _of(statistic: Callable[..., Any], values: Any) -> float | None:
    return finite(float(statistic(values))) if len(values) else None
