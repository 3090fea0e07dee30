"""The compute-performance curve R(C) = R0 + (A - R0) g(C) with g(C) = 1 / (1 + (C_mid / C)^B).

Equation 1 of ScaleRL (arXiv 2510.13786): a logistic in the logarithm of compute. It is linear in R0 and A
once B and C_mid are given: R = R0 (1 - g) + A g.
"""

from __future__ import annotations

import numpy as np

from ..arrays import BoolArray, FloatArray


def log_compute(compute: FloatArray) -> FloatArray:
    """Natural logarithm of compute, -inf at 0."""
    logs = np.full(compute.shape, -np.inf)
    np.log(compute, out=logs, where=compute > 0)
    return logs


def rise(log_c: FloatArray, log_b: FloatArray, log_mid: FloatArray) -> FloatArray:
    """g for every evaluation and every parameter node.

    Args:
        log_c: log compute, shape (N,).
        log_b, log_mid: ln B and ln C_mid, shape (K,).

    Returns:
        g, shape (N, K), in [0, 1]; exactly 0 where compute is 0.
    """
    with np.errstate(over="ignore"):  # exp(710) is inf and 1 / inf is the right answer
        return np.asarray(1.0 / (1.0 + np.exp(np.exp(log_b) * (log_mid - log_c[:, None]))))


def burr_rise(log_c: FloatArray, log_b: FloatArray, log_mid: FloatArray) -> FloatArray:
    """1 - (1 + (C / C_mid)^B)^(-1/3), Burr's law: it begins as g does and ends more slowly. As `rise`."""
    with np.errstate(over="ignore", divide="ignore"):
        grown = 1.0 + np.exp(np.exp(log_b) * (log_c[:, None] - log_mid))
        return np.asarray(1.0 - np.exp(np.log(grown) / -3.0))  # faster than np.cbrt by a fifth


def reward_at(
    compute: FloatArray, A: FloatArray, B: FloatArray, C_mid: FloatArray, R0: FloatArray, *, burr: bool = False
) -> FloatArray:
    """R(C) for every compute (rows) and every draw of the parameters (columns): shape (N, K)."""
    g = (burr_rise if burr else rise)(log_compute(compute), np.log(B), np.log(C_mid))
    return R0 + (A - R0) * g


def compute_at(
    target: float | FloatArray,
    A: FloatArray,
    B: FloatArray,
    C_mid: FloatArray,
    R0: FloatArray,
    *,
    burr: BoolArray | None = None,
) -> FloatArray:
    """Compute at which the curve reaches `target`, per draw: 0 where it starts there, inf where it never does.

    Args:
        burr: which of the draws are of Burr's law, (K,); none where left out.
    """
    goal = np.broadcast_to(np.asarray(target, dtype=np.float64), A.shape)
    answer = np.full(A.shape, np.inf)
    started = goal <= R0
    answer[started] = 0.0
    between = ~started & (goal < A)
    odds = (goal[between] - R0[between]) / (A[between] - goal[between])
    if burr is not None:
        odds = np.where(burr[between], (1.0 + odds) ** 3 - 1.0, odds)  # 1 - g is 1 / (1 + odds)
    with np.errstate(over="ignore"):
        answer[between] = C_mid[between] * odds ** (1.0 / B[between])
    return answer
