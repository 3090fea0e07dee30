"""Backtest: forecasts from the first part of finished runs, judged by how those ended.

Every method sees the evaluations with compute <= fraction x the last compute and predicts the mean of the last 10 % of
the evaluations (at least 1, at most 30), whose places in compute are known. Ours comes as the median of the posterior
of that mean with its 90 % interval: curve, wandering part and sampling noise of a mean (see `outcome.predict_mean`).

With `prior="siblings"` the other runs at full length are the past (see `among_siblings`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import errors
from ..checks import check_kind, is_positive, short
from ..curves.alike import check_one_range, check_one_unit
from ..curves.curve import Curve
from ..fitting.outcome import Outcome
from ..past.kin import Kin
from ..posterior.prior import Prior, named_prior
from .among_siblings import among_siblings
from .baselines import last_value, power_law
from .one_run import early_part, forecasts_from, nothing_from
from .paper import paper_fit, scaled_grid
from .rows import Backtest, Row

FRACTIONS = (0.1, 0.25, 0.5)
BASELINES = ("paper-grid", "power-law", "last-value")

Progress = Callable[[int, int], None]


def backtest(
    curves: Sequence[Curve],
    *,
    fractions: Sequence[float] = FRACTIONS,
    prior: str | Prior = "none",
    baselines: Sequence[str] = (),
    progress: Progress | None = None,
) -> Backtest:
    """Forecast each finished run from its first part.

    Args:
        curves: finished runs. With `siblings` they are one another's past and need one unit and one metric.
        fractions: of the last compute, each in (0, 1).
        prior: `none`, `paper`, `siblings`, or a `Prior`.
        baselines: of `paper-grid`, `power-law`, `last-value`.
        progress: called with (forecasts done, forecasts in all).

    Raises:
        CurveError: a fraction or a baseline that does not exist. PriorError: an unknown prior, or siblings of another
            unit or range.

    Returns:
        Rows in the order of curves, fractions, methods (ours first).
    """
    check_kind("curves", curves, Sequence, "pass a list of curves", errors.CurveError)
    for at, curve in enumerate(curves):
        check_kind(f"curves[{at}]", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    _check(fractions, baselines)
    fractions = [float(fraction) for fraction in fractions]
    tick = _Ticker(progress, len(curves) * len(fractions) + (len(curves) if prior == "siblings" else 0))
    if prior == "siblings":
        check_one_unit(curves, errors.PriorError, "siblings must share one unit of compute", "convert them first")
        check_one_range(
            curves, errors.PriorError, "siblings must share one range of rewards", "bring them to one scale"
        )
        ours = among_siblings(Kin(curves, tick), fractions, tick)
    else:
        known = named_prior(prior, "siblings")
        ours = [forecasts_from(curve, fractions, known, tick) for curve in curves]
    rows: list[Row] = []
    for curve, forecasts in zip(curves, ours, strict=True):
        for row in forecasts:
            rows += [row, *(_baseline(curve, row.fraction, name) for name in baselines)]
    return Backtest(tuple(rows))


def _check(fractions: Sequence[float], baselines: Sequence[str]) -> None:
    check_kind("fractions", fractions, Sequence, "pass a list, such as [0.1, 0.25]", errors.CurveError)
    for fraction in fractions:
        if not (is_positive(fraction) and fraction < 1):
            raise errors.CurveError(
                "fractions", fraction, "a share of the run is needed", "give numbers above 0 and below 1"
            )
    if isinstance(baselines, str):  # its letters would be taken one by one
        raise errors.CurveError("baselines", short(baselines), "a list of names is needed", f"pass [{baselines!r}]")
    for name in baselines:
        if name not in BASELINES:
            raise errors.CurveError("baselines", name, "no such baseline", f"use {', '.join(BASELINES)}")


@dataclass
class _Ticker:
    """Counts what is done."""

    progress: Progress | None
    total: int
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _baseline(curve: Curve, fraction: float, method: str) -> Row:
    began = time.perf_counter()
    outcome, early = Outcome.of(curve), early_part(curve, fraction)
    if early is None:
        return nothing_from(curve, fraction, method, outcome)
    predicted = _POINTS[method](early, curve, outcome)
    seconds = time.perf_counter() - began
    return Row(curve.name, fraction, method, predicted, None, None, outcome.reward, withheld=False, seconds=seconds)


def _paper_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    grid = scaled_grid(float(early.reward[0]), curve.now, curve.bounds)
    return float(paper_fit(early, grid=grid).reward_at(outcome.compute).mean())


def _power_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    return float(power_law(early).reward_at(outcome.compute).mean())


def _last_point(early: Curve, curve: Curve, outcome: Outcome) -> float:
    return last_value(early)


_POINTS = dict(zip(BASELINES, (_paper_point, _power_point, _last_point), strict=True))
