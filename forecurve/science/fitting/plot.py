"""The figure of a fit, drawn with plotly when it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.digits import as_given

from .. import errors
from ..arrays import FloatArray
from ..chart import BLUE, INK, QUIET, add_mark, area, compute_axis, dress, faded, sheet
from ..checks import as_float, check_compute
from ..wording import level_text
from .outcome import predict_ending

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .fit import Fit

_BEYOND = 1.5  # times the last compute or the budget: how far the curve is drawn
_MARGIN, _VIOLIN = 1.012, 0.055  # where the ceiling's violin stands beside the sheet, and how wide it is
_BINS = 60


def plot(fit: Fit, budget: float | None = None) -> go.Figure:
    """Evaluations with their standard error, the curve with its 50 % and 90 % band, and the ceiling's posterior.

    The line is dashed where it is a forecast, and its band is wider by `Fit.widening`.
    Evaluations of an early regime are grey, outliers hollow. With a misfit that withholds the forecast there are only
    the evaluations, and where it began.

    Raises:
        AdviceError: a budget that is no compute a run can have.
        ImportError: plotly is not installed.
    """
    if budget is not None:
        check_compute("budget", budget, errors.AdviceError, f"give compute in {fit.unit}")
        budget = as_float(budget)
    figure = sheet()
    found, now = fit.misfit_detail, fit.curve.now
    withheld = found is not None and found.withheld
    first = float(fit.curve.compute[fit.curve.compute > 0][0])
    last = now * 1.05 if withheld else max(now, budget or 0.0) * _BEYOND
    if not withheld:
        _add_curve(figure, fit, first, last)
    _add_evaluations(figure, fit)
    compute_axis(figure, first / 1.08, last, fit.unit)
    figure.update_yaxes(title="pass rate", range=_around_one(fit))
    dress(figure, fit.sentence(budget=budget))
    if withheld:
        if found is not None and found.since is not None:
            add_mark(figure, found.since, found.name)
        return figure
    _add_ceiling(figure, fit)
    if budget is not None and budget > now:
        add_mark(figure, budget, f"expected at {as_given(budget)}: {level_text(predict_ending(fit, budget))}")
    return figure


def _around_one(fit: Fit) -> tuple[float, float] | None:
    """The axis of rewards that are all the same: a tenth of the range about them, and nothing that no reward can be."""
    reward, (low, high) = float(fit.curve.reward[0]), fit.curve.bounds
    if (fit.curve.reward != reward).any():
        return None
    start = min(max(reward - 0.05 * fit.curve.width, low), high - 0.1 * fit.curve.width)
    return start, start + 0.1 * fit.curve.width


def _add_curve(figure: go.Figure, fit: Fit, first: float, last: float) -> None:
    grid = np.unique(np.append(np.geomspace(first, last, 100), fit.curve.now))
    band = fit.predict(grid).widened(np.where(grid > fit.curve.now, fit.widening, 1.0), fit.curve.bounds)
    figure.add_scatter(**area(grid, band.lower90, band.upper90, 0.13, "90 %"))
    figure.add_scatter(**area(grid, band.lower50, band.upper50, 0.2, "50 %"))
    for part, name, dash in ((grid <= fit.curve.now, "fit", "solid"), (grid >= fit.curve.now, "forecast", "6px,4px")):
        if part.sum() > 1:
            line = {"color": BLUE, "width": 2, "dash": dash}
            figure.add_scatter(x=grid[part], y=band.median[part], mode="lines", line=line, name=name)


def _add_evaluations(figure: go.Figure, fit: Fit) -> None:
    """A trace for each look: plotly checks a list of colours one by one, which takes many seconds of a long run."""
    compute, cutoff = fit.curve.compute, fit.cutoff
    early = compute < (0.0 if cutoff is None else cutoff.compute)
    outlier = np.zeros(len(compute), dtype=bool)
    outlier[fit.problem.outliers] = True
    looks = {
        "evaluations": (~early & ~outlier, INK, INK),
        "early regime": (early & ~outlier, QUIET, QUIET),
        "outliers": (~early & outlier, "white", INK),
        "outliers of the early regime": (early & outlier, "white", QUIET),
    }
    for name, (those, inside, edge) in looks.items():
        if those.any():
            figure.add_scatter(
                x=compute[those],
                y=fit.curve.reward[those],
                error_y=_bars(np.sqrt(fit.curve.noise.variance[those])),
                mode="markers",
                marker={"color": inside, "size": 6, "line": {"color": edge, "width": 1}},
                name=name,
                showlegend=name == "evaluations",
            )


def _bars(deviation: FloatArray) -> dict[str, Any]:
    return {"type": "data", "array": deviation, "thickness": 1, "width": 0, "color": faded(INK, 0.45)}


def _add_ceiling(figure: go.Figure, fit: Fit) -> None:
    """The posterior of A as half a violin in the right margin, its median a line."""
    density, edges = np.histogram(fit.all_draws.A, bins=_BINS, density=True)
    smooth = np.convolve(density, np.array([1, 2, 3, 2, 1]) / 9, mode="same")
    middle = (edges[1:] + edges[:-1]) / 2
    reach = _MARGIN + _VIOLIN * smooth / smooth.max()
    outline = " L ".join(f"{x:.4f},{y:.5f}" for x, y in zip(reach, middle, strict=True))
    path = f"M {_MARGIN},{middle[0]:.5f} L {outline} L {_MARGIN},{middle[-1]:.5f} Z"
    place: dict[str, Any] = {"xref": "paper", "yref": "y", "opacity": 1}
    figure.add_shape(type="path", path=path, fillcolor=faded(BLUE, 0.25), line_width=0, **place)
    A = fit.A.median
    figure.add_shape(type="line", x0=_MARGIN, x1=_MARGIN + _VIOLIN, y0=A, y1=A, line_color=BLUE, line_width=2, **place)
    figure.add_annotation(
        x=_MARGIN + _VIOLIN / 2, y=0, xref="paper", yref="paper", yanchor="top", text="A", showarrow=False
    )
    figure.update_layout(margin_r=72)
