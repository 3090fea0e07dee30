"""A forecast that was revised: the updated posterior has left the frozen forecast's interval, without an anomaly.

A run may bend earlier or later than its forecast thought, evaluation by evaluation and each within its band. That is
no alarm: it is what a forecast is for. It is said once it matters at the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forecurve.digits import as_given

from .. import checks, errors
from ..curves.margins import LEAST_GAIN
from ..fitting.fit import Fit
from ..values import Estimate, jsonable
from ..wording import level_text
from .frozen import FrozenForecast


@dataclass(frozen=True)
class Revision:
    """The forecast at the budget, before and now.

    Attributes:
        direction: "down" or "up".
        compute: where both forecasts are read: the budget.
        before, after: the frozen forecast and the updated one, 90 %.
        sentence: one line.
    """

    direction: str
    compute: float
    before: Estimate
    after: Estimate
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return dict(
            jsonable(
                {
                    "direction": self.direction,
                    "compute": self.compute,
                    "before": self.before.to_dict(),
                    "after": self.after.to_dict(),
                    "sentence": self.sentence,
                }
            )
        )


def revision(frozen: FrozenForecast, fit: Fit, budget: float) -> Revision | None:
    """Whether the updated median at the budget has left the frozen forecast's 90 % interval.

    A run with an alarm is to be judged by that alone: ask only while `watch` gives no level. Under a misfit there is
    no updated forecast, hence no revision.

    Args:
        frozen: as it stood.
        fit: of all evaluations so far.
        budget: compute at which they are compared, in the run's unit.

    Raises:
        FrozenError: something else was given, or no finite budget of at least 0.
    """
    checks.check_kind("frozen", frozen, FrozenForecast, "pass freeze(fit(curve))", errors.FrozenError)
    checks.check_kind("fit", fit, Fit, "pass fit(curve) of the whole run", errors.FrozenError)
    if fit.withheld:
        return None
    before, after = frozen.at(budget), fit.predict(budget).at(0)
    least = LEAST_GAIN * (frozen.bounds[1] - frozen.bounds[0])
    down = after.median < before.lower and before.median - after.median >= least
    up = after.median > before.upper and after.median - before.median >= least
    if not (down or up):
        return None
    text = (
        f"{frozen.name}: forecast at {as_given(budget)} {frozen.unit} revised from {level_text(before)} "
        f"to {level_text(after)}; slow, legitimate"
    )
    return Revision("down" if down else "up", float(budget), before, after, f"{text}.")
