"""The figure of a backtest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .backtesting import Backtest, Row

_GREY = "rgba(120, 120, 120, 0.6)"


def plot(backtest: Backtest) -> go.Figure:
    """Outcome against forecast: one trace a method and fraction, with intervals where there are any.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    figure = go.Figure()
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
