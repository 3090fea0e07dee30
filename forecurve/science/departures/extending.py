"""The likeliest of all hypotheses, columns and nodes of a sigmoid + one further term; the algebra is in `extension`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from ..compiled import compiled
from ..posterior.linear import AT_NODE, Quadratic, best_at_node, best_on_triangle, value_at_node

_ROUNDING = 1e-8  # of y'y, where the form is well conditioned
contiguous = np.ascontiguousarray  # a loop is compiled once for each layout of its arrays


class Alone(NamedTuple):
    """The sigmoid alone.

    Attributes:
        forms: of its sum of squares, (H, K) each.
        least: that sum at the best (R0, A), (H, K).
        constant, nu, rate: of the log likelihood; constant is (H,).
    """

    forms: Quadratic
    least: FloatArray
    constant: FloatArray
    nu: float
    rate: float


class Columns(NamedTuple):
    """Inner products of the columns.

    Attributes:
        on_g: with g, (H, T, K).
        total, on_y, own: with 1, with y and with themselves, (H, T).
        signs: of delta, (T,); 0 allows both.
    """

    on_g: FloatArray
    total: FloatArray
    on_y: FloatArray
    own: FloatArray
    signs: FloatArray


def on_every(rows: FloatArray, g: FloatArray) -> FloatArray:
    """Inner products of every row with every column, (H, T, K); not numpy's, whose threads wait for one another longer
    than so small a product takes.

    Args:
        rows: (H, T, N).
        g: (N, K).
    """
    found = np.empty((*rows.shape[:2], g.shape[1]))
    compiled(_product_loop, _product_rows)(rows, g, found)
    return found


def likeliest(alone: Alone, columns: Columns) -> tuple[IntArray, FloatArray]:
    """(hypothesis, column, node) of the likeliest of all, and (log likelihood, R0, A, delta) there.

    delta is 0 where the sigmoid alone is best.
    """
    at, found = np.zeros(3, dtype=np.int64), np.zeros(4)
    compiled(_extend_loop, _extend_rows, *AT_NODE)(alone, columns, at, found)
    return at, found


def _product_loop(rows: Any, g: Any, found: Any) -> None:
    """Two rows and four columns at once: as many as stay in the processor's registers."""
    size, whole = rows.shape[2], rows.shape[2] - rows.shape[2] % 4
    one, two = np.empty(g.shape[1]), np.empty(g.shape[1])
    for h in range(rows.shape[0]):
        for t in range(0, rows.shape[1], 2):
            other = min(t + 1, rows.shape[1] - 1)
            p, q = rows[h, t], rows[h, other]
            one[:] = 0.0
            two[:] = 0.0
            for n in range(0, whole, 4):
                p_a, p_b, p_c, p_d = p[n], p[n + 1], p[n + 2], p[n + 3]
                q_a, q_b, q_c, q_d = q[n], q[n + 1], q[n + 2], q[n + 3]
                g_a, g_b, g_c, g_d = g[n], g[n + 1], g[n + 2], g[n + 3]
                for k in range(len(one)):
                    a, b, c, d = g_a[k], g_b[k], g_c[k], g_d[k]
                    one[k] += p_a * a + p_b * b + (p_c * c + p_d * d)
                    two[k] += q_a * a + q_b * b + (q_c * c + q_d * d)
            for n in range(whole, size):
                p_a, q_a, g_a = p[n], q[n], g[n]
                for k in range(len(one)):
                    one[k] += p_a * g_a[k]
                    two[k] += q_a * g_a[k]
            found[h, t] = one
            found[h, other] = two


def _product_rows(rows: FloatArray, g: FloatArray, found: FloatArray) -> None:
    found[:] = rows @ g


def _extend_loop(alone: Alone, columns: Columns, at: Any, found: Any) -> None:
    """As `_extend_rows`, without arrays of the size (H, T, K).

    How little Q could be were R0 and A free costs a fraction of how little it is, and rules nearly all nodes out.
    """
    forms, plain, constant, nu, rate = alone
    on_g, total, on_y, own, signs = columns
    h00, h01, h11, c0, c1, yy = forms
    best, bound = -np.inf, np.empty(on_g.shape[2])
    for h in range(on_g.shape[0]):
        least, here_t, here_k, R0, A, delta = np.inf, 0, 0, 0.0, 0.0, 0.0
        if best > -np.inf:  # what it takes to be the likeliest
            least = 2.0 * (np.exp((constant[h] - best) / nu) - rate)
        enough = least
        for t in range(on_g.shape[1]):
            y, each = on_y[h, t], 1.0 / own[h, t]
            for k in range(len(bound)):
                g = on_g[h, t, k]
                s = total[h, t] - g
                a00, a11 = max(h00[h, k] - s * s * each, 0.0), max(h11[h, k] - g * g * each, 0.0)
                a01, b0, b1 = h01[h, k] - s * g * each, c0[h, k] - s * y * each, c1[h, k] - g * y * each
                det = a00 * a11 - a01 * a01
                explained = (a11 * b0 * b0 - 2.0 * a01 * b0 * b1 + a00 * b1 * b1) / det
                free = yy[h, k] * (1.0 - _ROUNDING) - y * y * each - explained
                bound[k] = free if det > _ROUNDING * a00 * a11 else -np.inf
            for k in range(len(bound)):
                if bound[k] >= least:
                    continue
                g = on_g[h, t, k]
                s = total[h, t] - g
                a00, a11 = max(h00[h, k] - s * s * each, 0.0), max(h11[h, k] - g * g * each, 0.0)
                a01, b0, b1 = h01[h, k] - s * g * each, c0[h, k] - s * y * each, c1[h, k] - g * y * each
                r, a, _, _ = best_at_node(a00, a01, a11, b0, b1)
                step = (y - s * r - g * a) * each
                if signs[t] == 0.0 or step * signs[t] > 0.0:
                    q = value_at_node(a00, a01, a11, b0, b1, yy[h, k] - y * y * each, r, a)
                else:
                    q, r, a, step = plain[h, k], 0.0, 0.0, 0.0
                if q < least:
                    least, here_t, here_k, R0, A, delta = q, t, k, r, a, step
        if least < enough:
            best = constant[h] - nu * np.log(rate + least / 2.0)
            at[0], at[1], at[2] = h, here_t, here_k
            found[0], found[1], found[2], found[3] = best, R0, A, delta


def _extend_rows(alone: Alone, columns: Columns, at: IntArray, found: FloatArray) -> None:
    """All at once; see `likeliest`."""
    forms, plain, constant, nu, rate = alone
    on_g, total, on_y, own, signs = columns
    on_start = total[:, :, None] - on_g
    q = Quadratic(*(form[:, None] for form in forms))
    R0, A, least = best_on_triangle(_without(q, on_start, on_g, on_y[:, :, None], own[:, :, None]))
    delta = (on_y[:, :, None] - on_start * R0 - on_g * A) / own[:, :, None]
    allowed = (delta * signs[:, None] > 0) | (signs[:, None] == 0)  # the other way the best delta is 0
    least = np.where(allowed, least, plain[:, None])
    likelihood = constant[:, None, None] - nu * np.log(rate + least / 2)
    at[:] = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    place = tuple(at)
    found[:] = likelihood[place], R0[place], A[place], delta[place] if allowed[place] else 0.0


def _without(q: Quadratic, on_start: FloatArray, on_g: FloatArray, on_y: FloatArray, own: FloatArray) -> Quadratic:
    """The quadratic form once a column is at its best for every (R0, A).

    Args:
        q: of the sigmoid alone.
        on_start, on_g, on_y: the column's inner products with 1 - g, g and y.
        own: with itself.
    """
    return Quadratic(
        h00=np.maximum(q.h00 - on_start**2 / own, 0.0),
        h01=q.h01 - on_start * on_g / own,
        h11=np.maximum(q.h11 - on_g**2 / own, 0.0),
        c0=q.c0 - on_start * on_y / own,
        c1=q.c1 - on_g * on_y / own,
        yy=q.yy - on_y**2 / own,
    )
