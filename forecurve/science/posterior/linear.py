"""Least squares in (R0, A) on the triangle 0 <= R0 <= A <= 1, in closed form, for many nodes at once.

With g given, the curve is linear: R = R0 (1 - g) + A g, so the sum of squares is a quadratic form

    Q(R0, A) = yy - 2 (c0 R0 + c1 A) + h00 R0^2 + 2 h01 R0 A + h11 A^2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..compiled import compiled

_TINY = 1e-12


class Quadratic(NamedTuple):
    """The coefficients of Q, arrays of one shape."""

    h00: FloatArray
    h01: FloatArray
    h11: FloatArray
    c0: FloatArray
    c1: FloatArray
    yy: FloatArray

    def value(self, R0: FloatArray, A: FloatArray) -> FloatArray:
        """Q at (R0, A), never below 0."""
        linear = self.c0 * R0 + self.c1 * A
        quadratic = self.h00 * R0**2 + 2 * self.h01 * R0 * A + self.h11 * A**2
        return np.maximum(self.yy - 2 * linear + quadratic, 0.0)

    @property
    def determinant(self) -> FloatArray:
        """h00 h11 - h01^2, never below 0."""
        return np.maximum(self.h00 * self.h11 - self.h01**2, 0.0)

    def pull_ceiling(self, mean: float, precision: FloatArray) -> Quadratic:
        """Q + precision (A - mean)^2."""
        return Quadratic(
            self.h00,
            self.h01,
            self.h11 + precision,
            self.c0,
            self.c1 + precision * mean,
            self.yy + precision * mean**2,
        )

    def take(self, keep: tuple[Any, ...]) -> Quadratic:
        """The same at some positions."""
        return Quadratic(*(form[keep] for form in self))


class Best(NamedTuple):
    """Where Q is least, and how large it is there; arrays of one shape."""

    R0: FloatArray
    A: FloatArray
    least: FloatArray


def quadratic(
    gg: FloatArray, g1: FloatArray, gy: FloatArray, one: FloatArray, oy: FloatArray, yy: FloatArray
) -> Quadratic:
    """From the inner products of g, the constant 1 and y."""
    return Quadratic(
        h00=np.maximum(one - 2 * g1 + gg, 0.0), h01=g1 - gg, h11=gg, c0=oy - gy, c1=gy, yy=np.broadcast_to(yy, gg.shape)
    )


def best_on_triangle(q: Quadratic) -> Best:
    """The least Q with 0 <= R0 <= A <= 1: inside where the free minimum lies there, else on the best edge."""
    best = Best(*(np.empty(q.h00.shape) for _ in range(3)))
    flat = Quadratic(*(np.broadcast_to(form, q.h00.shape).ravel() for form in q))
    compiled(_triangle_loop, _triangle_rows, *AT_NODE)(flat, Best(*(part.reshape(-1) for part in best)))
    return best


def _triangle_loop(q: Quadratic, best: Best) -> None:
    h00, h01, h11, c0, c1, yy = q
    R0, A, least = best
    for k in range(len(h00)):
        r, a, _, _ = best_at_node(h00[k], h01[k], h11[k], c0[k], c1[k])
        R0[k], A[k], least[k] = r, a, value_at_node(h00[k], h01[k], h11[k], c0[k], c1[k], yy[k], r, a)


def _triangle_rows(q: Quadratic, best: Best) -> None:
    """`_triangle_loop`, all at once."""
    R0, A, least = best
    safe = np.maximum(q.determinant, _TINY * np.maximum(q.h00 * q.h11, _TINY))
    R0[:] = (q.h11 * q.c0 - q.h01 * q.c1) / safe
    A[:] = (q.h00 * q.c1 - q.h01 * q.c0) / safe
    outside = ~((R0 >= 0) & (R0 <= A) & (A <= 1))
    if outside.any():
        R0[outside], A[outside] = _best_on_edges(q.take((outside,)))
    least[:] = q.value(R0, A)


def _best_on_edges(q: Quadratic) -> tuple[FloatArray, FloatArray]:
    level = np.clip((q.c0 + q.c1) / np.maximum(q.h00 + 2 * q.h01 + q.h11, _TINY), 0, 1)
    starts = np.stack([np.zeros_like(level), np.clip((q.c0 - q.h01) / np.maximum(q.h00, _TINY), 0, 1), level])
    ceilings = np.stack([np.clip(q.c1 / np.maximum(q.h11, _TINY), 0, 1), np.ones_like(level), level])
    best = q.value(starts, ceilings).argmin(axis=0)
    rows = np.arange(len(level))
    return starts[best, rows], ceilings[best, rows]


def value_at_node(h00: Any, h01: Any, h11: Any, c0: Any, c1: Any, yy: Any, R0: Any, A: Any) -> Any:
    """`Quadratic.value` of a single node, for compiled loops."""
    return max(yy - 2.0 * (c0 * R0 + c1 * A) + (h00 * R0 * R0 + 2.0 * h01 * R0 * A + h11 * A * A), 0.0)


def free_at_node(h00: Any, h01: Any, h11: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """R0 and A where Q is least, in the triangle or not."""
    det = max(h00 * h11 - h01 * h01, 0.0)
    safe = max(det, _TINY * max(h00 * h11, _TINY))
    return (h11 * c0 - h01 * c1) / safe, (h00 * c1 - h01 * c0) / safe


def best_at_node(h00: Any, h01: Any, h11: Any, c0: Any, c1: Any) -> tuple[Any, Any, bool, bool]:
    """`best_on_triangle` of a single node, for compiled loops: R0, A, and whether each is free to move there."""
    R0, A = free_at_node(h00, h01, h11, c0, c1)
    if 0.0 <= R0 <= A <= 1.0:
        return R0, A, True, True
    level = min(max((c0 + c1) / max(h00 + 2.0 * h01 + h11, _TINY), 0.0), 1.0)
    low = min(max(c1 / max(h11, _TINY), 0.0), 1.0)
    top = min(max((c0 - h01) / max(h00, _TINY), 0.0), 1.0)
    at_level = (h00 + 2.0 * h01 + h11) * level * level - 2.0 * (c0 + c1) * level
    at_low = h11 * low * low - 2.0 * c1 * low
    at_top = h00 * top * top + 2.0 * h01 * top + h11 - 2.0 * (c0 * top + c1)
    if at_low <= at_top and at_low <= at_level:
        return 0.0, low, False, low < 1.0
    if at_top <= at_level:
        return top, 1.0, top > 0.0, False
    return level, level, False, False


AT_NODE = (value_at_node, free_at_node, best_at_node)
"""For `compiled`, which wants what a function calls before it."""
