"""An e-process against falls: evidence that may be looked at after every evaluation.

If the forecast holds, the innovations z are independent standard normals, and for any drift d and start s

    prod_{r = s..t} exp(-d z_r - d^2 / 2)

has expectation 1 whenever it is read. So has the average over drifts and starts, E_t; by Ville's inequality it ever
exceeds 1/alpha with probability at most alpha, however often it is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray

DRIFTS = (0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True, eq=False)
class Bets:
    """What R runs' bets stand at after `seen` evaluations.

    With bets w_s opened at every s, the sum over s <= t obeys M_t = (M_{t-1} + w_t) exp(-d z_t - d^2 / 2).

    Attributes:
        opened: log M of each drift, (R, D).
        weight: prior weight of the starts so far.
        horizon: evaluations among which a start is looked for first.
    """

    opened: FloatArray
    weight: float
    seen: int
    horizon: int

    @classmethod
    def none_yet(cls, runs: int, horizon: int) -> Bets:
        """Before the first evaluation."""
        return cls(np.full((runs, len(DRIFTS)), -np.inf), 0.0, 0, horizon)

    def then(self, z: FloatArray, kept: BoolArray | None = None) -> tuple[Bets, FloatArray]:
        """After one evaluation more, and log E_t, (R,); nothing is won or lost by it where it is not `kept`, (R,)."""
        drifts = np.array(DRIFTS)
        growth = -drifts * z[:, None] - drifts**2 / 2
        new = float(start_weights(self.seen + 1, self.horizon, first=self.seen)[0])
        opened = np.logaddexp(self.opened, np.log(new)) + (growth if kept is None else growth * kept[:, None])
        weight = self.weight + new
        waiting = np.log(max(1.0 - weight, 1e-300))  # bets that are not opened yet stand at 1
        after = Bets(opened, weight, self.seen + 1, self.horizon)
        return after, np.logaddexp(np.logaddexp.reduce(opened, axis=1) - np.log(len(drifts)), waiting)


@dataclass(frozen=True, eq=False)
class Evidence:
    """One run's evidence so far; what is read off only at some evaluations is the rarer to exceed a threshold.

    Attributes:
        bets: with all evaluations, and where `singly` with each of them left out, (1 + seen, D).
        log_best: the largest log e-value that was read off of each, at least 0: (1,) or (1 + seen,).
        log_peak: of all evaluations, -inf before it was read off.
        at: evaluation at which that was.
        singly: whether the evidence without each evaluation is kept too.
    """

    bets: Bets
    log_best: FloatArray
    log_peak: float
    at: int
    singly: bool

    @classmethod
    def none_yet(cls, horizon: int, *, singly: bool = False) -> Evidence:
        """Before the first evaluation."""
        return cls(Bets.none_yet(1, horizon), np.zeros(1), -np.inf, 0, singly)

    def then(self, z: float, *, counts: bool) -> Evidence:
        """After one evaluation more, at which it is read off if that `counts`."""
        bets, best, kept = self.bets, self.log_best, None
        if self.singly:  # until now nothing was left out where it is this one that will be
            bets = replace(bets, opened=np.concatenate([bets.opened, bets.opened[:1]]))
            best = np.append(best, best[0])
            kept = np.arange(len(best)) < len(best) - 1
        bets, path = bets.then(np.full(len(best), z), kept)
        if not counts:
            return replace(self, bets=bets, log_best=best)
        peak, at = (float(path[0]), self.bets.seen) if path[0] > self.log_peak else (self.log_peak, self.at)
        return replace(self, bets=bets, log_best=np.maximum(best, path), log_peak=peak, at=at)

    @property
    def peak(self) -> float:
        """Largest e-value so far; before any evidence it is 1, which is the largest until it grows."""
        return _e_value(self.log_best[0])

    @property
    def others(self) -> float:
        """The least that there is of it whichever evaluation is left out: it never falls either."""
        return _e_value(self.log_best.min())

    def start(self, z: FloatArray) -> int:
        """The evaluation from which the fall most likely began, of these that were judged."""
        return 0 if np.isneginf(self.log_peak) else likely_start(z[: self.at + 1], self.bets.horizon)


def _e_value(log: float) -> float:
    return float(np.exp(min(log, 700.0)))


def e_process(z: FloatArray, horizon: int) -> FloatArray:
    """log E_t for many runs at once: (runs, H) -> (runs, H)."""
    bets, path = Bets.none_yet(len(z), horizon), np.empty(z.shape)
    for t in range(z.shape[1]):
        bets, path[:, t] = bets.then(z[:, t])
    return path


def likely_start(z: FloatArray, horizon: int) -> int:
    """The start whose best bet has grown most by the end of z."""
    drifts = np.array(DRIFTS)[:, None]
    growth = np.cumsum((-drifts * z - drifts**2 / 2)[:, ::-1], axis=1)[:, ::-1]  # from each start to the end
    return int((growth.max(axis=0) + np.log(start_weights(len(z), horizon))).argmax())


def start_weights(size: int, horizon: int, *, first: int = 0) -> FloatArray:
    """Prior weight of each start time from the `first` on: 0.9 evenly over the horizon, the rest over all that comes
    later."""
    index = np.arange(first + 1, size + 1)
    later = 0.1 * horizon / np.maximum(index * (index - 1.0), 1.0)
    return np.where(index <= horizon, 0.9 / horizon, later)
