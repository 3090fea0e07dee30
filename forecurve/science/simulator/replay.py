"""One sweep under one policy: who was chosen after how much compute, and what that choice was worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray
from ..checks import MIN_POINTS
from ..curves.curve import Curve
from .sweeps import Sweep

if TYPE_CHECKING:
    from .policies import Policy


class State:
    """What has been seen of a sweep so far."""

    def __init__(self, sweep: Sweep):
        self.sweep = sweep
        # an evaluation at compute 0 is measured before anything is spent
        self.points = np.array([int(track.curve.compute[0] == 0) for track in sweep.tracks])

    @property
    def arms(self) -> int:
        """Number of arms."""
        return len(self.points)

    @property
    def full(self) -> IntArray:
        """Evaluations that each arm has in all, (K,)."""
        return np.array([track.curve.points for track in self.sweep.tracks])

    @property
    def spent(self) -> FloatArray:
        """Compute spent on each arm, (K,)."""
        return np.array([self.compute_of(arm, points) for arm, points in enumerate(self.points)])

    def compute_of(self, arm: int, points: int) -> float:
        """Compute at which an arm has so many evaluations."""
        return float(self.sweep.tracks[arm].curve.compute[points - 1]) if points else 0.0

    def last(self, arm: int) -> float:
        """The arm's last evaluation; -inf before the first."""
        return float(self.sweep.tracks[arm].curve.reward[self.points[arm] - 1]) if self.points[arm] else -np.inf

    def seen(self, arm: int) -> Curve | None:
        """The arm's curve so far; None while it is too short to be one."""
        points = int(self.points[arm])
        if points < MIN_POINTS:
            return None
        curve = self.sweep.tracks[arm].curve
        return curve if points == curve.points else curve.until(self.compute_of(arm, points))

    def advance(self, arm: int, compute: float) -> None:
        """Run an arm to its first evaluation at or after `compute`, at least to its next one."""
        curve = self.sweep.tracks[arm].curve
        reached = int(np.searchsorted(curve.compute, compute * (1 - 1e-9), side="left")) + 1
        self.points[arm] = min(max(reached, int(self.points[arm]) + 1), curve.points)

    def finished(self, arm: int) -> bool:
        """Whether the arm is at its end."""
        return bool(self.points[arm] >= self.full[arm])


@dataclass(frozen=True, eq=False)
class Replay:
    """A policy's way through a sweep, one entry per moment at which it names a choice.

    Attributes:
        compute: spent over all arms, increasing, (T,).
        chosen: the arm it would take, (T,).
        regret: the best arm's final value minus that of the chosen one, (T,).
        settled: compute at which the policy itself would have stopped choosing; the total where it never says.
        total: compute spent when the replay ended; it may end before the first entry.
        blind: mean regret of a choice at random, which is all there is before the first entry.
    """

    compute: FloatArray
    chosen: IntArray
    regret: FloatArray
    settled: float
    total: float
    blind: float

    def regret_at(self, compute: float) -> float:
        """Regret of the choice at a compute: that of the last entry up to it, `blind` before the first."""
        at = int(np.searchsorted(self.compute, compute * (1 + 1e-9), side="right")) - 1
        return self.blind if at < 0 else float(self.regret[at])


def replay(sweep: Sweep, policy: Policy, *, most: float = np.inf) -> Replay:
    """Run a policy until it has no further step, or has spent `most`."""
    state = State(sweep)
    rows: list[tuple[float, int]] = []
    settled: float | None = None
    while True:
        spent = float(state.spent.sum())
        step = None if spent >= most else policy.next(state)
        choice = policy.choice(state)
        if choice is not None:
            rows.append((spent, choice))
            if settled is None and policy.settled(state):
                settled = spent
        if step is None:
            break
        state.advance(step.arm, step.compute)
    finals = np.array([track.final for track in sweep.tracks])
    chosen = np.array([arm for _, arm in rows], dtype=np.int64)
    compute = np.array([spent for spent, _ in rows])
    blind = float((sweep.best - finals).mean())
    return Replay(
        compute,
        chosen,
        sweep.best - finals[chosen],
        spent if settled is None else settled,
        spent,
        blind,
    )
