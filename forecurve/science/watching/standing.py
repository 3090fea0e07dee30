"""How a run stands to its frozen forecast after so many evaluations: what judging the next one goes on from.

All of it are values: an evaluation more makes a new standing, and the one before still stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from .evidence import Evidence
from .frozen import FrozenForecast
from .judged import Judged
from .surprise import Known, Mixture

CLIP = 4.0
_BOUNDS = np.array([np.inf, CLIP])  # sharp, robust
_KEPT = 64  # rows between two that are gone back to where a row before the last ones is another than it was


@dataclass(frozen=True, eq=False)
class Judgement:
    """What is known after so many rows, and the evidence by then.

    Attributes:
        known: of the innovations as they are, and as they are clipped.
        sharp, robust: the evidence of either.
    """

    known: Known
    sharp: Evidence
    robust: Evidence

    @property
    def seen(self) -> int:
        """Rows."""
        return self.known.seen

    def then(self, forecast: Mixture, t: int, reward: float, expected: float) -> tuple[Judgement, FloatArray]:
        """After row t of the forecast, and its two innovations, (2,)."""
        known, z = self.known.then(forecast, t, np.full(2, reward), _BOUNDS)
        below = reward < expected
        sharp = self.sharp.then(float(z[0]), counts=below)
        return Judgement(known, sharp, self.robust.then(float(z[1]), counts=below)), z


@dataclass(frozen=True, eq=False)
class Standing:
    """A run after N complete rows.

    Attributes:
        frozen: what it is judged by.
        given: compute, reward, variance and clock of each row, (4, N).
        expected, sd: the frozen forecast of each by itself, (N,).
        z: innovations, sharp and robust, (2, N).
        kept: judgements after some of the rows, the last one after all; none before the first row.
    """

    frozen: FrozenForecast
    given: FloatArray
    expected: FloatArray
    sd: FloatArray
    z: FloatArray
    kept: tuple[Judgement, ...]

    @classmethod
    def at_freeze(cls, frozen: FrozenForecast) -> Standing:
        """Before any evaluation."""
        nothing = np.empty(0)
        return cls(frozen, np.empty((4, 0)), nothing, nothing, np.empty((2, 0)), ())

    @property
    def evidence(self) -> tuple[Evidence, Evidence]:
        """Sharp and robust, of one row at least."""
        return self.kept[-1].sharp, self.kept[-1].robust

    def start(self, *, robust: bool) -> int:
        """The row from which the fall most likely began."""
        return self.evidence[robust].start(self.z[int(robust)])

    def back_to(self, frozen: FrozenForecast, rows: Judged) -> Standing:
        """After the last of the kept rows up to which nothing is another now than it was."""
        if not self.frozen.is_same(frozen):
            return Standing.at_freeze(frozen)
        given = _given(rows)
        size = min(given.shape[1], self.given.shape[1])
        differs = (given[:, :size] != self.given[:, :size]).any(axis=0)
        same = int(differs.argmax()) if differs.any() else size
        kept = tuple(one for one in self.kept if one.seen <= same)
        seen = kept[-1].seen if kept else 0
        return replace(
            self,
            given=self.given[:, :seen],
            expected=self.expected[:seen],
            sd=self.sd[:seen],
            z=self.z[:, :seen],
            kept=kept,
        )

    def through(self, rows: Judged) -> Standing:
        """After all of them, of which it has judged the first; nothing of those is worked out again."""
        seen = len(self.expected)
        if seen == rows.size:
            return self
        since = float(rows.clock[seen - 1]) if seen else 0.0
        forecast = self.frozen.mixture(rows.compute[seen:], rows.variance[seen:], rows.clock[seen:], since=since)
        expected, sd = forecast.moments()
        now = self.kept[-1] if self.kept else _at_freeze(forecast, rows.horizon)
        z, kept = np.empty((2, len(expected))), [one for one in self.kept if one.seen % _KEPT == 0]
        for t in range(len(expected)):
            now, z[:, t] = now.then(forecast, t, float(rows.reward[seen + t]), float(expected[t]))
            if now.seen % _KEPT == 0 or now.seen == rows.size:
                kept.append(now)
        return Standing(
            frozen=self.frozen,
            given=_given(rows),
            expected=np.append(self.expected, expected),
            sd=np.append(self.sd, sd),
            z=np.concatenate([self.z, z], axis=1),
            kept=tuple(kept),
        )


def _at_freeze(forecast: Mixture, horizon: int) -> Judgement:
    known = Known.at_freeze(forecast, len(_BOUNDS))
    return Judgement(known, Evidence.none_yet(horizon), Evidence.none_yet(horizon, singly=True))


def _given(rows: Judged) -> FloatArray:
    return np.stack([rows.compute, rows.reward, rows.variance, rows.clock])
