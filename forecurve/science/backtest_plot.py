"""The figures of a backtest and of a track record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .backtesting import Backtest, Row
    from .track_record import TrackRecord

_GREY = "rgba(120, 120, 120, 0.6)"


def plot(backtest: Backtest) -> go.Figure:
    """Outcome against forecast: one trace a method and fraction, with intervals where there are any.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = _figure()
    for summary in backtest.summary:
        key = (summary.fraction, summary.method)
        rows = [row for row in backtest.rows if (row.fraction, row.method) == key and row.predicted is not None]
        figure.add_scatter(
            x=[row.predicted for row in rows],
            y=[row.actual for row in rows],
            error_x=_bars(rows),
            text=[row.series for row in rows],
            mode="markers",
            name=f"{summary.method} at {summary.fraction:g}",
            visible=True if key == (backtest.summary[0].fraction, backtest.summary[0].method) else "legendonly",
        )
    actual = [row.actual for row in backtest.rows]
    if actual:
        ends = [min(actual), max(actual)]
        figure.add_scatter(
            x=ends, y=ends, mode="lines", line={"color": _GREY, "dash": "dot"}, name="forecast = outcome"
        )
    figure.update_xaxes(title="forecast (90 % interval)")
    figure.update_yaxes(title="outcome: mean of the last 10 % of the evaluations")
    figure.update_layout(title="Backtest", template="simple_white")
    return figure


def plot_track_record(record: TrackRecord) -> go.Figure:
    """Forecast minus outcome with its interval, over the share of the budget; one trace for what was covered.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = _figure()
    for covered, name in ((True, "covered"), (False, "missed")):
        group = [one for one in record.scored if one.covered is covered]
        figure.add_scatter(
            x=[one.forecast.fraction for one in group],
            y=[one.error for one in group],
            error_y={
                "type": "data",
                "array": [one.forecast.estimate.upper - one.forecast.estimate.median for one in group],
                "arrayminus": [one.forecast.estimate.median - one.forecast.estimate.lower for one in group],
                "thickness": 1,
                "width": 0,
            },
            text=[one.forecast.run for one in group],
            mode="markers",
            name=name,
        )
    figure.add_hline(y=0, line_dash="dot", line_color=_GREY)
    figure.update_xaxes(title="share of the budget when it was said")
    figure.update_yaxes(title="forecast minus outcome (90 % interval)")
    figure.update_layout(title="Track record", template="simple_white")
    return figure


def _figure() -> go.Figure:
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    return go.Figure()


def _bars(rows: list[Row]) -> dict[str, object] | None:
    if any(row.lower is None for row in rows):
        return None
    return {
        "type": "data",
        "array": [(row.upper or 0.0) - (row.predicted or 0.0) for row in rows],
        "arrayminus": [(row.predicted or 0.0) - (row.lower or 0.0) for row in rows],
        "thickness": 1,
        "width": 0,
    }
