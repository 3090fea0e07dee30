"""A plan drawn: where each arm ends, how likely it is best, what is allocated to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..chart import BLUE, GREEN, QUIET, compute_ticks, dress, sheet
from ..wording import share_text
from .wording import horizon_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .outlook import Outlook
    from .plan import Plan

_COLOUR = {"spent": "#c4c4c4", "look": BLUE, "finish": GREEN}


def plot(plan: Plan) -> go.Figure:
    """Left: the reward of each arm at the horizon with its 90 % interval. Right: compute spent and allocated.

    Dominated arms are grey.

    Raises:
        ImportError: plotly is not installed.
    """
    arms = sorted(plan.arms, key=lambda arm: arm.end.median)
    best = "P(best arm)" if plan.has_seeds else "P(best)"
    figure = sheet(2, horizontal_spacing=0.05)
    figure.add_scatter(
        x=[arm.end.median for arm in arms],
        y=[arm.arm for arm in arms],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [arm.end.upper - arm.end.median for arm in arms],
            "arrayminus": [arm.end.median - arm.end.lower for arm in arms],
            "thickness": 1.5,
            "width": 0,
            "color": QUIET,
        },
        mode="markers+text",
        text=[f"{best} {share_text(arm.p_best)}" for arm in arms],
        textposition="top center",
        textfont={"size": 11, "color": QUIET},
        marker={"color": [QUIET if arm.dominated else BLUE for arm in arms], "size": 9},
        showlegend=False,
        row=1,
        col=1,
    )
    names, place = [arm.arm for arm in arms], {"row": 1, "col": 2}
    for kind, spend in _bars(plan, arms).items():
        figure.add_bar(x=spend, y=names, orientation="h", marker_color=_COLOUR[kind], name=kind, width=0.5, **place)
    figure.update_layout(barmode="stack")
    figure.update_xaxes(
        title=f"pass rate at {horizon_text(plan.horizon, given=plan.horizon_given)} {plan.unit}", row=1, col=1
    )
    figure.update_xaxes(title=f"compute ({plan.unit})", tickformat=compute_ticks(plan.horizon), row=1, col=2)
    figure.update_yaxes(automargin=True)
    return dress(figure, plan.sentence)


def _bars(plan: Plan, arms: list[Outlook]) -> dict[str, list[float]]:
    bars = {"spent": [arm.now for arm in arms]}
    for kind in ("look", "finish"):
        rows = [row for row in plan.allocation if row.kind == kind]
        bars[kind] = [sum(row.spend for row in rows if row.arm == arm.arm) for arm in arms]
    return bars
