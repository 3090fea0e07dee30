"""Forecasts of one finished run from its first part, by itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from .. import errors
from ..checks import MIN_POINTS, as_float, check_kind, check_share
from ..curves.curve import Curve
from ..fitting.outcome import Outcome, predict_mean
from ..fitting.under_priors import fits_under
from ..past.analogues import Course
from ..past.conformal import Conformal
from ..past.hindsight import Past
from ..posterior.prior import Prior, named_prior
from .rows import Row

OURS = "forecurve"
_ROUNDING = 1e-9


def early_part(curve: Curve, fraction: float) -> Curve | None:
    """The evaluations with compute <= fraction x the last compute; None when they are fewer than 3."""
    limit = fraction * curve.now * (1 + _ROUNDING)
    if int(np.searchsorted(curve.compute, limit, side="right")) < MIN_POINTS:
        return None
    return curve.until(limit)


def forecasts_from(curve: Curve, fractions: Sequence[float], prior: Prior, tick: Callable[[], None]) -> list[Row]:
    """One for each fraction; `tick` is called after each."""
    return rows_under(curve, fractions, [prior], tick)[prior]


def rows_under(
    curve: Curve, fractions: Sequence[float], priors: Sequence[Prior], tick: Callable[[], None]
) -> dict[Prior, list[Row]]:
    """For each prior one for each fraction; `tick` is called after each fraction."""
    rows: dict[Prior, list[Row]] = {prior: [] for prior in priors}
    for fraction in fractions:
        for prior, row in zip(rows, _forecasts_under(curve, fraction, list(rows)), strict=True):
            rows[prior].append(row)
        tick()
    return rows


def forecast_from(curve: Curve, fraction: float, prior: Prior) -> Row:
    """Ours, from the first part of a finished run, and what came. `prior` must not be made of the run itself."""
    return next(_forecasts_under(curve, fraction, [prior]))


def _forecasts_under(curve: Curve, fraction: float, priors: Sequence[Prior]) -> Iterator[Row]:
    outcome, early = Outcome.of(curve), early_part(curve, fraction)
    if early is None:
        yield from (nothing_from(curve, fraction, OURS, outcome) for _ in priors)
        return
    for found in fits_under(early, priors):
        began = time.perf_counter()
        estimate = predict_mean(found, outcome.compute)
        yield Row(
            series=curve.name,
            fraction=fraction,
            method=OURS,
            predicted=estimate.median,
            lower=estimate.lower,
            upper=estimate.upper,
            actual=outcome.reward,
            withheld=found.withheld,
            seconds=found.seconds + time.perf_counter() - began,
            calibration=Conformal().label,
            raw=estimate,
        )


def nothing_from(curve: Curve, fraction: float, method: str, outcome: Outcome) -> Row:
    """No forecast: there are too few evaluations by then."""
    return Row(curve.name, fraction, method, None, None, None, outcome.reward, withheld=True, seconds=0.0)


def past_forecast(curve: Curve, fraction: float, prior: str | Prior = "none") -> Past | None:
    """What would have been said of a finished run at this share of its compute, and what came: for `Hindsight.of`.

    None where there are fewer than 3 evaluations by then. `prior` must not be made of the run itself.

    Raises:
        CurveError: no curve, or a share that is not above 0 and below 1. PriorError: an unknown prior.
    """
    check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    check_share("fraction", fraction, errors.CurveError)
    fraction = as_float(fraction)
    row = forecast_from(curve, fraction, named_prior(prior))
    if row.raw is None:
        return None
    return Past(curve.name, fraction, row.raw, row.actual, Course.of(curve))
