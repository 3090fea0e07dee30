"""A curve and its prior as a fit sees them: in the scale where rewards lie in [0, 1], neighbours averaged."""

from __future__ import annotations

from dataclasses import replace

from ..curves.averaging import MOST_FITTED, averaged
from ..curves.curve import Curve
from ..posterior.prior import Prior
from ..posterior.problem import Problem, make_problem


def problem_of(curve: Curve, prior: Prior) -> Problem:
    """The curve under the prior."""
    low, width = curve.bounds[0], curve.width
    seen = averaged(curve.compute, (curve.reward - low) / width, curve.noise.variance / width**2)
    return make_problem(seen, curve.noise.source, prior_of_share(curve, prior), curve.restarts)


def prior_of_share(curve: Curve, prior: Prior) -> Prior:
    """The prior of the curve's scale."""
    if curve.points > MOST_FITTED:
        prior = replace(prior, noise=None)  # what is known of single evaluations does not hold for means of several
    return prior.of_share(curve)
