"""Attribution looked at again and again while a sweep runs: how often is a wrong claim ever made?

    python benchmarks/attribution_looks.py [--runs N] [--looks N] [--json]

A comparison holds its error for one look, and a page is looked at on the way. Here each sweep of
benchmarks/attribution.py (a control and 7 arms, every run simulated and fitted in full) is judged at N moments by what
its runs had shown by then. `in step`: all runs go on together, from .2 of their budget to all of it. `in turn`: arm
after arm, the control first, as on a machine that has room for one: some arms are through, one is under way, the others
have not begun.

`ever` is the share of sweeps with a wrong claim at any look, `last` at the last. Of the `mixed` sweeps: how often an
arm that did change has its right claim at the last look (`right`), the median share of the budget at which it was first
made (`from`), and how many right claims were taken back on the way for each one that stands (`taken back`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np
from attribution import LAST, LEVEL, LOG_MIDS, RECIPES, ROPE, SEED_LOG_MID, SWEEPS, SeedEffect, Shift, simulate
from common import answer_rows, note, parser

from forecurve.science import Curve, fit
from forecurve.science.attribution.comparison import ArmVerdict
from forecurve.science.attribution.judge import Rules, judge
from forecurve.science.attribution.runs import Run, run_of
from forecurve.science.attribution.seeds import CEILING_SPREAD, COMPUTE_SPREAD

FIRST = 0.2
LEAST = 3  # evaluations before a run is fitted
RULES = Rules(ROPE, LEVEL, CEILING_SPREAD, COMPUTE_SPREAD)
CELLS = (
    *(("null", tau, seeds) for tau in (0.005, 0.0125, 0.018) for seeds in (1, 3)),
    *(("wide", 0.0125, seeds) for seeds in (1, 3)),
    *(("edge", 0.0125, seeds) for seeds in (1, 3)),
    *(("mixed", 0.0125, seeds) for seeds in (1, 3)),
)


@dataclass
class Tally:
    """Of one cell."""

    sweeps: int = 0
    ever: int = 0
    last: int = 0
    changed: int = 0
    first_right: list[float] = field(default_factory=list)
    taken_back: int = 0
    right: int = 0

    def row(self, cell: tuple[str, float, int], order: str) -> dict[str, object]:
        """For the table."""
        kind, tau, seeds = cell
        return {
            "sweep": kind, "seed sd": tau, "seeds": seeds, "order": order, "sweeps": self.sweeps,
            "ever": self.ever / self.sweeps, "last": self.last / self.sweeps,
            "right": self.right / self.changed if self.changed else None,
            "from": median(self.first_right) if self.first_right else None,
            "taken back": self.taken_back / self.right if self.right else None,
        }  # fmt: skip


def draw_sweep(rng: np.random.Generator, kind: str, tau: float, seeds: int) -> list[list[Curve]]:
    """Whole curves of the control and the arms."""
    A, B, mid = RECIPES[int(rng.integers(len(RECIPES)))]
    wandering = bool(rng.integers(2))
    spread = SeedEffect(tau, LOG_MIDS.get(kind, SEED_LOG_MID))
    return [
        [
            simulate(rng, A + shift.A + e[0], B * np.exp(e[2]), mid * np.exp(shift.log_mid + e[1]), wandering)
            for e in spread.draw(rng, seeds)
        ]
        for shift in (Shift(), *SWEEPS[kind])
    ]


def shares(order: str, looks: int, arms: int) -> np.ndarray:
    """How much of its budget each arm has spent at each look, (looks, arms)."""
    if order == "in step":
        return np.repeat(np.linspace(FIRST, 1, looks)[:, None], arms, axis=1)
    spent = np.linspace(1 + FIRST, arms, looks)[:, None]  # in budgets; the control is through
    return np.clip(spent - np.arange(arms), 0, 1)


class Seen:
    """Fits of what a curve had shown, each made once."""

    def __init__(self) -> None:
        self._runs: dict[tuple[int, int], Run] = {}

    def upto(self, curve: Curve, share: float) -> Run | None:
        """None while there is too little to fit."""
        size = int((curve.compute <= share * LAST * (1 + 1e-9)).sum())
        if size < LEAST:
            return None
        key = id(curve), size
        if key not in self._runs:
            shown = Curve(curve.compute[:size], curve.reward[:size], prompts=1000, samples=16, unit=curve.unit)
            self._runs[key] = run_of(fit(shown))
        return self._runs[key]


def verdicts(sweep: list[list[Curve]], spent: np.ndarray, seen: Seen) -> dict[int, ArmVerdict]:
    """By arm, of those that have begun."""
    arms: dict[str, list[Run]] = {}
    for at, curves in enumerate(sweep):
        runs = [run for curve in curves if (run := seen.upto(curve, float(spent[at]))) is not None]
        if runs:
            arms[str(at)] = runs
    if "0" not in arms or len(arms) < 2:
        return {}
    return {int(arm.arm): arm for arm in judge(arms, "0", RULES, "GPU-hours").arms}


def is_wrong(said: ArmVerdict, shift: Shift) -> bool:
    """A claim of a difference that is none, or that points the wrong way."""
    if said.verdict == "ceiling":
        return abs(shift.A) <= ROPE or (said.direction == "up") != (shift.A > 0)
    if said.verdict == "efficiency":
        return shift == Shift() or (shift.log_mid != 0 and (said.direction == "slower") != (shift.log_mid > 0))
    return False


def is_right(said: ArmVerdict | None, shift: Shift) -> bool:
    """The claim that is due to the arm."""
    if said is None:
        return False
    return said.verdict == ("ceiling" if abs(shift.A) > ROPE else "efficiency") and not is_wrong(said, shift)


def watch_one(tally: Tally, kind: str, sweep: list[list[Curve]], spent: np.ndarray, seen: Seen) -> None:
    """Judge one sweep at every look."""
    looks = [verdicts(sweep, row, seen) for row in spent]
    shifts = dict(enumerate(SWEEPS[kind], start=1))
    wrong = [any(is_wrong(said, shifts[at]) for at, said in look.items()) for look in looks]
    tally.sweeps += 1
    tally.ever += any(wrong)
    tally.last += wrong[-1]
    for at, shift in shifts.items():
        if abs(shift.A) <= ROPE and not shift.log_mid:
            continue
        course = [is_right(look.get(at), shift) for look in looks]
        tally.changed += 1
        tally.right += course[-1]
        tally.taken_back += sum(before and not after for before, after in pairwise(course))
        if course[-1]:
            tally.first_right.append(float(spent[course.index(True), at]))


def main() -> None:
    """Run every cell in both orders and print the table."""
    options = parser(__doc__, runs=60)
    options.add_argument("--looks", type=int, default=9, help="looks at a sweep")
    asked = options.parse_args()
    rng = np.random.default_rng(3)
    rows = []
    for cell in CELLS:
        kind, tau, seeds = cell
        tallies = {"in step": Tally(), "in turn": Tally()}
        for _ in range(asked.runs):
            sweep, seen = draw_sweep(rng, kind, tau, seeds), Seen()
            for order, tally in tallies.items():
                watch_one(tally, kind, sweep, shares(order, asked.looks, len(sweep)), seen)
        rows += [tally.row(cell, order) for order, tally in tallies.items()]
        note(f"{cell}: {rows[-2]['ever']:.3f} and {rows[-1]['ever']:.3f} ever wrong")
    answer_rows(rows, asked.json)


if __name__ == "__main__":
    main()
