"""The figure of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .comparison import ArmVerdict, Comparison

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe-Ito
_COLOUR = {"ceiling": "#D55E00", "efficiency": "#0072B2", "no difference shown": "#009E73", "undecided": "#888888"}


def plot(comparison: Comparison) -> go.Figure:
    """Left: each arm's difference of ceilings (thick: its own 90 %, thin: the bounds that count beside all the others)
    over the region of equivalence. Right: times as fast, with its 90 %.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    figure = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.05)
    for arm in comparison.arms:
        _add_difference(figure, arm)
        _add_ratio(figure, arm)
    figure.add_vrect(-comparison.rope, comparison.rope, fillcolor="#009E73", opacity=0.12, line_width=0, row=1, col=1)
    figure.add_vline(0, line={"width": 1, "color": "#888888"}, row=1, col=1)
    figure.add_vline(1, line={"width": 1, "color": "#888888"}, row=1, col=2)
    figure.update_xaxes(title=f"ceiling minus that of {comparison.control}", row=1, col=1)
    figure.update_xaxes(title=f"times as fast as {comparison.control}", type="log", row=1, col=2)
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_layout(title=comparison.sentence, template="simple_white", showlegend=False)
    return figure


def _add_difference(figure: go.Figure, arm: ArmVerdict) -> None:
    if arm.difference is None or arm.simultaneous is None:
        return
    _line(figure, arm, arm.simultaneous, 1, 1)
    _line(figure, arm, (arm.difference.lower, arm.difference.upper), 5, 1)
    _dot(figure, arm, arm.difference.median, 1)


def _add_ratio(figure: go.Figure, arm: ArmVerdict) -> None:
    if arm.multiplier is None:
        return
    _line(figure, arm, (arm.multiplier.ratio.lower, arm.multiplier.ratio.upper), 5, 2)
    _dot(figure, arm, arm.multiplier.ratio.median, 2)


def _line(figure: go.Figure, arm: ArmVerdict, ends: tuple[float, float], width: int, column: int) -> None:
    line: dict[str, Any] = {"width": width, "color": _COLOUR[arm.verdict]}
    figure.add_scatter(x=list(ends), y=[arm.arm] * 2, mode="lines", line=line, hoverinfo="skip", row=1, col=column)


def _dot(figure: go.Figure, arm: ArmVerdict, at: float, column: int) -> None:
    marker = {"size": 10, "color": _COLOUR[arm.verdict], "line": {"width": 1, "color": "white"}}
    figure.add_scatter(x=[at], y=[arm.arm], mode="markers", marker=marker, text=arm.reason, row=1, col=column)
