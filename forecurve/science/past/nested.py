"""What runs in arms tell of one parameter of a further run: seeds of one arm differ less than arms do.

With j a seed of arm i:  theta_ij ~ N(alpha_i, w^2),  alpha_i ~ N(mu, b^2),  mu uniform. What the data of run ij say of
theta_ij is the likelihood L_ij on a line of bins. An arm's seeds say together

    G_i(alpha, w) = prod_j sum over bins of L_ij N(bin | alpha, w^2)

and arms say of (mu, b, w), on a lattice of them,

    p(mu, b, w | all)  =  p(b) p(w) prod_i M_i,    M_i(mu, b, w) = sum over alpha of G_i(alpha, w) N(alpha | mu, b^2) .

A further run of an arm that is not among them is N(mu, b^2 + w^2), one of arm k is N(alpha_k, w^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from ..arrays import FloatArray
from .exchangeable import log_spread
from .mixtures import log_mixed

_SHARES: FloatArray = np.geomspace(0.25, 16.0, 9)  # of a default spread


def told_by_arms(
    known: FloatArray,
    arms: Sequence[str],
    of: str | None,
    bins: FloatArray,
    centres: FloatArray,
    between: float,
    within: float,
    weight: float,
) -> tuple[float, float]:
    """Mean of the parameter for a further run, and the squared scale of the Student-t that its spread leaves.

    Args:
        known: likelihood of each run in each bin, (R, bins).
        arms: of each run.
        of: the further run's arm, None or another for one that is not among them.
        bins, centres: where theta, and alpha and mu, are looked at.
        between, within: spread of arms and of an arm's seeds before any is seen, worth `weight` arms, or seeds, each.
    """
    of_arm: dict[str, list[int]] = {}
    for at, arm in enumerate(arms):
        of_arm.setdefault(arm, []).append(at)
    own = [at for at, arm in enumerate(of_arm) if arm == of]  # one or none
    spreads_b, spreads_w = between * _SHARES, within * _SHARES
    kernel = _normals(centres.tobytes(), centres.tobytes(), between)  # [b, alpha, mu]
    within_arm = _normals(bins.tobytes(), centres.tobytes(), within)  # [w, bin, alpha]
    log_g = _log_together(known, list(of_arm.values()), within_arm)  # [w, arm, alpha]
    log_seen = log_spread(_SHARES, weight)
    log_all, log_own = _log_of_arms(log_g, kernel, own)
    log_p = log_all + log_seen[:, None, None] + log_seen[:, None]  # [b, w, mu]
    log_p -= logsumexp(log_p)
    if not own:
        return _of_new_arm(np.exp(log_p), centres, spreads_b, spreads_w)
    log_rest = log_p - log_own[:, :, 0]  # what the other arms say
    top = log_rest.max()
    reached = np.einsum("bam,bwm->wa", kernel, np.exp(log_rest - top))
    log_alpha = log_g[:, own[0]] + np.log(reached + 1e-300)
    share = np.exp(log_alpha - logsumexp(log_alpha))  # [w, alpha]
    mean = float(share.sum(axis=0) @ centres)
    precision = float(share.sum(axis=1) @ spreads_w**-2)
    return mean, float(1 / precision + share.sum(axis=0) @ (centres - mean) ** 2)


def _log_together(known: FloatArray, of_arm: Sequence[Sequence[int]], within: FloatArray) -> FloatArray:
    """Log of G_i: (w, arm, alpha)."""
    log_f = np.stack(list(log_mixed(known, within)))
    return np.stack([log_f[:, members].sum(axis=1) for members in of_arm], axis=1)


def _log_of_arms(log_g: FloatArray, kernel: FloatArray, own: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Log of M_i: of all arms together, (b, w, mu), and of each of these, (b, w, own, mu)."""
    top = log_g.max(axis=2, keepdims=True)
    every, some = [], []
    for log_m in log_mixed(np.exp(log_g - top), kernel):  # of all arms for one b, (w, arm, mu)
        log_m += top
        every.append(log_m.sum(axis=1))
        some.append(log_m[:, own])
    return np.stack(every), np.stack(some)


def _of_new_arm(share: FloatArray, mus: FloatArray, between: FloatArray, within: FloatArray) -> tuple[float, float]:
    mean = float(share.sum(axis=(0, 1)) @ mus)
    precision = (share.sum(axis=2) / (between[:, None] ** 2 + within**2)).sum()
    return mean, float(1 / precision + share.sum(axis=(0, 1)) @ (mus - mean) ** 2)


@lru_cache(maxsize=12)
def _normals(places: bytes, centres: bytes, spread: float) -> FloatArray:
    """N(place | centre, s^2) for each share s of the spread as shares of the places that sum to 1 for each centre:
    (spreads, places, centres). Every family of a backtest is asked on the same lines."""
    apart = np.frombuffer(places)[:, None] - np.frombuffer(centres)
    log = -0.5 * (apart / (spread * _SHARES)[:, None, None]) ** 2
    return np.asarray(np.exp(log - logsumexp(log, axis=1, keepdims=True)))
