"""A plan drawn: where each arm ends, how likely it is best, what is allocated to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .planner import Plan

_BLUE, _GREY = "rgb(0, 114, 178)", "rgb(150, 150, 150)"  # Okabe-Ito


def plot(plan: Plan) -> go.Figure:
    """Left: the reward of each arm at the horizon with its 90 % interval. Right: compute spent and allocated.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    arms = sorted(plan.arms, key=lambda arm: arm.end.median)
    names = [arm.arm for arm in arms]
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, horizontal_spacing=0.04)
    figure.add_scatter(
        x=[arm.end.median for arm in arms],
        y=names,
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [arm.end.upper - arm.end.median for arm in arms],
            "arrayminus": [arm.end.median - arm.end.lower for arm in arms],
        },
        mode="markers+text",
        text=[f"P(best) {arm.p_best:.0%}" for arm in arms],
        textposition="top center",
        marker={"color": [_GREY if arm.dominated else _BLUE for arm in arms], "size": 9},
        showlegend=False,
        row=1,
        col=1,
    )
    bars = go.Bar(x=[arm.now for arm in arms], y=names, orientation="h", marker_color=_GREY, name="spent")
    figure.add_trace(bars, row=1, col=2)
    for kind, colour in (("look", _BLUE), ("finish", "rgb(0, 158, 115)")):
        spend = [sum(row.spend for row in plan.allocation if row.arm == name and row.kind == kind) for name in names]
        figure.add_trace(go.Bar(x=spend, y=names, orientation="h", marker_color=colour, name=kind), row=1, col=2)
    figure.update_layout(title=plan.sentence, template="simple_white", barmode="stack")
    figure.update_xaxes(title=f"pass rate at {plan.horizon:g} {plan.unit}", row=1, col=1)
    figure.update_xaxes(title=plan.unit, row=1, col=2)
    return figure
