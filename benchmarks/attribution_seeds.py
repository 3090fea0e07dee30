"""Attribution that is followed: an undecided arm gets the seeds that would decide it, until none asks for more.

    python benchmarks/attribution_seeds.py [--runs N] [--rounds N] [--fits N] [--json]

A comparison says of an undecided arm how many seeds of it and of the control would decide (`seeds_needed`), and a sweep
can be extended by them (`forecurve sweep add-seeds --decide`). Whoever follows that looks again after each addition,
and adds where it is close. Sweeps are those of benchmarks/attribution.py: a control and 7 arms, drawn from a bank of
real posterior fits. They begin with `begin` seeds an arm. In each round every undecided arm that asks for seeds gets as
many as it lacks, up to 8, and the control as many as the one that lacks most. `at once`: sweeps of the same kind whose
arms all have the same seeds, together about as many runs.

`first`, `last`, `ever`: share of sweeps with a wrong claim at the first look, the last, any. `runs`: how many there are
at the end; a sweep begins with 8 or 16. `right`: of the arms that did change (`mixed`), how many have their right claim
at the first look and at the last. `open`: arms undecided at the last look.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from attribution import (
    LOG_MIDS,
    RECIPES,
    ROPE,
    SEED_LOG_MID,
    SWEEPS,
    Fitted,
    SeedEffect,
    Shift,
    make_bank,
    moved,
    verdicts,
)
from attribution_looks import is_right, is_wrong
from common import answer_rows, note, parser

from forecurve.science.attribution.comparison import Comparison
from forecurve.science.attribution.pool import PooledSeeds
from forecurve.science.attribution.seeds import CEILING_SPREAD, COMPUTE_SPREAD

MOST = 8  # seeds of an arm
SPREADS = PooledSeeds(CEILING_SPREAD, COMPUTE_SPREAD)
CELLS = tuple(
    (kind, tau, begin)
    for kind, taus in (
        ("null", (0.005, 0.0125, 0.018)),
        ("wide", (0.0125,)),
        ("edge", (0.0125,)),
        ("mixed", (0.005, 0.0125)),
    )
    for tau in taus
    for begin in (1, 2)
)
Arms = dict[str, list[Fitted]]


@dataclass
class Tally:
    """Of one cell, a number a sweep; `right` a number an arm that did change."""

    first: list[bool] = field(default_factory=list)
    last: list[bool] = field(default_factory=list)
    ever: list[bool] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    right_first: list[bool] = field(default_factory=list)
    right_last: list[bool] = field(default_factory=list)
    at_once: list[bool] = field(default_factory=list)
    right_at_once: list[bool] = field(default_factory=list)

    def row(self, cell: tuple[str, float, int]) -> dict[str, object]:
        """For the table."""
        kind, tau, begin = cell
        return {
            "sweep": kind, "seed sd": tau, "begin": begin, "sweeps": len(self.last),
            "rounds": float(np.mean(self.rounds)), "runs": float(np.mean(self.runs)),
            "first": _share(self.first), "last": _share(self.last), "ever": _share(self.ever),
            "at once": _share(self.at_once), "open": float(np.mean(self.open)),
            "right first": _share(self.right_first), "right last": _share(self.right_last),
            "right at once": _share(self.right_at_once),
        }  # fmt: skip


def _share(found: list[bool]) -> float | None:
    return float(np.mean(found)) if found else None


class Source:
    """Runs of one sweep, as many seeds of each arm as are asked for, none of them twice."""

    def __init__(self, pool: list[Fitted], kind: str, tau: float, rng: np.random.Generator):
        self._pool = [pool[at] for at in rng.permutation(len(pool))]
        self._shifts = {_name(at): shift for at, shift in enumerate((Shift(), *SWEEPS[kind]))}
        self._spread, self._rng = SeedEffect(tau, LOG_MIDS.get(kind, SEED_LOG_MID)), rng
        self.arms: Arms = {name: [] for name in self._shifts}

    def grow(self, arm: str, seeds: int) -> None:
        """So that the arm has `seeds` seeds at least."""
        while len(self.arms[arm]) < seeds:
            effect = self._spread.draw(self._rng, 1)[0]
            self.arms[arm].append(moved(self._pool.pop(), self._shifts[arm], effect))


def _name(at: int) -> str:
    return "control" if at == 0 else f"arm{at}"


def followed(source: Source, begin: int, rounds: int) -> Iterator[Comparison]:
    """What is said at each look, until no arm asks for seeds that it may have."""
    for arm in source.arms:
        source.grow(arm, begin)
    for _ in range(rounds):
        said = verdicts(source.arms, SPREADS)
        yield said
        asking = [one for one in said.arms if one.verdict == "undecided" and 0 < (one.seeds_needed or 0) <= MOST]
        before = sum(map(len, source.arms.values()))
        for one in asking:
            source.grow(one.arm, int(one.seeds_needed or 0))
            source.grow("control", int(one.seeds_needed or 0))
        if sum(map(len, source.arms.values())) == before:
            return
    yield verdicts(source.arms, SPREADS)


def _any_wrong(said: Comparison, kind: str) -> bool:
    return any(is_wrong(arm, shift) for arm, shift in zip(said.arms, SWEEPS[kind], strict=True))


def _right(said: Comparison, kind: str) -> list[bool]:
    """Of each arm that changed more than does not matter, whether it has its claim."""
    arms = zip(said.arms, SWEEPS[kind], strict=True)
    return [is_right(arm, shift) for arm, shift in arms if abs(shift.A) > ROPE or shift.log_mid]


def count(tally: Tally, looks: list[Comparison], at_once: Comparison, runs: int, kind: str) -> None:
    """One sweep into the tally."""
    wrong = [_any_wrong(said, kind) for said in looks]
    tally.first.append(wrong[0])
    tally.last.append(wrong[-1])
    tally.ever.append(any(wrong))
    tally.runs.append(runs)
    tally.rounds.append(len(looks) - 1)
    tally.open.append(sum(arm.verdict == "undecided" for arm in looks[-1].arms))
    tally.right_first += _right(looks[0], kind)
    tally.right_last += _right(looks[-1], kind)
    tally.at_once.append(_any_wrong(at_once, kind))
    tally.right_at_once += _right(at_once, kind)


def main() -> None:
    """Run everything and print the table."""
    options = parser(__doc__, runs=100)
    options.add_argument("--rounds", type=int, default=4, help="additions at most")
    options.add_argument("--fits", type=int, default=96, help="fits for each recipe and noise, at least 72")
    asked = options.parse_args()
    bank = make_bank(max(asked.fits, 72), RECIPES, np.random.default_rng(1))
    rng = np.random.default_rng(5)
    rows = []
    for cell in CELLS:
        kind, tau, begin = cell
        tally = Tally()
        for _ in range(asked.runs):
            pool = bank[RECIPES[int(rng.integers(len(RECIPES)))]][bool(rng.integers(2))]
            source = Source(pool, kind, tau, rng)
            looks = list(followed(source, begin, asked.rounds))
            runs = sum(map(len, source.arms.values()))
            alike = Source(pool, kind, tau, rng)
            for arm in alike.arms:
                alike.grow(arm, round(runs / len(alike.arms)))
            count(tally, looks, verdicts(alike.arms, SPREADS), runs, kind)
        rows.append(tally.row(cell))
        note(f"{kind} {tau} {begin}: done")
    answer_rows(rows, asked.json)


if __name__ == "__main__":
    main()
