"""Figures, drawn with plotly when it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .fitting import Fit
    from .watching import Watch

_BLUE = "0, 114, 178"  # Okabe-Ito


def plot(fit: Fit, budget: float | None = None) -> go.Figure:
    """Evaluations with their standard error, median, 50 % and 90 % band over log compute.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    positive = fit.curve.compute[fit.curve.compute > 0]
    grid = np.geomspace(positive[0], max(fit.curve.now, budget or 0.0) * 1.5, 120)
    band = fit.predict(grid)
    figure = go.Figure()
    for lower, upper, shade, name in (
        (band.lower90, band.upper90, 0.15, "90 %"),
        (band.lower50, band.upper50, 0.25, "50 %"),
    ):
        figure.add_scatter(**_area(grid, lower, upper, shade, name))
    figure.add_scatter(x=grid, y=band.median, mode="lines", line={"color": f"rgb({_BLUE})"}, name="median")
    bars = {"type": "data", "array": np.sqrt(fit.curve.noise.variance), "thickness": 1, "width": 0}
    figure.add_scatter(
        x=fit.curve.compute,
        y=fit.curve.reward,
        error_y=bars,
        mode="markers",
        marker={"color": "black"},
        name="evaluations",
    )
    if budget is not None:
        figure.add_vline(x=budget, line_dash="dot", annotation_text="budget")
    figure.update_xaxes(type="log", title=f"compute ({fit.unit})")
    figure.update_yaxes(title="pass rate")
    figure.update_layout(title=fit.sentence(budget=budget), template="simple_white")
    return figure


def plot_watch(verdict: Watch) -> go.Figure:
    """Evaluations after the freeze on the frozen forecast's 90 % band of single evaluations.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    x = verdict.compute
    figure = go.Figure()
    figure.add_scatter(**_area(x, verdict.lower, verdict.upper, 0.15, "90 %"))
    figure.add_scatter(x=x, y=verdict.expected, mode="lines", line={"color": f"rgb({_BLUE})"}, name="frozen forecast")
    figure.add_scatter(x=x, y=verdict.reward, mode="markers", marker={"color": "black"}, name="evaluations")
    if verdict.since_compute is not None:
        figure.add_vline(x=verdict.since_compute, line_dash="dot", annotation_text=verdict.level)
    figure.update_xaxes(title=f"compute ({verdict.unit})")
    figure.update_yaxes(title="pass rate")
    figure.update_layout(title=verdict.sentence, template="simple_white")
    return figure


def _area(x: Any, lower: Any, upper: Any, shade: float, name: str) -> dict[str, Any]:
    return {
        "x": np.concatenate([x, x[::-1]]),
        "y": np.concatenate([upper, lower[::-1]]),
        "fill": "toself",
        "fillcolor": f"rgba({_BLUE}, {shade})",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": name,
    }
