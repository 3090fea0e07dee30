"""How many answers an evaluation rests on, told by runs of the same task where none says it.

Held-out evaluations are few and written with three decimals: one run tells the number of its prompts after seventeen of
them, three runs together after six. A run that may be of as many answers as they all are is taken for one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from ..curves.curve import Curve
from ..curves.granularity import LOOKED_AT, answers_told_by, are_of

if TYPE_CHECKING:
    from ..fitting.fit import Fit

_sized: WeakKeyDictionary[Fit, dict[int, Fit]] = WeakKeyDictionary()


def answers_of_all(curves: Sequence[Curve]) -> int | None:
    """The number that the rewards of all curves of which nobody says a size tell: the one that some tell by themselves,
    or else all together. None where there is none, or where one of them cannot be of as many."""
    untold = [curve for curve in curves if curve.noise.source in ("unknown", "rewards")]
    own = {curve.answers for curve in untold if curve.answers is not None}
    if not untold or len(own) > 1:
        return None
    rates = [(curve.reward - curve.bounds[0]) / curve.width for curve in untold]
    of_each = max(LOOKED_AT // len(untold), 1)
    answers = own.pop() if own else answers_told_by(np.concatenate([rate[:of_each] for rate in rates]))
    return answers if answers is not None and all(are_of(rate, answers) for rate in rates) else None


def of_answers(fit: Fit, answers: int | None) -> Fit:
    """The fit of the same run with evaluations of so many answers, made once for as long as the fit is kept."""
    from ..fitting.fit import fit as refit

    curve = fit.curve.of_answers(answers)
    if answers is None or curve is fit.curve:
        return fit
    known = _sized.setdefault(fit, {})
    if answers not in known:
        known[answers] = refit(curve, prior=fit.prior)
    return known[answers]
