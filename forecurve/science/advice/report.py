"""The JSON of a forecast, as `forecurve fit --json` prints it (docs/reference/fit-json.md)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..departures.misfit import HOLDS
from ..past.conformal import Conformal
from ..values import Estimate, jsonable
from .advise import advise

if TYPE_CHECKING:
    from ..fitting.fit import Fit
    from ..past.hindsight import Hindsight


def to_dict(
    fit: Fit, budget: float | None = None, target: float | None = None, hindsight: Hindsight | None = None
) -> dict[str, Any]:
    """One series. `at_budget` is null without a budget or where a misfit withholds the forecast; `target` is there only
    when one is given, and `ending` only where past runs have a say in it.
    """
    advice = advise(fit, budget=budget, target=target, hindsight=hindsight)
    found, cutoff = fit.misfit_detail, fit.cutoff
    withheld = found is not None and found.withheld
    answer: dict[str, Any] = {
        "series": fit.curve.name,
        "points": fit.points,
        "A": fit.A.to_dict(),
        "B": fit.B.to_dict(),
        "C_mid": fit.C_mid.to_dict(),
        "R0": fit.R0.to_dict(),
        "identified": dict(fit.identified),
        "ceiling_known": fit.ceiling_known,
        "misfit": fit.misfit,
        "withheld": withheld,
        "cutoff": None if cutoff is None else asdict(cutoff),
        "outliers": [float(compute) for compute in fit.outliers],
        "at_budget": None if budget is None or withheld else at_budget(fit, budget),
        "advice": {"action": advice.action, "reason": advice.reason},
        "seconds": fit.seconds,
    }
    if budget is not None and (end := ending(fit, hindsight)) is not None:
        answer["ending"] = {"compute": float(budget), **end[0].to_dict(), "calibration": end[1]}
    if target is not None:
        answer["target"] = fit.compute_to_reach(target).to_dict()
    return dict(jsonable(answer))


def at_budget(fit: Fit, budget: float) -> dict[str, Any]:
    """The curve and one evaluation at the budget: two different intervals, wider where residuals hang together."""
    curve, evaluation = fit.predict(budget).at(0), fit.predict_evaluation(budget).at(0)
    return {
        "compute": float(budget),
        "curve": curve.widened(fit.widening, fit.curve.bounds).to_dict(),
        "evaluation": evaluation.widened(fit.widening, fit.curve.bounds).to_dict(),
    }


def ending(fit: Fit, hindsight: Hindsight | None) -> tuple[Estimate, str] | None:
    """How the run is expected to end, as past runs have it, and what that rests on: the mean of the last 10 % of its
    evaluations. None where they have no say, or a misfit withholds the forecast."""
    if hindsight is None or not hindsight.runs or fit.misfit not in HOLDS:
        return None
    conformal = Conformal.of(hindsight)
    return conformal.apply(hindsight.estimate, fit.curve.bounds), conformal.words
