"""(R0, A) at chosen pairs of the table, weighed exactly.

With the noise scale alpha the density of (R0, A) is a normal one on the triangle, without it one with the tails of a
Student-t: heavy where evaluations are few. So alpha is drawn first, then (R0, A) from truncated normals given alpha.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ..arrays import BoolArray, FloatArray, IntArray
from ..compiled import compiled
from .evenly import EVENLY, inside, multiples
from .integral import Table
from .kernels import LatticeSums
from .linear import AT_NODE, best_at_node, best_on_triangle, value_at_node
from .masses import Beforehand, form_of
from .normal import below, quantile
from .problem import Setting
from .usual_rise import log_usual_rise

_PULL = 0.5  # of the prior's precision of A: its tails are a Student-t's, which no narrow normal reaches
LEAST_ROOT = 0.05  # of a chi-square's cube root over its mean
_LEAST_MASS = 1e-12
_LOG_ROOT_TWO_PI = 0.9189385332046727


class Pairs(NamedTuple):
    """Of each proposal the part of the prior, the hypothesis and the node, (K,)."""

    part: IntArray
    hypothesis: IntArray
    node: IntArray


class Density(NamedTuple):
    """What the loops need of a table: its inner products, (H, K) and (H, 4), and what was believed beforehand.

    Attributes:
        informative: of each part of the prior: is it the informative one?
    """

    sums: LatticeSums
    totals: FloatArray
    informative: BoolArray
    beforehand: Beforehand


class Scales(NamedTuple):
    """Noise scales to propose, (K,), in units of their conditional rate, and log of target over proposal of each."""

    size: FloatArray
    log_weight: FloatArray


@lru_cache(maxsize=8)
def scales(nu: float, count: int) -> Scales:
    """Evenly spread over the inverse-gamma that alpha has once (R0, A) are integrated, by Wilson and Hilferty."""
    shape = nu - 1.0
    middle, spread = 1.0 - 1.0 / (9.0 * shape), 1.0 / (3.0 * np.sqrt(shape))
    least = ndtr((LEAST_ROOT - middle) / spread)
    z = ndtri(least + (1.0 - least) * inside(multiples(EVENLY[1], np.arange(1, count + 1))))
    root = np.maximum(middle + spread * z, LEAST_ROOT)
    gamma = shape * root**3
    log_proposed = -(z**2) / 2 - np.log(3 * shape * spread * root**2) + 2 * np.log(gamma)
    return Scales(1.0 / gamma, (nu + 1.0) * np.log(gamma) - log_proposed)


class Weighed(NamedTuple):
    """R0, A, the log of target over proposal, and Q(R0, A) of each proposal, (K,)."""

    R0: FloatArray
    A: FloatArray
    log_weight: FloatArray
    squares: FloatArray


def weigh(setting: Setting, table: Table, pairs: Pairs, u: FloatArray, w: FloatArray) -> Weighed:
    """Draw and weigh.

    Args:
        u, w: coordinates in (0, 1) from which A and R0 are drawn, (K,).
    """
    found = Weighed(*(np.empty(len(u)) for _ in range(4)))
    beforehand = Beforehand.of(setting, setting.log_weights[table.alive], table.log_node_prior)
    density = Density(table.sums, table.totals, np.array(setting.prior_parts), beforehand)
    at_scale = scales(setting.nu, len(u))
    parts = (*AT_NODE, below, quantile, log_usual_rise, _determinant, _truncated)
    compiled(_weigh_loop, _weigh_rows, *parts)(density, pairs, u, w, at_scale, found)
    return found


def _weigh_loop(density: Density, pairs: Pairs, u: Any, w: Any, at_scale: Scales, found: Weighed) -> None:
    sums, totals, informative, beforehand = density
    gg, g1, gy, _ = sums
    log_hypothesis, log_node_prior, pulled, constants = beforehand
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    part, hypothesis, node = pairs
    R0, A, log_weight, squares = found
    size, log_scale = at_scale
    per_unit = 1.0 / unit
    for i in range(len(u)):
        p, h, k = part[i], hypothesis[i], node[i]
        oo, oy, yy = totals[h, 0] * per_unit, totals[h, 1] * per_unit, totals[h, 2] * per_unit
        c = gg[h, k] * per_unit
        b = g1[h, k] * per_unit - c
        a = max(oo - 2.0 * b - c, 0.0)
        d1 = gy[h, k] * per_unit
        d0 = oy - d1
        x, y, _, _ = best_at_node(a, b, c, d0, d1)
        least = value_at_node(a, b, c, d0, d1, yy, x, y)
        sharp = 1.0 / ((rate + least / 2.0) * size[i])
        told = informative[p] and pulled
        pull, centre = (_PULL / (sd * sd), mean) if told else (1.0, 0.5)
        # precision of the proposal; the units on the diagonal keep it proper where the data say nothing
        k00, k01 = a * sharp + 1.0, b * sharp
        b0, b1 = d0 * sharp + 0.5, d1 * sharp + pull * centre
        det = _determinant(a, b, c, sharp, pull)
        y, log_a = _truncated((k00 * b1 - k01 * b0) / det, np.sqrt(k00 / det), 0.0, 1.0, u[i])
        x, log_r = _truncated((b0 - k01 * y) / k00, 1.0 / np.sqrt(k00), 0.0, y, w[i])
        q = value_at_node(a, b, c, d0, d1, yy, x, y)
        if told:
            log_prior = at_top - (dof + 1.0) / 2.0 * np.log1p(((y - mean) / scale) ** 2 / dof)
        else:
            log_prior = log_usual_rise(y, x)
        R0[i], A[i], squares[i] = x, y, q
        by_noise = log_scale[i] - nu * np.log(rate + least / 2.0) - (rate + q / 2.0) * sharp
        common = log_hypothesis[h] - totals[h, 3] / 2.0
        target = common + log_node_prior[p, k] + log_prior + by_noise
        log_weight[i] = target - log_a - log_r


def _determinant(a: Any, b: Any, c: Any, sharp: Any, pull: Any) -> Any:
    """Of the proposal's precision: above 0 where rounding takes it below, as k00 k11 - k01^2 is where data say much."""
    return max(a * c - b * b, 0.0) * sharp * sharp + (c + pull * a) * sharp + pull


def _determinant_rows(a: FloatArray, b: FloatArray, c: FloatArray, sharp: FloatArray, pull: FloatArray) -> FloatArray:
    """`_determinant`, all at once."""
    return np.asarray(np.maximum(a * c - b**2, 0.0) * sharp**2 + (c + pull * a) * sharp + pull)


def _truncated(mean: Any, sd: Any, low: Any, high: Any, u: Any) -> tuple[Any, Any]:
    """`_truncated_rows` of a single one."""
    if mean < (low + high) / 2.0:
        sign, a, b = -1.0, (mean - high) / sd, (mean - low) / sd
    else:
        sign, a, b = 1.0, (low - mean) / sd, (high - mean) / sd
    at_a = below(a)
    mass = below(b) - at_a
    if mass <= _LEAST_MASS:
        return low + u * (high - low), -np.log(max(high - low, 1e-300))
    z = quantile(min(max(at_a + u * mass, 1e-300), 1.0 - 1e-16))
    x = min(max(mean + sign * sd * z, low), high)
    return x, -0.5 * z * z - _LOG_ROOT_TWO_PI - np.log(sd * mass)


def _weigh_rows(density: Density, pairs: Pairs, u: Any, w: Any, at_scale: Scales, found: Weighed) -> None:
    """`_weigh_loop`, all at once."""
    sums, totals, informative, beforehand = density
    log_hypothesis, log_node_prior, pulled, constants = beforehand
    unit, rate, nu, mean, sd, scale, dof, at_top = constants
    part, hypothesis, node = pairs
    R0, A, log_weight, squares = found
    at = hypothesis, node
    q = form_of(LatticeSums(*(part[at] for part in sums)), totals[hypothesis], unit)
    _, _, least = best_on_triangle(q)
    spread = (rate + least / 2) * at_scale.size
    told = informative[part] & pulled
    pull, centre = np.where(told, _PULL / sd**2, 1.0), np.where(told, mean, 0.5)
    k00, k01 = q.h00 / spread + 1.0, q.h01 / spread
    b0, b1 = q.c0 / spread + 0.5, q.c1 / spread + pull * centre
    det = _determinant_rows(q.h00, q.h01, q.h11, 1.0 / spread, pull)
    zero, one = np.zeros(len(u)), np.ones(len(u))
    A[:], log_a = _truncated_rows((k00 * b1 - k01 * b0) / det, np.sqrt(k00 / det), zero, one, u)
    R0[:], log_r = _truncated_rows((b0 - k01 * A) / k00, 1 / np.sqrt(k00), zero, A, w)
    squares[:] = q.value(R0, A)
    log_prior = log_usual_rise(A, R0)
    log_told = at_top - (dof + 1.0) / 2.0 * np.log1p(((A - mean) / scale) ** 2 / dof)
    common = (log_hypothesis - totals[:, 3] / 2)[hypothesis]
    target = common + log_node_prior[part, node] + np.where(told, log_told, log_prior)
    by_noise = at_scale.log_weight - nu * np.log(rate + least / 2) - (rate + squares / 2) / spread
    log_weight[:] = target + by_noise - log_a - log_r


def _truncated_rows(
    mean: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(x, log density) by inversion; uniform where the normal has no mass on [low, high] to speak of."""
    flip = mean < (low + high) / 2  # mirrored so that a lies in the lower tail, where ndtr keeps its digits
    sign = np.where(flip, -1.0, 1.0)
    a = np.where(flip, mean - high, low - mean) / sd
    b = np.where(flip, mean - low, high - mean) / sd
    at_a = ndtr(a)
    mass = ndtr(b) - at_a
    usable = mass > _LEAST_MASS
    z = ndtri(np.clip(at_a + u * mass, 1e-300, 1 - 1e-16))
    x = np.where(usable, np.clip(mean + sign * sd * z, low, high), low + u * (high - low))
    normal = -0.5 * z**2 - _LOG_ROOT_TWO_PI - np.log(sd * np.where(usable, mass, 1.0))
    uniform = -np.log(np.maximum(high - low, 1e-300))
    return x, np.where(usable, normal, uniform)
