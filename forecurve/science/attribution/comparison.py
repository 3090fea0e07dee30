"""Comparison: what each arm of a sweep changed, against one control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..values import Estimate, finite, jsonable
from .common_ceiling import PaperColumn
from .seeds import SeedSpread

if TYPE_CHECKING:
    import plotly.graph_objects as go

Verdict = Literal["ceiling", "efficiency", "no difference shown", "undecided"]
Direction = Literal["up", "down", "faster", "slower"]


@dataclass(frozen=True)
class Multiplier:
    """How many times less compute the arm needs for one level: C_control / C_arm, above 1 when the arm is faster.

    Attributes:
        level: the reward that both reach.
        ratio: median and 90 % interval.
        certainty: that it differs from 1, and would were the ceilings the same, once all claims of the comparison are
            accounted for.
    """

    level: float
    ratio: Estimate
    certainty: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        return {"level": self.level, **self.ratio.to_dict(), "certainty": self.certainty}


@dataclass(frozen=True)
class ArmVerdict:
    """What can be said of one arm against the control.

    Attributes:
        arm: its name.
        seeds: runs that were used.
        left_out: runs that were not, with the reason: a collapse has no ceiling.
        waiting: runs that are not counted yet: far younger than others of the arm whose ceilings are identified.
        verdict: ceiling, efficiency, no difference shown, or undecided.
        direction: up or down, faster or slower; None for the other verdicts.
        difference: of the arms' mean ceilings, arm - control, with its own 90 % interval; None without usable runs.
        simultaneous: (lower, upper): the bounds that count beside all the other claims of the comparison: one of them
            lies beyond the region where the strongest claim of the comparison would be made on that side. None while
            the arm's ceiling or the control's is not identified: then what was reached is tested, not the difference.
        certainty: that the ceiling moved by more than the region, all claims accounted for; 0 where nothing was tested.
        p_same: probability that the ceilings differ by less than the region; None where one is not identified.
        multiplier: the efficiency; None where no level can be matched.
        seeds_needed: seeds of each arm that would decide, where seeds would.
        run_to: compute to which the runs whose ceiling is unknown have to go, where compute would decide.
        seed_note: "single seed, ..." where the spread between seeds is not the arm's own.
        reason: one sentence.
        paper: what the paper's procedure says; None when only draws were given.
        run_from: compute of the furthest of the runs that have to go to `run_to`; 0 where none has.
    """

    arm: str
    seeds: int
    left_out: tuple[tuple[str, str], ...]
    waiting: tuple[str, ...]
    verdict: Verdict
    direction: Direction | None
    difference: Estimate | None
    simultaneous: tuple[float, float] | None
    certainty: float
    p_same: float | None
    multiplier: Multiplier | None
    seeds_needed: int | None
    run_to: float | None
    seed_note: str | None
    reason: str
    paper: PaperColumn | None = None
    run_from: float = 0.0

    @property
    def label(self) -> str:
        """The verdict with its direction, e.g. `ceiling down`."""
        return self.verdict if self.direction is None else f"{self.verdict} {self.direction}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; None stands for what has no number."""
        answer = {name: getattr(self, name) for name in _PLAIN}
        answer["left_out"] = [{"series": name, "misfit": misfit} for name, misfit in self.left_out]
        answer["waiting"] = list(self.waiting)
        answer["difference"] = None if self.difference is None else self.difference.to_dict()
        answer["simultaneous"] = None if self.simultaneous is None else [finite(end) for end in self.simultaneous]
        answer["multiplier"] = None if self.multiplier is None else self.multiplier.to_dict()
        answer["paper"] = None if self.paper is None else self.paper.to_dict()
        return dict(jsonable(answer))


_PLAIN = (
    "arm", "seeds", "verdict", "direction", "certainty", "p_same", "seeds_needed", "run_to", "seed_note", "reason",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Comparison:
    """Arms of a sweep against one control, with the probability of any wrong claim of a difference held at 1 - level.

    Attributes:
        control: the arm that others are compared with.
        control_seeds: its usable runs.
        control_left_out: its runs that have no ceiling, with the reason.
        control_waiting: its runs that are not counted yet, as of an arm.
        arms: one verdict an arm, in the order given.
        rope: half-width of the region of practical equivalence of the ceiling.
        level: certainty of the claims.
        unit: of compute.
        seed_spread: sd of the ceiling between seeds, as assumed (or told by past sweeps) and then learned.
        compute_spread: the same for ln compute to a level.
        replicates: runs beyond the first of an arm, from which the spreads were learned here.
        control_advice: a sentence when further seeds of the control would decide arms, or None.
        control_paper: the control's own line of the paper's procedure.
    """

    control: str
    control_seeds: int
    control_left_out: tuple[tuple[str, str], ...]
    control_waiting: tuple[str, ...]
    arms: tuple[ArmVerdict, ...]
    rope: float
    level: float
    unit: str
    seed_spread: SeedSpread
    compute_spread: SeedSpread
    replicates: int
    control_advice: str | None
    control_paper: PaperColumn | None = None

    @property
    def verdicts(self) -> dict[str, str]:
        """arm -> verdict with its direction, e.g. `ceiling down`."""
        return {arm.arm: arm.label for arm in self.arms}

    @property
    def seed_note(self) -> str:
        """How far runs of one arm lie apart, and how that is known, in a few words."""
        from .wording import spread_note

        return spread_note(self.seed_spread, self.replicates)

    @property
    def table(self) -> list[dict[str, str]]:
        """One row an arm, as text."""
        from .wording import table

        return table(self)

    @property
    def sentence(self) -> str:
        """What a colleague would say of the whole sweep."""
        from .wording import sentence

        return sentence(self)

    def to_dict(self) -> dict[str, Any]:
        """The object that `forecurve compare --json` prints; JSON-safe."""
        return {
            "control": self.control,
            "control_seeds": self.control_seeds,
            "control_left_out": [{"series": name, "misfit": misfit} for name, misfit in self.control_left_out],
            "control_waiting": list(self.control_waiting),
            "control_paper": None if self.control_paper is None else self.control_paper.to_dict(),
            "unit": self.unit,
            "rope": self.rope,
            "level": self.level,
            "seed_spread": self.seed_spread.to_dict(),
            "compute_spread": self.compute_spread.to_dict(),
            "replicates": self.replicates,
            "seed_note": self.seed_note,
            "arms": [arm.to_dict() for arm in self.arms],
            "control_advice": self.control_advice,
            "sentence": self.sentence,
        }

    def plot(self) -> go.Figure:
        """A plotly figure: differences of the ceiling over the region of equivalence, multipliers beside it."""
        from .plot import plot

        return plot(self)

    def __repr__(self) -> str:
        from .wording import text

        return text(self)
