"""The figures of a backtest and of a track record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..chart import BLUE, INK, QUIET, VERMILION, dress, faded, sheet
from ..values import Estimate

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .rows import Backtest, Row, Summary
    from .track_record import TrackRecord


def plot(backtest: Backtest) -> go.Figure:
    """Forecast minus outcome over the outcome: one trace a method and fraction, the first of them shown.

    Thick: the posterior's own 90 % interval. Thin: what conformal scaling made of it. The forecasts are red where the
    interval that was given missed.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = sheet()
    for at, summary in enumerate(backtest.summary):
        key = (summary.fraction, summary.method)
        rows = [row for row in backtest.rows if (row.fraction, row.method) == key and row.predicted is not None]
        visible = True if at == 0 else "legendonly"
        name = f"{summary.method} at {summary.fraction:g}"
        own = [row for row in rows if row.raw is not None]
        if own:
            figure.add_scatter(
                x=[row.actual for row in own],
                y=[row.raw.median - row.actual for row in own if row.raw is not None],
                error_y=_bars([row.raw for row in own if row.raw is not None], 5, faded(BLUE, 0.35)),
                mode="markers",
                marker={"size": 5, "symbol": "square", "color": faded(BLUE, 0.35)},
                name=f"{name}: the posterior's own",
                visible=visible,
            )
        figure.add_scatter(
            x=[row.actual for row in rows],
            y=[row.error for row in rows],
            error_y=_bars([_interval(row) for row in rows], 1.2, INK),
            text=[row.series for row in rows],
            mode="markers",
            marker={"size": 7, "color": [VERMILION if row.covered is False else INK for row in rows]},
            name=name,
            visible=visible,
        )
    figure.add_hline(y=0, line={"dash": "dot", "width": 1, "color": QUIET}, opacity=1)
    figure.update_xaxes(title="outcome: mean of the last 10 % of the evaluations")
    figure.update_yaxes(title="forecast minus outcome")
    return dress(figure, _title(backtest.summary))


def _title(summaries: Sequence[Summary]) -> str:
    if not summaries:
        return "Backtest"
    one = summaries[0]
    runs, whose = ("1 run", "its") if one.n == 1 else (f"{one.n} runs", "their")
    words = [f"{runs} forecast from {100 * one.fraction:.10g} % of {whose} compute"]
    if one.mae is not None:
        words.append(f"mean error {one.mae:.3f}")
    if one.coverage is not None:
        scaled = one.raw_coverage is not None and one.raw_width != one.width
        before = f" ({one.raw_coverage:.0%} before conformal scaling)" if scaled else ""
        words.append(f"90 % intervals hold {one.coverage:.0%} of the outcomes{before}")
    return f"{', '.join(words).replace('%', ' %').replace('  ', ' ')}."


def plot_track_record(record: TrackRecord) -> go.Figure:
    """Forecast minus outcome with its interval, over the share of what the run spent; one trace for what was covered.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = sheet()
    for covered, name, colour in ((True, "covered", INK), (False, "missed", VERMILION)):
        group = [one for one in record.scored if one.covered is covered]
        figure.add_scatter(
            x=[one.forecast.fraction for one in group],
            y=[one.error for one in group],
            error_y=_bars([one.forecast.estimate for one in group], 1.2, colour),
            text=[one.forecast.run for one in group],
            mode="markers",
            marker={"size": 7, "color": colour},
            name=name,
        )
    figure.add_hline(y=0, line={"dash": "dot", "width": 1, "color": QUIET}, opacity=1)
    figure.update_xaxes(title="share of what the run spent, when it was said")
    figure.update_yaxes(title="forecast minus outcome (90 % interval)")
    return dress(figure, "Track record")


def _interval(row: Row) -> Estimate | None:
    if row.predicted is None or row.lower is None or row.upper is None:
        return None
    return Estimate(row.predicted, row.lower, row.upper)


def _bars(intervals: Sequence[Estimate | None], thickness: float, colour: str) -> dict[str, Any] | None:
    """From the median to both ends; None for a method without intervals."""
    known = [one for one in intervals if one is not None]
    if len(known) < len(intervals):
        return None
    return {
        "type": "data",
        "symmetric": False,
        "array": [one.upper - one.median for one in known],
        "arrayminus": [one.median - one.lower for one in known],
        "thickness": thickness,
        "width": 0,
        "color": colour,
    }
