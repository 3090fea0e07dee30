"""The same evaluations under one prior after another."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..curves.curve import Curve
from ..posterior.prior import Prior
from .fit import Fit, fit_of_problem
from .preparing import prior_of_share, problem_of


def fits_under(curve: Curve, priors: Iterable[Prior]) -> Iterator[Fit]:
    """A fit for each prior, the same as by itself; what the evaluations say whatever the prior is worked out once.

    That is kept as long as any of the fits is, and takes far more room than they do: they are to be let go of.
    """
    problem, seen = None, curve
    for prior in priors:
        began = time.perf_counter()
        sized = curve.of_answers(prior.answers)
        if problem is None or sized.answers != seen.answers:
            problem, seen = replace(problem_of(sized, prior), kept={}), sized
        else:
            problem = problem.under(prior_of_share(seen, prior))
        yield fit_of_problem(problem, seen, prior, began)
