"""How much posterior mass each node carries: the integral over (R0, A) by Laplace's method.

    integral of (rate + Q(R0, A)/2)^-nu p(A | R0) over 0 <= R0 <= A <= 1
      ~ the top of the density x the area that it fills.

The area is that of a normal with the density's curvature there, times one as wide as the range itself: where the
evaluations tell neither the start (none before the bend) nor the ceiling (none behind it), the other is still known
well or badly, and the area with it.

It lays the lattices and chooses where to draw; the draws themselves are weighted exactly.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..compiled import compiled
from .elementary import exps, logs
from .kernels import LatticeSums
from .linear import Quadratic, best_at_node, best_on_triangle, quadratic
from .prior import Prior, student_t_constant

LEAST_HEADROOM = 1e-3
"""R0 ~ U(0, 1); A ~ U(R0, 1) where nothing is told of it: its density is 1 / (1 - R0), kept finite."""
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


def log_masses(
    sums: LatticeSums,
    totals: FloatArray,
    log_hypothesis: FloatArray,
    log_node_prior: FloatArray,
    prior: Prior,
    unit: float,
    rate: float,
    nu: float,
) -> Masses:
    """Integrate (R0, A) out.

    Args:
        sums, totals: inner products of g with itself, 1 and y, (H, K); of 1 and y, and log det M, (H, 4).
        log_hypothesis: log prior weight of each hypothesis, (H,).
        log_node_prior: log prior mass of each node for each part of the prior, (P, K).
        prior: of A.
        unit, rate, nu: of the marginal density, see `Problem`.
    """
    constants = constants_of(prior, unit, rate, nu)
    size = (len(log_node_prior), *sums.gg.shape)
    out = Masses(np.empty(size), np.empty(size[2]))
    run = compiled(_mass_loop, _mass_rows, best_at_node, logs, exps)
    run(sums.gg, sums.g1, sums.gy, totals, log_hypothesis, log_node_prior, pulls(prior), constants, *out)
    return out


def pulls(prior: Prior) -> bool:
    """Whether the informative part of a prior says anything of A."""
    return prior.informative and prior.A is not None


def constants_of(prior: Prior, unit: float, rate: float, nu: float) -> Constants:
    """Of the marginal density under a prior; see `log_masses`."""
    mean, sd = prior.A or (0.5, 1.0)
    return Constants(unit, rate, nu, mean, sd, *_student_t(sd, prior.dof))


@cache
def _student_t(sd: float, dof: float) -> tuple[float, float, float]:
    """Scale, degrees of freedom, log density at the mean."""
    return sd * float(np.sqrt((dof - 2) / dof)), dof, student_t_constant(sd, dof)


def _mass_loop(
    gg: Any,
    g1: Any,
    gy: Any,
    totals: Any,
    log_hypothesis: Any,
    log_node_prior: Any,
    pulled: Any,
    constants: Any,
    pairs: Any,
    nodes: Any,
) -> None:
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    parts, hypotheses, size = pairs.shape
    per_unit = 1.0 / unit
    narrows, halves, row = np.empty(size), np.empty(size), np.empty(size)
    nodes[:] = -np.inf
    for h in range(hypotheses):
        oo, oy, yy = totals[h, 0] / unit, totals[h, 1] / unit, totals[h, 2] / unit
        common = log_hypothesis[h] - totals[h, 3] / 2.0 + _LOG_TWO_PI
        pull, smallest = 0.0, np.inf
        for part in range(parts):
            told = part == 1 and pulled
            if told:
                pull = (rate + smallest / 2.0) / nu / (sd * sd)  # in units of Q, at this hypothesis's best node
            for k in range(size):
                row[k] = log_node_prior[part, k]
                if row[k] == -np.inf:  # outside the box, or left out
                    narrows[k] = halves[k] = 1.0
                    continue
                c = gg[h, k] * per_unit
                b = g1[h, k] * per_unit - c
                a = max(oo - 2.0 * b - c, 0.0)
                d1 = gy[h, k] * per_unit
                d0 = oy - d1
                # Q is pulled towards the prior only to find its top; `least` is Q alone
                cc, dd = c + pull, d1 + pull * mean
                R0, A, _, _ = best_at_node(a, b, cc, d0, dd)
                least = max(yy - 2.0 * (d0 * R0 + d1 * A) + a * R0 * R0 + 2.0 * b * R0 * A + c * A * A, 0.0)
                smallest = min(smallest, least)
                half = rate + least / 2.0
                # the area under a normal of this shape is 2 pi half / sqrt(narrow): one logarithm serves both
                flat = _FLAT * half
                narrow = (a * nu + flat) * (cc * nu + flat) - (b * nu) ** 2
                if told:
                    row[k] += at_top - (dof + 1.0) / 2.0 * np.log1p(((A - mean) / scale) ** 2 / dof)
                else:
                    headroom = max(1.0 - R0, LEAST_HEADROOM)
                    narrow *= headroom * headroom
                narrows[k], halves[k] = narrow, half
            logs(narrows)
            logs(halves)
            for k in range(size):
                pairs[part, h, k] = common + row[k] - 0.5 * narrows[k] - (nu - 1.0) * halves[k]
                nodes[k] = max(nodes[k], pairs[part, h, k])
    narrows[:] = 0.0
    for part in range(parts):
        for h in range(hypotheses):
            for k in range(size):
                row[k] = pairs[part, h, k] - nodes[k] if nodes[k] > -np.inf else 0.0
            exps(row)
            for k in range(size):
                narrows[k] += row[k]
    logs(narrows)
    for k in range(size):
        nodes[k] += narrows[k]


def _mass_rows(
    gg: Any,
    g1: Any,
    gy: Any,
    totals: Any,
    log_hypothesis: Any,
    log_node_prior: Any,
    pulled: Any,
    constants: Any,
    pairs: Any,
    nodes: Any,
) -> None:
    """`_mass_loop`, all nodes and hypotheses at once."""
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    q = form_of(LatticeSums(gg, g1, gy, gg), totals[:, None], unit)
    common = (log_hypothesis - totals[:, 3] / 2.0 + _LOG_TWO_PI)[:, None]
    R0, A, least = best_on_triangle(q)
    for part in range(len(pairs)):
        log_density = -np.log(np.maximum(1.0 - R0, LEAST_HEADROOM))
        tops = q
        if part == 1 and pulled:
            tops = q.pull_ceiling(mean, (rate + least.min(axis=1, keepdims=True) / 2.0) / nu / sd**2)
            R0, A, _ = best_on_triangle(tops)
            least = q.value(R0, A)
            log_density = at_top - (dof + 1.0) / 2.0 * np.log1p(((A - mean) / scale) ** 2 / dof)
        half = rate + least / 2.0
        flat = _FLAT * half
        narrow = (tops.h00 * nu + flat) * (tops.h11 * nu + flat) - (tops.h01 * nu) ** 2
        mass = log_density - 0.5 * np.log(narrow)
        pairs[part] = common + log_node_prior[part] + mass - (nu - 1.0) * np.log(half)
    best = pairs.max(axis=(0, 1))
    nodes[:] = np.where(np.isfinite(best), best, 0.0)
    with np.errstate(divide="ignore"):
        nodes += np.log(np.exp(pairs - nodes).sum(axis=(0, 1)))


def form_of(sums: LatticeSums, totals: FloatArray, unit: float) -> Quadratic:
    """The quadratic form Q(R0, A) of nodes; `totals` has one row of four for each, or broadcasts to them."""
    oo, oy, yy = (totals[..., at] / unit for at in range(3))
    return quadratic(sums.gg / unit, sums.g1 / unit, sums.gy / unit, oo, oy, yy)
