"""The figure of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..chart import BLUE, GREEN, QUIET, VERMILION, dress, sheet
from .comparison import ArmVerdict, Comparison

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLOUR = {"ceiling": VERMILION, "efficiency": BLUE, "no difference shown": GREEN, "undecided": QUIET}
_RATIOS = (0.1, 0.2, 0.25, 0.33, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 4.0, 5.0, 10.0)


def plot(comparison: Comparison) -> go.Figure:
    """Left: each arm's difference of ceilings (thick: its own 90 %, thin: the bounds that count beside all the others)
    over the region of equivalence. Right: times as fast, with its 90 %.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = sheet(2, horizontal_spacing=0.05)
    for arm in comparison.arms:
        _add_difference(figure, arm)
        _add_ratio(figure, arm)
    figure.add_vrect(-comparison.rope, comparison.rope, fillcolor=GREEN, opacity=0.12, line_width=0, row=1, col=1)
    figure.add_vline(0, line={"width": 1, "color": QUIET}, opacity=1, row=1, col=1)
    figure.add_vline(1, line={"width": 1, "color": QUIET}, opacity=1, row=1, col=2)
    names = [arm.arm for arm in comparison.arms]
    labels = [f"{arm.arm}<br><i>{arm.label}</i>" for arm in comparison.arms]
    differences, ratios = _reach(comparison)
    title = f"ceiling minus that of {comparison.control}"
    figure.update_xaxes(title=title, range=[-differences, differences], row=1, col=1)
    figure.update_xaxes(
        title=f"times as fast as {comparison.control}",
        type="log",
        range=[-ratios, ratios],
        tickvals=list(_RATIOS),
        ticktext=[f"{ratio:g}" for ratio in _RATIOS],
        row=1,
        col=2,
    )
    figure.update_yaxes(autorange="reversed", type="category", automargin=True)
    figure.update_yaxes(tickvals=names, ticktext=labels, row=1, col=1)
    figure.update_layout(showlegend=False)
    return dress(figure, comparison.sentence)


def _reach(comparison: Comparison) -> tuple[float, float]:
    """How far both axes reach to either side: in reward, and in powers of ten."""
    differences, ratios = [2 * comparison.rope], [float(np.log10(1.5))]
    for arm in comparison.arms:
        if arm.difference is not None:
            differences += [abs(end) for end in arm.simultaneous or (arm.difference.lower, arm.difference.upper)]
        if arm.multiplier is not None:
            ends = (arm.multiplier.ratio.lower, arm.multiplier.ratio.upper)
            ratios += [abs(float(np.log10(end))) for end in ends if 0 < end < np.inf]
    return 1.06 * max(differences), 1.06 * max(ratios)


def _add_difference(figure: go.Figure, arm: ArmVerdict) -> None:
    if arm.difference is None:
        return
    if arm.simultaneous is not None:
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
