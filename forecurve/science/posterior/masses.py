"""How much posterior mass each node carries: the integral over (R0, A) by Laplace's method.

    integral of (rate + Q(R0, A)/2)^-nu p(A | R0) over 0 <= R0 <= A <= 1
      ~ the top of the density x the area that it fills.

The area is that of a normal with the density's curvature there, times one as wide as the range itself: where the
evaluations tell neither the start (none before the bend) nor the ceiling (none behind it), the other is still known
well or badly, and the area with it.

It lays the lattices and chooses where to draw, and takes a ceiling of which nothing is told for uniform on [R0, 1]; the
draws themselves are weighted exactly.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..compiled import compiled
from .elementary import exps, logs
from .kernels import LatticeSums
from .linear import AT_NODE, Quadratic, best_at_node, best_on_triangle, free_at_node, quadratic, value_at_node
from .prior import Prior, student_t_constant, student_t_scale
from .usual_rise import LEAST_HEADROOM

if TYPE_CHECKING:
    from .problem import Setting

_LOG_TWO_PI = float(np.log(2 * np.pi))
_FLAT = 12.0  # 1 / variance of a uniform on [0, 1]


class Masses(NamedTuple):
    """Log mass of every (part of the prior, hypothesis, node), (P, H, K), and of every node, (K,)."""

    pairs: FloatArray
    nodes: FloatArray


class Constants(NamedTuple):
    """Of the marginal density: the noise's unit, rate and nu (see `Setting`), and the Student-t of A's prior."""

    unit: float
    rate: float
    nu: float
    mean: float
    sd: float
    scale: float
    dof: float
    top: float


class Beforehand(NamedTuple):
    """What is believed of hypotheses and nodes before any evaluation.

    Attributes:
        log_hypothesis: log prior weight of each hypothesis, (H,).
        log_node: log prior mass of each node for each part of the prior, (P, K).
        pulled: whether the second part of the prior says anything of A.
        constants: of the marginal density.
    """

    log_hypothesis: FloatArray
    log_node: FloatArray
    pulled: bool
    constants: Constants

    @classmethod
    def of(cls, setting: Setting, log_hypothesis: FloatArray, log_node: FloatArray) -> Beforehand:
        """Under the prior and the noise of a setting."""
        constants = constants_of(setting.prior, setting.unit_variance, setting.rate, setting.nu)
        return cls(log_hypothesis, log_node, pulls(setting.prior), constants)


def log_masses(sums: LatticeSums, totals: FloatArray, beforehand: Beforehand) -> Masses:
    """Integrate (R0, A) out.

    Args:
        sums, totals: inner products of g with itself, 1 and y, (H, K); of 1 and y, and log det M, (H, 4).
    """
    size = (len(beforehand.log_node), *sums.gg.shape)
    out = Masses(np.empty(size), np.empty(size[2]))
    compiled(mass_loop, mass_rows, *MASS_PARTS)(sums, totals, beforehand, out)
    return out


def pulls(prior: Prior) -> bool:
    """Whether the informative part of a prior says anything of A."""
    return prior.informative and prior.A is not None


def constants_of(prior: Prior, unit: float, rate: float, nu: float) -> Constants:
    """Of the marginal density under a prior; `unit`, `rate` and `nu` as a `Setting` has them."""
    mean, sd = prior.A or (0.5, 1.0)
    return Constants(unit, rate, nu, mean, sd, *_student_t(sd, prior.dof))


@cache
def _student_t(sd: float, dof: float) -> tuple[float, float, float]:
    """Scale, degrees of freedom, log density at the mean."""
    return student_t_scale(sd, dof), dof, student_t_constant(sd, dof)


def mass_loop(sums: LatticeSums, totals: Any, beforehand: Beforehand, out: Masses) -> None:
    gg, g1, gy, _ = sums
    log_hypothesis, log_node_prior, pulled, constants = beforehand
    pairs, nodes = out
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    parts, hypotheses, size = pairs.shape
    form, R0, A = np.empty((5, size)), np.empty(size), np.empty(size)
    narrows, halves, density = np.empty(size), np.empty(size), np.empty(size)
    nodes[:] = -np.inf
    for h in range(hypotheses):
        oo, oy, yy = totals[h, 0] / unit, totals[h, 1] / unit, totals[h, 2] / unit
        common = log_hypothesis[h] - totals[h, 3] / 2.0 + _LOG_TWO_PI
        _form_loop(gg[h], g1[h], gy[h], oo, oy, 1.0 / unit, form)
        pull, smallest = 0.0, np.inf
        for part in range(parts):
            prior = log_node_prior[part]
            told = part == 1 and pulled
            if told:
                pull = (rate + smallest / 2.0) / nu / (sd * sd)  # in units of Q, at this hypothesis's best node
            # Q is pulled towards the prior only to find its top; half of rate + Q is of Q alone
            _top_loop(form, pull, pull * mean, R0, A)
            for k in range(size):
                a, b, c, d0, d1 = form[0, k], form[1, k], form[2, k], form[3, k], form[4, k]
                half = rate + value_at_node(a, b, c, d0, d1, yy, R0[k], A[k]) / 2.0
                # the area under a normal of this shape is 2 pi half / sqrt(narrow): one logarithm serves both
                flat = _FLAT * half
                narrow = _narrow(a, b, c + pull, nu, flat)
                headroom = 1.0 if told else max(1.0 - R0[k], LEAST_HEADROOM)
                narrows[k], halves[k] = narrow * headroom * headroom, half
            if pulled and part == 0:
                for k in range(size):
                    if prior[k] > -np.inf:  # neither outside the box nor left out
                        smallest = min(smallest, 2.0 * (halves[k] - rate))
            logs(narrows)
            logs(halves)
            density[:] = common
            if told:
                for k in range(size):
                    density[k] = 1.0 + ((A[k] - mean) / scale) ** 2 / dof
                logs(density)
                for k in range(size):
                    density[k] = common + at_top - (dof + 1.0) / 2.0 * density[k]
            for k in range(size):
                pairs[part, h, k] = density[k] + prior[k] - 0.5 * narrows[k] - (nu - 1.0) * halves[k]
                nodes[k] = max(nodes[k], pairs[part, h, k])
    narrows[:] = 0.0
    for part in range(parts):
        for h in range(hypotheses):
            for k in range(size):
                density[k] = pairs[part, h, k] - nodes[k] if nodes[k] > -np.inf else 0.0
            exps(density)
            for k in range(size):
                narrows[k] += density[k]
    logs(narrows)
    for k in range(size):
        nodes[k] += narrows[k]


def _narrow(a: Any, b: Any, c: Any, nu: Any, flat: Any) -> Any:
    """The determinant of nu Q's matrix + flat on its diagonal: above 0 where rounding takes that of Q below."""
    return max(a * c - b * b, 0.0) * nu * nu + flat * ((a + c) * nu + flat)


def _form_loop(gg: Any, g1: Any, gy: Any, oo: Any, oy: Any, per_unit: Any, form: Any) -> None:
    """h00, h01, h11, c0 and c1 of a row of nodes, see `linear`; (5, K)."""
    for k in range(len(gg)):
        c, d1 = gg[k] * per_unit, gy[k] * per_unit
        b = g1[k] * per_unit - c
        form[0, k], form[1, k], form[2, k] = max(oo - 2.0 * b - c, 0.0), b, c
        form[3, k], form[4, k] = oy - d1, d1


def _top_loop(form: Any, pull: Any, pulled_to: Any, R0: Any, A: Any) -> None:
    """Where Q is least at a row of nodes. All are taken for free first, without a branch, so several at once."""
    for k in range(len(R0)):
        R0[k], A[k] = free_at_node(form[0, k], form[1, k], form[2, k] + pull, form[3, k], form[4, k] + pulled_to)
    for k in range(len(R0)):
        if not 0.0 <= R0[k] <= A[k] <= 1.0:
            found = best_at_node(form[0, k], form[1, k], form[2, k] + pull, form[3, k], form[4, k] + pulled_to)
            R0[k], A[k] = found[0], found[1]


def mass_rows(sums: LatticeSums, totals: Any, beforehand: Beforehand, out: Masses) -> None:
    """`mass_loop`, all nodes and hypotheses at once."""
    log_hypothesis, log_node_prior, pulled, constants = beforehand
    pairs, nodes = out
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    q = form_of(sums, totals[:, None], unit)
    common = (log_hypothesis - totals[:, 3] / 2.0 + _LOG_TWO_PI)[:, None]
    R0, A, least = best_on_triangle(q)
    for part in range(len(pairs)):
        log_density = -np.log(np.maximum(1.0 - R0, LEAST_HEADROOM))
        tops = q
        if part == 1 and pulled:
            smallest = least[:, log_node_prior[0] > -np.inf].min(axis=1, keepdims=True)
            tops = q.pull_ceiling(mean, (rate + smallest / 2.0) / nu / sd**2)
            R0, A, _ = best_on_triangle(tops)
            least = q.value(R0, A)
            log_density = at_top - (dof + 1.0) / 2.0 * np.log1p(((A - mean) / scale) ** 2 / dof)
        half = rate + least / 2.0
        flat = _FLAT * half
        narrow = tops.determinant * nu**2 + flat * ((tops.h00 + tops.h11) * nu + flat)  # as `_narrow`
        mass = log_density - 0.5 * np.log(narrow)
        pairs[part] = common + log_node_prior[part] + mass - (nu - 1.0) * np.log(half)
    best = pairs.max(axis=(0, 1))
    nodes[:] = np.where(np.isfinite(best), best, 0.0)
    with np.errstate(divide="ignore"):
        nodes += np.log(np.exp(pairs - nodes).sum(axis=(0, 1)))


# what the loop calls, in the order in which it is to be compiled
MASS_PARTS = (*AT_NODE, logs, exps, _narrow, _form_loop, _top_loop)


def form_of(sums: LatticeSums, totals: FloatArray, unit: float) -> Quadratic:
    """The quadratic form Q(R0, A) of nodes; `totals` has one row of four for each, or broadcasts to them."""
    oo, oy, yy = (totals[..., at] / unit for at in range(3))
    return quadratic(sums.gg / unit, sums.g1 / unit, sums.gy / unit, oo, oy, yy)
