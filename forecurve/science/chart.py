"""What all figures share: the sheet they are drawn on, its colours, its axis of compute, its wrapped title."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import FloatArray
from .wording import compute_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe-Ito, safe for the colour-blind; the control and what is over are neutral
BLUE, GREEN, VERMILION = "#0072B2", "#009E73", "#D55E00"
INK, QUIET = "#1a1a1a", "#767676"
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Liberation Sans, Arial, sans-serif"
_LINE = 84  # letters of a title that fit on one line of a figure 760 pixels wide
_MILLION = 1e6
_FEW_DECADES = 2.5  # up to so many, 2 and 5 are named between the powers of ten


def sheet(columns: int = 1, **options: Any) -> go.Figure:
    """An empty figure, of several columns with a common y axis where asked.

    Raises:
        ImportError: plotly is not installed.
    """
    try:
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError("plot() needs plotly: pip install plotly") from error
    if columns == 1:
        return go.Figure()
    return make_subplots(cols=columns, shared_yaxes=True, **options)


def dress(figure: go.Figure, title: str) -> go.Figure:
    """The house's look: a sentence above, the legend below it, hairlines."""
    lines = textwrap.wrap(title, _LINE, break_on_hyphens=False) or [""]
    legend = any(trace.showlegend is not False for trace in figure.data) and figure.layout.showlegend is not False
    figure.update_layout(
        template="simple_white",
        font={"family": _FONT, "size": 13, "color": INK},
        title={"text": "<br>".join(lines), "font": {"size": 14}, "x": 0, "xref": "paper", "y": 1, "yref": "container",
               "yanchor": "top", "pad": {"t": 1 + 9 * len(lines)}},  # plotly centres the lines on the first one's place
        margin={"l": 64, "r": 24, "t": 22 + 18 * len(lines) + 26 * legend, "b": 52},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"},
    )  # fmt: skip
    figure.update_xaxes(linecolor=QUIET, tickcolor=QUIET, title_standoff=8, title_font_size=13)
    figure.update_yaxes(linecolor=QUIET, tickcolor=QUIET, title_standoff=8, title_font_size=13)
    return figure


def compute_axis(figure: go.Figure, low: float, high: float, unit: str) -> None:
    """A logarithmic x axis whose ticks are written out."""
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    steps = (1, 2, 5) if np.log10(high / low) < _FEW_DECADES else (1,)
    ticks = [step * 10.0**decade for decade in range(first, last + 1) for step in steps]
    ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
    figure.update_xaxes(
        type="log",
        range=[float(np.log10(low)), float(np.log10(high))],
        tickvals=ticks,
        ticktext=[compute_text(tick) for tick in ticks],
        title=f"compute ({unit})",
    )


def compute_ticks(largest: float) -> str | None:
    """The format of a linear axis: thousands stand apart, as in sentences; millions have plotly's short form."""
    return ",~r" if largest < _MILLION else None


def area(x: FloatArray, lower: FloatArray, upper: FloatArray, opacity: float, name: str) -> dict[str, Any]:
    """A band between two lines."""
    return {
        "x": np.concatenate([x, x[::-1]]),
        "y": np.concatenate([upper, lower[::-1]]),
        "mode": "lines",
        "fill": "toself",
        "fillcolor": faded(BLUE, opacity),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "name": name,
    }


def add_mark(figure: go.Figure, compute: float, text: str) -> None:
    """A dotted line across the sheet with a word at its foot; none where a logarithmic sheet has no such place."""
    log = figure.layout.xaxis.type == "log"
    if log and compute <= 0:
        return
    figure.add_vline(x=compute, line={"dash": "dot", "width": 1, "color": QUIET}, opacity=1)
    figure.add_annotation(
        x=float(np.log10(compute)) if log else compute,
        y=0,
        yref="paper",
        yanchor="bottom",
        xanchor="right",
        xshift=-4,
        text=text,
        showarrow=False,
        font={"color": QUIET, "size": 12},
    )


def faded(colour: str, opacity: float) -> str:
    """#rrggbb with an opacity.

    >>> faded("#0072B2", 0.5)
    'rgba(0, 114, 178, 0.5)'
    """
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
