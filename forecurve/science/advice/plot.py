"""Advice drawn: what more compute buys, against the least gain that matters and the price of that compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecurve.digits import as_given

from ..chart import BLUE, GREEN, VERMILION, add_mark, area, dress, sheet
from ..fitting.level import levels
from ..values import Band, Estimate, band_of
from ..wording import compute_text, gain_text
from .growth import growth

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..fitting.fit import Fit
    from .advise import Advice

_POINTS = 80
_BEYOND = 1.25  # times the way to where the gain is measured
_ROOM = 1.15


def plot(advice: Advice) -> go.Figure:
    """The gain over the pass rate now, with its 50 % and 90 % band, against compute.

    The dotted line is delta, the least gain that matters; the falling share of the gain above the line of the price,
    where one was given, is what paying on is worth. The band is what the run's own data say, by its forecast or its
    curve as the numbers are (`gain_from`), the mark at the end what past runs make of it, where they were given. With a
    misfit that withholds the forecast no gain is drawn.

    Raises:
        ValueError: the advice was not made by `advise`, so that there is no forecast to draw.
        ImportError: plotly is not installed.
    """
    fit = advice.fit
    if fit is None:
        raise ValueError("fit: this advice has no forecast behind it; make it with advise(fit)")
    figure, numbers = sheet(), advice.numbers
    now, end = float(numbers["now"]), float(numbers["measured_to"])
    last = now + _BEYOND * (end - now)
    top, bottom = _ROOM * float(numbers["delta"]), 0.0
    if not fit.withheld:
        compute = np.linspace(now, last, _POINTS)
        band = (_forecast_band if numbers["gain_from"] == "forecast" else _gain_band)(fit, now, compute)
        _add_gain(figure, band)
        top, bottom = max(top, _ROOM * float(band.upper90.max())), _ROOM * float(min(band.lower90.min(), 0.0))
    _add_delta(figure, now, last, float(numbers["delta"]))
    if numbers["price"] is not None:
        _add_price(figure, now, last, float(numbers["price"]), fit.unit)
    figure.update_xaxes(title=f"compute ({fit.unit})", range=[now, last])
    figure.update_yaxes(title="gain in pass rate", range=[min(-0.05 * top, bottom), top])
    dress(figure, advice.reason)
    if not fit.withheld:
        where = as_given(end) if end == numbers["budget"] else compute_text(end)
        add_mark(figure, end, f"at {where}: {gain_text(Estimate(**numbers['gain']))}")
    return figure


def _gain_band(fit: Fit, now: float, compute: np.ndarray) -> Band:
    """What the curve gains between `now` and each compute, (N,): the same draws of the curve at both ends."""
    return band_of(compute, growth(fit, now, compute)[1])


def _forecast_band(fit: Fit, now: float, compute: np.ndarray) -> Band:
    """What the run gains by its forecast between `now` and each compute, (N,)."""
    level = np.clip(levels(fit, np.array([now, *compute])), *fit.curve.bounds)
    return band_of(compute, level[1:] - level[0])


def _add_gain(figure: go.Figure, band: Band) -> None:
    figure.add_scatter(**area(band.compute, band.lower90, band.upper90, 0.13, "90 %"))
    figure.add_scatter(**area(band.compute, band.lower50, band.upper50, 0.2, "50 %"))
    figure.add_scatter(x=band.compute, y=band.median, mode="lines", line={"color": BLUE, "width": 2}, name="gain")


def _add_delta(figure: go.Figure, now: float, last: float, delta: float) -> None:
    line = {"color": VERMILION, "width": 1.5, "dash": "dot"}
    name = f"least gain that matters, {delta:g}"
    figure.add_scatter(x=[now, last], y=[delta, delta], mode="lines", line=line, name=name)


def _add_price(figure: go.Figure, now: float, last: float, price: float, unit: str) -> None:
    line = {"color": GREEN, "width": 1.5, "dash": "dash"}
    name = f"price, {price:.2g} a unit of {unit}"
    figure.add_scatter(x=[now, last], y=[0.0, price * (last - now)], mode="lines", line=line, name=name)
