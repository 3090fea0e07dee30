"""When will the ceiling be known? A look ahead at what further evaluations would tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..posterior.prior import C_MID_REACH
from ..posterior.sigmoid import log_compute, rise
from ..values import SDS_TO_A_SIDE, band_of
from .evaluations import evaluations_on_curve

if TYPE_CHECKING:
    from .fit import Fit

_STEPS = 40
_RECENT = 1000  # evaluations whose residuals tell how they hang together
_SCENARIOS = 63  # fewer make the answer jump between posteriors that hardly differ


def decide_at(fit: Fit) -> float | None:
    """Compute at which the data would at least halve the sd of A, if evaluations go on as of late.

    For several futures drawn from the posterior, the information of the coming evaluations (linearised at that draw)
    is added to the posterior's precision until A is narrow enough; the median over the futures is the answer.

    Returns:
        Compute in the curve's unit; the present when A is identified already; None when half of the futures need
        more than 20 times the present compute.
    """
    from .fit import IDENTIFIED

    now = fit.curve.now
    if fit.identified["A"] >= IDENTIFIED:
        return now
    p = fit.posterior
    sample = np.stack([p.A, p.R0, np.log(p.B), np.log(p.C_mid)])
    covariance = np.cov(sample) + 1e-12 * np.eye(4)
    goal = covariance[0, 0] * (1 - IDENTIFIED) / max(1 - fit.identified["A"], 1e-9)
    edges = now * np.geomspace(1.0, C_MID_REACH, _STEPS + 1)
    counts = np.diff(edges) / fit.curve.recent_gap
    noise = evaluation_noise(fit) / fit.curve.width**2
    order = np.argsort(p.A)
    chosen = order[(np.linspace(0.1, 0.9, _SCENARIOS) * len(order)).astype(int)]
    answers = [_first_enough(sample[:, at], covariance, edges, counts / noise, goal) for at in chosen]
    answer = float(np.median(answers))
    return None if not np.isfinite(answer) else answer


def evaluation_noise(fit: Fit) -> float:
    """Variance of one evaluation as good as white, in the reward's own scale squared.

    The noise is the spread of an evaluation's band beyond that of the curve, where the curve is known best: at the
    present, where neither another law of the rise nor a run's leaving its curve has a say. Evaluations that hang
    together tell less than their number, by (1 + rho) / (1 - rho) with rho the lag-1 correlation of the residuals,
    shrunk to 0 as if three more evaluations had shown none.
    """
    here = np.array([fit.curve.now])
    evaluation = band_of(here, np.clip(evaluations_on_curve(fit, here), *fit.curve.bounds)).at(0)
    curve = fit.predict(here).at(0)
    stationary = (evaluation.width**2 - curve.width**2) / (2 * SDS_TO_A_SIDE) ** 2
    least = float(np.median(fit.curve.noise.variance)) / 4  # a band cut off at the end of the range says too little
    compute, reward = fit.curve.compute[-_RECENT:], fit.curve.reward[-_RECENT:]
    residual = reward - np.median(fit.all_draws.reward_at(compute), axis=1)
    total = float(residual @ residual)
    rho = float(residual[1:] @ residual[:-1]) / (total * (1 + 3 / len(residual))) if total > 0 else 0.0
    rho = min(max(rho, 0.0), 0.9)
    return max(stationary, least) * (1 + rho) / (1 - rho)


def _first_enough(
    theta: FloatArray, covariance: FloatArray, edges: FloatArray, weights: FloatArray, goal: float
) -> float:
    """Where the variance meets the goal; within a step it is taken to fall evenly, by the log of compute."""
    gradient = _gradient(theta, np.sqrt(edges[1:] * edges[:-1]))  # (steps, 4)
    information = np.cumsum(weights[:, None, None] * gradient[:, :, None] * gradient[:, None, :], axis=0)
    # I + R' information R, in place of two inverses: it has one however much evaluations close together tell
    root = _root(covariance)
    told, along = np.linalg.eigh(root.T @ information @ root)
    later = ((root[0] @ along) ** 2 / (1 + np.maximum(told, 0))).sum(axis=1)
    variances = np.concatenate([covariance[:1, 0], later])  # at each edge
    enough = np.flatnonzero(variances <= goal)
    if not len(enough):
        return np.inf
    step = slice(max(enough[0] - 1, 0), enough[0] + 1)
    return float(np.exp(np.interp(-goal, -variances[step], np.log(edges[step]))))


def _root(covariance: FloatArray) -> FloatArray:
    """R with R R' the covariance, (4, 4)."""
    spread, along = np.linalg.eigh(covariance)
    return np.asarray(along * np.sqrt(np.maximum(spread, 0)))


def _gradient(theta: FloatArray, compute: FloatArray) -> FloatArray:
    """dR / d(A, R0, ln B, ln C_mid) at each compute: (N, 4)."""
    A, R0, log_b, log_mid = theta
    log_c = log_compute(compute)
    g = rise(log_c, np.array([log_b]), np.array([log_mid]))[:, 0]
    slope = (A - R0) * g * (1 - g) * np.exp(log_b)
    return np.stack([g, 1 - g, slope * (log_c - log_mid), -slope], axis=1)
