"""What a forecast says of the end of its run, wherever that will be.

A run may be stopped before its budget, given a larger one, or have none. So the end is foretold for a row of budgets,
from now to twenty times the later of now and the run's own, and read between them once the run is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from forecurve.science import Estimate, Fit, predict_ending

FURTHEST = 20.0
_TO_THE_BUDGET, _BEYOND = 6, 8
_SAID = ("median", "lower", "upper")
_ROUNDING = 1e-9


def ends_ahead(fit: Fit, budget: float | None) -> dict[str, list[float]]:
    """`{"compute", "median", "lower", "upper"}`: the mean of the last 10 % of the evaluations, were the run to end at
    each compute, by the posterior. The run's own budget is one of them."""
    now, own = fit.curve.now, max(fit.curve.now, budget or 0.0)
    places = [*_between(now, own, _TO_THE_BUDGET), own, *_between(own, FURTHEST * own, _BEYOND)[1:], FURTHEST * own]
    ends = [predict_ending(fit, place) for place in places]
    return {"compute": places, **{name: [getattr(end, name) for end in ends] for name in _SAID}}


def _between(low: float, high: float, count: int) -> list[float]:
    """`count` places from low on, evenly spaced in the logarithm, without high; none where they are the same."""
    return [low * (high / low) ** (at / count) for at in range(count)] if high > low else []


def end_at(said: Mapping[str, Sequence[float]] | None, compute: float) -> Estimate | None:
    """The end that was foretold for that compute, linear in its logarithm; None beyond all that was foretold."""
    if not said or compute > said["compute"][-1] * (1 + _ROUNDING):
        return None
    places = np.log(np.asarray(said["compute"], dtype=float))  # JSON of the store has 1e38 as an integer
    return Estimate(*(float(np.interp(np.log(compute), places, said[name])) for name in _SAID))
