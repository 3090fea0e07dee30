"""The JSON of a forecast, as `forecurve fit --json` prints it (docs/reference/fit-json.md)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..fitting.outcome import predict_ending
from ..past.conformal import Conformal, in_prior
from ..values import Estimate, jsonable
from .advise import advise

if TYPE_CHECKING:
    from ..fitting.fit import Fit
    from ..past.hindsight import Hindsight


def to_dict(
    fit: Fit, budget: float | None = None, target: float | None = None, hindsight: Hindsight | None = None
) -> dict[str, Any]:
    """One series. `at_budget` and `ending` are null without a budget or where a misfit withholds the forecast, `ending`
    also where the budget is spent; `target` is there only when one is given.
    """
    advice = advise(fit, budget=budget, target=target, hindsight=hindsight)
    cutoff = fit.cutoff
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
        "withheld": fit.withheld,
        "cutoff": None if cutoff is None else asdict(cutoff),
        "outliers": [float(compute) for compute in fit.outliers],
        "at_budget": None if budget is None or fit.withheld else at_budget(fit, budget),
        "ending": None if (end := ending(fit, budget, hindsight)) is None else asdict(end),
        "advice": {"action": advice.action, "reason": advice.reason},
        "seconds": fit.seconds,
    }
    if target is not None:
        reach = fit.compute_to_reach(target, budget, hindsight)
        answer["target"] = None if fit.withheld else reach.to_dict()
    return dict(jsonable(answer))


def at_budget(fit: Fit, budget: float) -> dict[str, Any]:
    """The curve and one evaluation at the budget: two different intervals, ahead wider by `Fit.widening`."""
    curve, evaluation = fit.predict(budget).at(0), fit.predict_evaluation(budget).at(0)
    factor = fit.widening if budget > fit.curve.now else 1.0
    return {
        "compute": float(budget),
        "curve": curve.widened(factor, fit.curve.bounds).to_dict(),
        "evaluation": evaluation.widened(factor, fit.curve.bounds).to_dict(),
    }


@dataclass(frozen=True)
class Ending:
    """How a run is expected to end: the mean of the last 10 % of its evaluations, by which forecasts are scored.

    Attributes:
        compute: the budget.
        median, lower, upper: with its 90 % interval.
        calibration: what that rests on.
    """

    compute: float
    median: float
    lower: float
    upper: float
    calibration: str

    @property
    def estimate(self) -> Estimate:
        """Median and 90 % interval."""
        return Estimate(self.median, self.lower, self.upper)


def ending(fit: Fit, budget: float | None, hindsight: Hindsight | None = None) -> Ending | None:
    """None without a budget that lies ahead, or where a misfit withholds the forecast.

    Args:
        fit: the forecast.
        budget: compute that the run may spend.
        hindsight: how forecasts of past runs at this share of the budget turned out.
    """
    if budget is None or budget <= fit.curve.now or fit.withheld:
        return None
    if hindsight is None or not hindsight.runs:
        prior = fit.prior
        end, rests_on = predict_ending(fit, budget), in_prior((prior.runs or 0) + prior.ahead, prior.ahead)
    else:
        conformal = Conformal.of(hindsight)
        end, rests_on = conformal.apply(hindsight.estimate, fit.curve.bounds), conformal.words
    return Ending(float(budget), end.median, end.lower, end.upper, rests_on)
