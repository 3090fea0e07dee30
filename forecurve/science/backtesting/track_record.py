"""Track record: forecasts that were made, against what came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import FloatArray
from ..checks import check_estimate, check_kind, is_finite, is_positive, short
from ..errors import CurveError
from ..past.hindsight import BINS, bin_of
from ..values import Estimate, jsonable

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True)
class Forecast:
    """What was said of how a run would end: the mean of its last 10 % of evaluations.

    Attributes:
        run: whose end it is.
        fraction: the share of all that the run spent in the end that was spent when it was said.
        estimate: median and 90 % interval.
        calibration: `posterior`, `adjusted (n past runs)` or `conformal (n past runs)`.
        withheld: it was not shown as a forecast, because of a misfit.
        id: how to find it again.
    """

    run: str
    fraction: float
    estimate: Estimate
    calibration: str = "posterior"
    withheld: bool = False
    id: str | None = None


@dataclass(frozen=True)
class Scored:
    """A forecast and what came."""

    forecast: Forecast
    actual: float

    @property
    def error(self) -> float:
        """median - actual."""
        return self.forecast.estimate.median - self.actual

    @property
    def covered(self) -> bool:
        """Whether the 90 % interval holds what came."""
        return self.forecast.estimate.lower <= self.actual <= self.forecast.estimate.upper

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        one = self.forecast
        return dict(
            jsonable(
                {
                    "forecast": one.id,
                    "run": one.run,
                    "fraction": one.fraction,
                    "predicted": one.estimate.median,
                    "lower": one.estimate.lower,
                    "upper": one.estimate.upper,
                    "actual": self.actual,
                    "error": self.error,
                    "covered": self.covered,
                    "withheld": one.withheld,
                    "calibration": one.calibration,
                }
            )
        )


@dataclass(frozen=True)
class Line:
    """The forecasts made in one range of the share of what their runs spent in the end.

    Attributes:
        above, upto: the range, above <= fraction < upto; the last one has no end.
        forecasts, runs: how many, and of how many runs.
        mae, median, max: of |error|. Each run counts as much as any other, however often it was forecast.
        coverage: share of intervals that held what came, likewise.
        width: median width of the intervals.
        withheld: forecasts that were not shown because of a misfit; they count in the other figures.
    """

    above: float
    upto: float
    forecasts: int
    runs: int
    mae: float
    median: float
    max: float
    coverage: float
    width: float
    withheld: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; `upto` is null where the range has no end."""
        return dict(jsonable(dict(vars(self))))


@dataclass(frozen=True)
class TrackRecord:
    """Every forecast that can be scored, and how many cannot yet.

    Attributes:
        scored: in the order in which they were given.
        waiting: forecasts of runs that have no outcome yet.
    """

    scored: tuple[Scored, ...]
    waiting: int = 0

    @cached_property
    def ranges(self) -> dict[int, list[Scored]]:
        """By range of the share of what the run spent (see `bin_of`), the earliest first; none without a forecast."""
        groups: dict[int, list[Scored]] = {}
        for one in self.scored:
            groups.setdefault(bin_of(one.forecast.fraction), []).append(one)
        return dict(sorted(groups.items()))

    @cached_property
    def table(self) -> tuple[Line, ...]:
        """A line for each of `ranges`."""
        return tuple(_line(at, group) for at, group in self.ranges.items())

    def to_dict(self) -> dict[str, Any]:
        """`{"forecasts": [...], "table": [...], "waiting": n}`."""
        return {
            "forecasts": [one.to_dict() for one in self.scored],
            "table": [line.to_dict() for line in self.table],
            "waiting": self.waiting,
        }

    def plot(self) -> go.Figure:
        """Errors with their intervals over the share of what the run spent. Needs plotly."""
        from .plot import plot_track_record

        return plot_track_record(self)

    def __repr__(self) -> str:
        lines = [f"TrackRecord: {len(self.scored)} forecasts scored, {self.waiting} waiting"]
        lines += [
            f"  {line.above:g} to {line.upto:g}: {line.forecasts} of {line.runs} runs, MAE {line.mae:.4f}, "
            f"coverage {line.coverage:.2f}, width {line.width:.3f}"
            for line in self.table
        ]
        return "\n".join(lines)


def score(forecasts: Iterable[Forecast], outcomes: Mapping[str, float]) -> TrackRecord:
    """Score forecasts against what came.

    Args:
        forecasts: made before the evaluations that they are judged by.
        outcomes: of each finished run the mean reward of its last 10 % of evaluations (`Outcome.of`).

    >>> said = Forecast("a", 0.25, Estimate(0.60, 0.55, 0.66))
    >>> score([said, Forecast("b", 0.5, Estimate(0.6, 0.5, 0.7))], {"a": 0.64})
    TrackRecord: 1 forecasts scored, 1 waiting
      0.175 to 0.375: 1 of 1 runs, MAE 0.0400, coverage 1.00, width 0.110
    """
    check_kind("forecasts", forecasts, Iterable, "pass a list of Forecast", CurveError)
    check_kind("outcomes", outcomes, Mapping, "pass run -> mean reward of its last evaluations", CurveError)
    said = list(forecasts)
    for at, one in enumerate(said):
        check_kind(f"forecasts[{at}]", one, Forecast, "pass Forecast(run, fraction, estimate)", CurveError)
        _check_forecast(at, one)
    for run, reward in outcomes.items():
        _check_outcome(run, reward)
    scored = tuple(Scored(one, float(outcomes[one.run])) for one in said if one.run in outcomes)
    return TrackRecord(scored, len(said) - len(scored))


def _check_forecast(at: int, one: Forecast) -> None:
    """An interval whose ends are swapped, or a number that is none, would count as some hit or other."""
    where = f"forecasts[{at}]"
    check_estimate(f"{where}.estimate", one.estimate, CurveError)
    if not is_positive(one.fraction) or one.fraction > 1:
        way_out = "give the share of what the run spent in the end, 0 to 1"
        raise CurveError(f"{where}.fraction", short(one.fraction), "a share above 0, at most 1, is needed", way_out)


def _check_outcome(run: str, reward: float) -> None:
    if not is_finite(reward):
        way_out = "give the mean reward of its last evaluations, or leave the run out"
        raise CurveError(f"outcomes[{run!r}]", short(reward), "a finite number is needed", way_out)


def _line(at: int, group: Sequence[Scored]) -> Line:
    runs = [one.forecast.run for one in group]
    counts = Counter(runs)
    weight = np.array([1 / counts[run] for run in runs])
    weight /= weight.sum()
    wrong = np.abs([one.error for one in group])
    return Line(
        above=BINS[at],
        upto=BINS[at + 1] if at + 2 < len(BINS) else float("inf"),
        forecasts=len(group),
        runs=len(counts),
        mae=float(weight @ wrong),
        median=_weighted_median(wrong, weight),
        max=float(wrong.max()),
        coverage=float(np.average([one.covered for one in group], weights=weight)),
        width=_weighted_median(np.array([one.forecast.estimate.width for one in group]), weight),
        withheld=sum(one.forecast.withheld for one in group),
    )


def _weighted_median(values: FloatArray, weight: FloatArray) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weight[order]), 0.5 - 1e-12)])
