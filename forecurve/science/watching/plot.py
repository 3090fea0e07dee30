"""The figure of a watched run, drawn with plotly when it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..chart import BLUE, INK, VERMILION, add_mark, area, compute_ticks, dress, sheet

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .watch import Watch


def plot(verdict: Watch) -> go.Figure:
    """Evaluations after the freeze on the frozen forecast's 90 % band of single evaluations.

    Raises:
        ImportError: plotly is not installed.
    """
    figure = sheet()
    x, since, back = verdict.compute, verdict.since_compute, verdict.back_since
    figure.add_scatter(**area(x, verdict.lower, verdict.upper, 0.13, "90 % of one evaluation"))
    line = {"color": BLUE, "width": 2, "dash": "6px,4px"}
    figure.add_scatter(x=x, y=verdict.expected, mode="lines", line=line, name="frozen forecast")
    fallen = (x >= (np.inf if since is None else since)) & (x < (np.inf if back is None else back))
    figure.add_scatter(
        x=x,
        y=verdict.reward,
        mode="markers",
        marker={"color": np.where(fallen, VERMILION, INK), "size": 6},
        name="evaluations",
    )
    figure.update_xaxes(title=f"compute ({verdict.unit})", tickformat=compute_ticks(x[-1] if len(x) else 0.0))
    figure.update_yaxes(title="pass rate")
    dress(figure, verdict.sentence)
    if since is not None:
        add_mark(figure, since, f"{verdict.level} since here")
    return figure
