"""An e-process against falls: evidence that may be looked at after every evaluation.

If the forecast holds, the innovations z are independent standard normals, and for any drift d and start s

    prod_{r = s..t} exp(-d z_r - d^2 / 2)

has expectation 1 whenever it is read. So has the average over drifts and starts, E_t; by Ville's inequality it ever
exceeds 1/alpha with probability at most alpha, however often it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import BoolArray, FloatArray

DRIFTS = (0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True)
class Evidence:
    """Largest e-value so far, 1 from the start, and the evaluation from which that fall most likely began."""

    peak: float
    start: int


def evidence(z: FloatArray, horizon: int, counts: BoolArray) -> Evidence:
    """The e-process of one run's innovations, shape (H,).

    Args:
        z: innovations.
        horizon: evaluations among which a start is looked for first.
        counts: evaluations at which the evidence is read off, (H,). Leaving some out only makes it rarer to exceed a
            threshold.
    """
    if not counts.any():
        return Evidence(1.0, 0)
    path = e_process(z[None, :], horizon)[0]
    at = int(np.where(counts, path, -np.inf).argmax())
    peak = min(max(path[at], 0.0), 700.0)  # before any evidence an e-value is 1, which is the largest until it grows
    return Evidence(float(np.exp(peak)), likely_start(z[: at + 1], horizon))


def without_any_one(z: FloatArray, horizon: int, counts: BoolArray) -> FloatArray:
    """Log of the largest e-value so far after each evaluation, the least there is whichever one is left out, (H,).

    It never falls: with all of them is among what the least is of. Arguments as of `evidence`.
    """
    everyone = np.ones((1, len(z)), dtype=bool)
    kept = np.concatenate([everyone, ~np.eye(len(z), dtype=bool)])
    paths = e_process(np.broadcast_to(z, kept.shape), horizon, kept)
    read = np.where(counts, np.maximum(paths, 0.0), 0.0)  # before any evidence an e-value is 1
    return np.asarray(np.maximum.accumulate(read, axis=1).min(axis=0))


def e_process(z: FloatArray, horizon: int, kept: BoolArray | None = None) -> FloatArray:
    """log E_t for many runs at once: (runs, H) -> (runs, H).

    With bets w_s opened at every s, the sum over s <= t obeys M_t = (M_{t-1} + w_t) exp(-d z_t - d^2 / 2); without the
    last factor where an evaluation is not `kept`.
    """
    weight = start_weights(z.shape[1], horizon)
    waiting = np.log(np.maximum(1.0 - np.cumsum(weight), 1e-300))  # bets that are not opened yet stand at 1
    drifts = np.array(DRIFTS)
    opened = np.full((z.shape[0], len(drifts)), -np.inf)
    path = np.empty(z.shape)
    for t in range(z.shape[1]):
        growth = -drifts * z[:, t, None] - drifts**2 / 2
        opened = np.logaddexp(opened, np.log(weight[t])) + (growth if kept is None else growth * kept[:, t, None])
        path[:, t] = np.logaddexp(np.logaddexp.reduce(opened, axis=1) - np.log(len(drifts)), waiting[t])
    return path


def likely_start(z: FloatArray, horizon: int) -> int:
    """The start whose best bet has grown most by the end of z."""
    drifts = np.array(DRIFTS)[:, None]
    growth = np.cumsum((-drifts * z - drifts**2 / 2)[:, ::-1], axis=1)[:, ::-1]  # from each start to the end
    return int((growth.max(axis=0) + np.log(start_weights(len(z), horizon))).argmax())


def start_weights(size: int, horizon: int) -> FloatArray:
    """Prior weight of each start time: 0.9 evenly over the horizon, the rest over all that comes later."""
    index = np.arange(1, size + 1)
    later = 0.1 * horizon / np.maximum(index * (index - 1.0), 1.0)
    return np.where(index <= horizon, 0.9 / horizon, later)
