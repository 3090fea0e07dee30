"""What a plan holds of each run: where it stands among the others, and how far it is to go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..values import Estimate, jsonable


@dataclass(frozen=True)
class Allocation:
    """Compute for one arm: run it from where it is to `to`.

    Attributes:
        kind: "look" (its evaluations help to choose) or "finish" (the chosen arm to its end).
        value: expected gain of the choice by looking, or of the chosen arm's reward by finishing it.
        stop: compute on the way at which to plan anew; `to` where that is the next place to think.
    """

    arm: str
    start: float
    to: float
    kind: str
    value: float
    reason: str
    stop: float

    @property
    def spend(self) -> float:
        """Compute that it takes."""
        return self.to - self.start

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; `start` is called `from`."""
        row = {"arm": self.arm, "from": self.start, "to": self.to, "spend": self.spend, "kind": self.kind}
        row["stop"] = self.stop
        return dict(jsonable({**row, "value": self.value, "reason": self.reason}))


@dataclass(frozen=True)
class Outlook:
    """Where one run stands among the others.

    Attributes:
        arm: its name.
        now: compute spent.
        end: reward at the horizon.
        gain: end minus the reward now.
        p_best: P(it ends highest). Where an arm has several seeds this and the next two are of arms, by the mean of all
            the seeds that each might have.
        p_within_delta: P(it ends within delta of the highest).
        dominated: whether it can be dropped: that is under 5 %, and all that are dropped leave an arm within
            delta of the highest with 95 %.
        identified: share of the precision of its ceiling that comes from its own data.
        misfit: why one sigmoid is the wrong curve, or None.
        seed_of: the arm of which it is one of several seeds, or None.
    """

    arm: str
    now: float
    end: Estimate
    gain: Estimate
    p_best: float
    p_within_delta: float
    dominated: bool
    identified: float
    misfit: str | None
    seed_of: str | None = None

    @property
    def called(self) -> str:
        """The name of its arm: its own where that has no other seeds."""
        return self.arm if self.seed_of is None else self.seed_of

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        row: dict[str, Any] = {"arm": self.arm, "seed_of": self.seed_of, "now": self.now}
        row |= {"end": self.end.to_dict(), "gain": self.gain.to_dict()}
        row |= {"p_best": self.p_best, "p_within_delta": self.p_within_delta, "dominated": self.dominated}
        return dict(jsonable({**row, "identified_A": self.identified, "misfit": self.misfit}))
