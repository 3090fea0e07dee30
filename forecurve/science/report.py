"""The JSON of a forecast, as `forecurve fit --json` prints it (docs/reference/fit-json.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .advice import advise
from .values import jsonable

if TYPE_CHECKING:
    from .fitting import Fit


def to_dict(fit: Fit, budget: float | None = None, target: float | None = None) -> dict[str, Any]:
    """One series. `at_budget` is null without a budget; `target` is there only when one is given."""
    advice = advise(fit, budget=budget, target=target)
    answer: dict[str, Any] = {
        "series": fit.curve.name,
        "points": fit.points,
        "A": fit.A.to_dict(),
        "B": fit.B.to_dict(),
        "C_mid": fit.C_mid.to_dict(),
        "R0": fit.R0.to_dict(),
        "identified": dict(fit.identified),
        "misfit": fit.misfit,
        "at_budget": None if budget is None else at_budget(fit, budget),
        "advice": {"action": advice.action, "reason": advice.reason},
        "seconds": fit.seconds,
    }
    if target is not None:
        answer["target"] = fit.compute_to_reach(target).to_dict()
    return dict(jsonable(answer))


def at_budget(fit: Fit, budget: float) -> dict[str, Any]:
    """The curve and one evaluation at the budget: two different intervals."""
    return {
        "compute": float(budget),
        "curve": fit.predict(budget).at(0).to_dict(),
        "evaluation": fit.predict_evaluation(budget).at(0).to_dict(),
    }
