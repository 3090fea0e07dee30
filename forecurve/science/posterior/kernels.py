"""Inner loops over the evaluations.

Two passes over the evaluations make up nearly all of a fit's cost: the noise model's Kalman filter, whose gains do not
depend on the curve's parameters, and the same filter run over the curve g(C) at every node of a lattice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..compiled import compiled

HUGE = 1e150  # factors of exp(B (ln C_mid - ln C)) are kept within, so that their product is never NaN
FAR = float(np.log(HUGE))


class Filtered(NamedTuple):
    """The noise filter of H hypotheses over N evaluations; rows are hypotheses.

    Attributes:
        inverse: 1 / innovation variance, (H, N).
        gain: Kalman gain, (H, N).
        decay: correlation with the evaluation before, (H, N).
        one, reward: whitened innovations of the constant 1 and of the reward, divided by their variance, (H, N).
        sums: (H, 4): 1'M^-1 1, 1'M^-1 y, y'M^-1 y and log det M.
        last: (H, 3): the wandering part's variance, and the filtered 1 and y, all at the last evaluation.
    """

    inverse: FloatArray
    gain: FloatArray
    decay: FloatArray
    one: FloatArray
    reward: FloatArray
    sums: FloatArray
    last: FloatArray


class LatticeSums(NamedTuple):
    """Inner products under every hypothesis (rows) at every node (columns), and the filter's state of g there."""

    gg: FloatArray
    g1: FloatArray
    gy: FloatArray
    state: FloatArray

    @classmethod
    def zeros(cls, hypotheses: int, nodes: int) -> LatticeSums:
        """Before any evaluation."""
        return cls(*(np.zeros((hypotheses, nodes)) for _ in range(4)))


class Factors(NamedTuple):
    """exp(B (ln C_mid - ln C)) = middle * exp(-B (ln C - centre)).

    Attributes:
        B: exponent of each row of the lattice, (rows,).
        centre: a place in ln C.
        middle: exp(B (ln C_mid - centre)) of each node, (rows, columns).
        log_mid: ln C_mid of each node, likewise.
        reach: the largest |B (ln C_mid - centre)| of each row, (rows,); beyond FAR its factors say nothing.
    """

    B: FloatArray
    centre: float
    middle: FloatArray
    log_mid: FloatArray
    reach: FloatArray


class Odds(NamedTuple):
    """exp(B (ln C_mid - ln C)), the odds of not having risen, at N evaluations.

    Attributes:
        log_c: of each, (N,), -inf for compute 0.
        started: whether it is above, (N,).
        rates: exp(-B (ln C - centre)), (N, rows).
        apart: whether that or the row's other factors are beyond HUGE, as those of steps are: (N, rows).
        factors: of the lattice.
    """

    log_c: FloatArray
    started: BoolArray
    rates: FloatArray
    apart: BoolArray
    factors: Factors

    @classmethod
    def of(cls, log_c: FloatArray, factors: Factors) -> Odds:
        """Of evaluations at ln C, (N,), on a lattice."""
        started = np.isfinite(log_c)
        exponent = -factors.B * (np.where(started, log_c, factors.centre)[:, None] - factors.centre)
        rates = np.exp(np.clip(exponent, -FAR, FAR))
        return cls(log_c, started, rates, np.maximum(np.abs(exponent), factors.reach) > FAR, factors)


def noise_filter(
    shares: FloatArray,
    variance: FloatArray,
    decay: FloatArray,
    reward: FloatArray,
) -> Filtered:
    """Filter the constant and the reward.

    Args:
        shares: sampling variance of each evaluation, (N,).
        variance, decay: of the wandering part at each, and its correlation with the evaluation before, (H, N).
        reward: (N,).
    """
    size = variance.shape
    first = variance[:, 0]  # before the first evaluation the wandering part has its own mean and variance
    sums, last = np.zeros((size[0], 4)), np.stack([first, 0 * first, 0 * first], axis=1)
    inverse, gain, one, white = (np.empty(size) for _ in range(4))
    out = Filtered(inverse, gain, decay, one, white, sums, last)
    compiled(filter_loop, filter_rows)(shares, variance, reward, out)
    return out


def lattice_sums(
    log_c: FloatArray, factors: Factors, filtered: Filtered, into: LatticeSums, burr: bool = False
) -> None:
    """Add evaluations to the sums, in place.

    Args:
        log_c: ln C of the evaluations, (N,), -inf for compute 0.
        factors: of the lattice.
        filtered: of the same N evaluations.
        into: sums over rows * columns nodes.
        burr: g is `sigmoid.burr_rise` instead of the sigmoid's.
    """
    compiled(sums_loop, sums_rows)(Odds.of(log_c, factors), burr, filtered, into)


# --- the loops themselves: plain enough for numba ---


def filter_loop(shares: Any, own: Any, reward: Any, out: Filtered) -> None:
    """`own` is the wandering part's variance where nothing is known of it, (H, N)."""
    inverse, gain, decay, one, white, sums, last = out
    for h in range(own.shape[0]):
        variance, s1, sy = last[h, 0], last[h, 1], last[h, 2]
        for t in range(own.shape[1]):
            d = decay[h, t]
            variance = variance * d * d + own[h, t] * (1.0 - d * d)
            s1 *= d
            sy *= d
            total = variance + shares[t]
            k = variance / total
            e1, ey = 1.0 - s1, reward[t] - sy
            inverse[h, t], gain[h, t] = 1.0 / total, k
            one[h, t], white[h, t] = e1 / total, ey / total
            sums[h, 0] += e1 * e1 / total
            sums[h, 1] += e1 * ey / total
            sums[h, 2] += ey * ey / total
            sums[h, 3] += np.log(total)
            s1 += k * e1
            sy += k * ey
            variance *= 1.0 - k
        last[h, 0], last[h, 1], last[h, 2] = variance, s1, sy


_AT_ONCE = 4


def sums_loop(at_nodes: Odds, burr: Any, filtered: Filtered, into: LatticeSums) -> None:
    log_c, started, rates, apart, factors = at_nodes
    B, _, middle, log_mid, _ = factors
    inverse, gain, decay, one, reward, _, _ = filtered
    gg, g1, gy, state = into
    rows, columns = middle.shape
    nodes = rows * columns
    g = np.zeros((len(started), nodes))
    for t in range(len(started)):
        for i in range(rows):
            for j in range(columns):
                odds = rates[t, i] * middle[i, j]  # of not having risen
                if started[t]:
                    g[t, i * columns + j] = 1.0 - 1.0 / np.cbrt(1.0 + 1.0 / odds) if burr else 1.0 / (1.0 + odds)
            if started[t] and apart[t, i]:
                for j in range(columns):
                    odds = np.exp(min(max(B[i] * (log_mid[i, j] - log_c[t]), -FAR), FAR))
                    g[t, i * columns + j] = 1.0 - 1.0 / np.cbrt(1.0 + 1.0 / odds) if burr else 1.0 / (1.0 + odds)
    tail, tail_from = np.zeros((3, nodes)), len(started)
    for h in range(inverse.shape[0] - 1, -1, -1):  # one hypothesis at a time stays in the cache
        at_gg, at_g1, at_gy, at_state = gg[h], g1[h], gy[h], state[h]
        end = len(started)
        while end > 0 and decay[h, end - 1] == 0.0 and gain[h, end - 1] == 0.0:
            end -= 1
        whole = end - end % _AT_ONCE
        for t in range(0, whole, _AT_ONCE):  # so many evaluations between two looks at memory
            g_a, g_b, g_c, g_d = g[t], g[t + 1], g[t + 2], g[t + 3]
            f_a, f_b, f_c, f_d = inverse[h, t], inverse[h, t + 1], inverse[h, t + 2], inverse[h, t + 3]
            k_a, k_b, k_c, k_d = gain[h, t], gain[h, t + 1], gain[h, t + 2], gain[h, t + 3]
            d_a, d_b, d_c, d_d = decay[h, t], decay[h, t + 1], decay[h, t + 2], decay[h, t + 3]
            q_a, q_b, q_c, q_d = one[h, t], one[h, t + 1], one[h, t + 2], one[h, t + 3]
            r_a, r_b, r_c, r_d = reward[h, t], reward[h, t + 1], reward[h, t + 2], reward[h, t + 3]
            for n in range(nodes):
                s = d_a * at_state[n]
                e_a = g_a[n] - s
                s = d_b * (s + k_a * e_a)
                e_b = g_b[n] - s
                s = d_c * (s + k_b * e_b)
                e_c = g_c[n] - s
                s = d_d * (s + k_c * e_c)
                e_d = g_d[n] - s
                at_state[n] = s + k_d * e_d
                at_gg[n] += e_a * e_a * f_a + e_b * e_b * f_b + (e_c * e_c * f_c + e_d * e_d * f_d)
                at_g1[n] += e_a * q_a + e_b * q_b + (e_c * q_c + e_d * q_d)
                at_gy[n] += e_a * r_a + e_b * r_b + (e_c * r_c + e_d * r_d)
        for t in range(whole, end):
            at_g = g[t]
            f, k, d, q, r = inverse[h, t], gain[h, t], decay[h, t], one[h, t], reward[h, t]
            for n in range(nodes):
                s = d * at_state[n]
                e = at_g[n] - s
                at_gg[n] += e * e * f
                at_g1[n] += e * q
                at_gy[n] += e * r
                at_state[n] = s + k * e
        if end == len(started):
            continue
        # White noise from here on, with nothing of before in it: the same sums for every hypothesis that ends so. The
        # longest early regimes come last among hypotheses, so that from one to the next the tail only grows.
        if end > tail_from:
            tail[:], tail_from = 0.0, len(started)
        for t in range(end, tail_from):
            at_g, f, q, r = g[t], inverse[h, t], one[h, t], reward[h, t]
            for n in range(nodes):
                tail[0, n] += at_g[n] * at_g[n] * f
                tail[1, n] += at_g[n] * q
                tail[2, n] += at_g[n] * r
        tail_from = end
        for n in range(nodes):
            at_gg[n] += tail[0, n]
            at_g1[n] += tail[1, n]
            at_gy[n] += tail[2, n]
            at_state[n] = 0.0


def filter_rows(shares: Any, own: Any, reward: Any, out: Filtered) -> None:
    """`filter_loop`, all hypotheses at once."""
    inverse, gain, decay, one, white, sums, last = out
    variance, s1, sy = last.T.copy()
    for t in range(own.shape[1]):
        d = decay[:, t]
        variance = variance * d * d + own[:, t] * (1.0 - d * d)
        s1, sy = s1 * d, sy * d
        total = variance + shares[t]
        k = variance / total
        e1, ey = 1.0 - s1, reward[t] - sy
        inverse[:, t], gain[:, t] = 1.0 / total, k
        one[:, t], white[:, t] = e1 / total, ey / total
        sums += np.stack([e1 * e1 / total, e1 * ey / total, ey * ey / total, np.log(total)], axis=1)
        s1, sy, variance = s1 + k * e1, sy + k * ey, variance * (1.0 - k)
    last[:] = np.stack([variance, s1, sy], axis=1)


def sums_rows(at_nodes: Odds, burr: Any, filtered: Filtered, into: LatticeSums) -> None:
    """`sums_loop`, all nodes and hypotheses at once."""
    log_c, started, rates, apart, factors = at_nodes
    B, _, middle, log_mid, _ = factors
    inverse, gain, decay, one, reward, _, _ = filtered
    gg, g1, gy, state = into
    for t in range(len(started)):
        odds = rates[t][:, None] * middle
        if started[t] and apart[t].any():
            exact = np.exp(np.clip(B[:, None] * (log_mid - log_c[t]), -FAR, FAR))
            odds = np.where(apart[t][:, None], exact, odds)
        odds = odds.ravel()
        g = 1.0 - 1.0 / np.cbrt(1.0 + 1.0 / odds) if burr else 1.0 / (1.0 + odds)
        g = g if started[t] else np.zeros(middle.size)
        at = (slice(None), t, None)
        state *= decay[at]
        e = g - state
        gg += e * e * inverse[at]
        g1 += e * one[at]
        gy += e * reward[at]
        state += gain[at] * e
