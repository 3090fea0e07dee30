"""Attribution: how often a verdict is wrong, and how often it sees what is there, by seeds.

    python benchmarks/attribution.py [--runs N] [--fits N] [--check N] [--past N] [--json]

A sweep has a control and 7 arms with 1, 2, 3 or 5 seeds each. Its recipe is one of four 14k to 16k GPU-hour rows of
ScaleRL's Table 1; runs are evaluated at compute 0 and at 20 places to 16,000 GPU-hours, half of the sweeps with white
noise (sd .0035), half with AR noise (sd .006, correlation .7 from evaluation to evaluation) on top. A seed moves a
run's ceiling by N(0, tau), ln C_mid by N(0, .10) and ln B by N(0, .05); tau is .005, .009, .0125 or .018 while the
comparison assumes "about .0125" throughout.

Real posterior fits are made once (`--fits` for each recipe and noise). A run of a simulated sweep is one of them, drawn
without replacement, its draws moved by what arm and seed do to A, ln B and ln C_mid: the error of a fit does not depend
on where the curve lies, to first order, which makes thousands of sweeps affordable. `--check` sweeps are simulated and
fitted in full beside it, with nothing moved.

Five kinds of sweep: `null`, all arms equal to the control; `wide`, the same with ln C_mid moved by N(0, .20), twice as
far, from seed to seed; `edge`, every arm's ceiling exactly 0.02 higher, where a claim that it moved by more than 0.02
is as easily wrong as it can be; `small`, the same on a recipe that rises by 0.2 (A .40, B 1.5, C_mid 1,280), where so
much of a ceiling moves the compute to a level by a fifth, with B and C_mid hardly moved by seeds (ln C_mid by .03);
`mixed`, ceilings moved by 0, .02, -.03, .04, -.05, and two arms that need 1.5 and 2 times the compute. An error is a
claim `ceiling` where the ceiling moved by 0.02 or less, or `efficiency` where the speed is the control's. `held` is how
many 90 % intervals of the difference of the ceilings and of the multiplier hold what was put in.

`--past N` tells each sweep what N arms of 4 seeds, whose seeds vary as its own do, say of tau (`pool_seeds`).

Beside it, on the same runs: the paper's rule (least-squares ceilings more than 0.02 apart) and the curve-only test
(Wald form of the likelihood-ratio test on the same least-squares fits at 5 %, seeds' variance ignored).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import common
import numpy as np
from scipy.stats import norm

from forecurve.science import Curve, Draws, fit, least_squares
from forecurve.science.arrays import FloatArray
from forecurve.science.attribution.comparison import Comparison
from forecurve.science.attribution.judge import Rules, judge
from forecurve.science.attribution.pool import PooledSeeds, pool_runs
from forecurve.science.attribution.runs import Run, run_of
from forecurve.science.attribution.seeds import CEILING_SPREAD, COMPUTE_SPREAD

RECIPES = ((0.610, 1.92, 2542.0), (0.595, 2.05, 2896.0), (0.605, 1.77, 2818.0), (0.590, 2.22, 3054.0))  # A, B, C_mid
SMALL = (0.400, 1.5, 1280.0)
START, LAST, POINTS = 0.2, 16_000.0, 20
WHITE, WANDERING, RHO = 0.0035, 0.006, 0.7
SEED_LOG_MID, SEED_LOG_B = 0.10, 0.05
LOG_MIDS = {"wide": 0.20, "small": 0.03}  # of the seeds, where it is another
TAUS = (0.005, 0.009, 0.0125, 0.018)
SEEDS = (1, 2, 3, 5)
ROPE, LEVEL = 0.02, 0.95
PAST_SEEDS = 4
Key = tuple[str, float, int]  # sweep, true tau, seeds


@dataclass(frozen=True)
class Shift:
    """What an arm does to the control's recipe."""

    A: float = 0.0
    log_mid: float = 0.0


SWEEPS = {
    "null": (Shift(),) * 7,
    "wide": (Shift(),) * 7,
    "edge": (Shift(A=0.02),) * 7,
    "small": (Shift(A=0.02),) * 7,
    "mixed": (
        Shift(), Shift(A=0.02), Shift(A=-0.03), Shift(A=0.04), Shift(A=-0.05),
        Shift(log_mid=float(np.log(1.5))), Shift(log_mid=float(np.log(2.0))),
    ),
}  # fmt: skip
CELLS = (
    *(("null", tau, seeds) for tau in TAUS for seeds in SEEDS),
    *(("wide", 0.0125, seeds) for seeds in SEEDS),
    *(("edge", tau, seeds) for tau in (0.0125, 0.018) for seeds in (1, 3)),
    *(("small", 0.005, seeds) for seeds in (2, 3, 5)),
    *(("mixed", tau, seeds) for tau in (0.009, 0.0125, 0.018) for seeds in SEEDS),
)
MIXED = ("0", "+.02", "-.03", "+.04", "-.05", "1.5x slower", "2x slower")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted run with its least-squares ceiling and that ceiling's standard error."""

    run: Run
    A: float
    se: float


def simulate(rng: np.random.Generator, A: float, B: float, C_mid: float, wandering: bool) -> Curve:
    """One run's evaluations."""
    compute = np.linspace(0, LAST, POINTS + 1)
    with np.errstate(divide="ignore"):
        reward = START + (A - START) / (1 + (C_mid / compute) ** B)
    noise = rng.normal(0, WHITE, POINTS + 1)
    if wandering:
        state = rng.normal(0, WANDERING)
        for at in range(POINTS + 1):
            noise[at] += state
            state = RHO * state + np.sqrt(1 - RHO**2) * rng.normal(0, WANDERING)
    return Curve(compute, np.clip(reward + noise, 0, 1), prompts=1000, samples=16, unit="GPU-hours")


def fitted(curve: Curve) -> Fitted:
    """Posterior and least squares of one run."""
    point = least_squares(curve)
    theta = np.array([point.R0, point.A, np.log(point.B), np.log(point.C_mid)])

    def at(parameters: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            g = 1 / (1 + (np.exp(parameters[3]) / curve.compute) ** np.exp(parameters[2]))
        return np.asarray(parameters[0] + (parameters[1] - parameters[0]) * g)

    step = 1e-5
    jacobian = np.stack([(at(theta + step * e) - at(theta - step * e)) / (2 * step) for e in np.eye(4)], axis=1)
    variance = point.sse / (curve.points - 4)
    return Fitted(run_of(fit(curve)), point.A, float(np.sqrt(variance * np.linalg.pinv(jacobian.T @ jacobian)[1, 1])))


Recipe = tuple[float, float, float]
Bank = dict[Recipe, dict[bool, list[Fitted]]]


def make_bank(size: int, recipes: tuple[Recipe, ...], rng: np.random.Generator) -> Bank:
    """`size` fitted runs for each recipe, without and with wandering noise."""
    return {
        recipe: {noise: [fitted(simulate(rng, *recipe, noise)) for _ in range(size)] for noise in (False, True)}
        for recipe in recipes
    }


def moved(one: Fitted, shift: Shift, seed: FloatArray) -> Fitted:
    """The run with its draws moved by its arm and by its seed's (A, ln C_mid, ln B)."""
    d = one.run.draws
    by = shift.A + seed[0]
    draws = Draws(np.clip(d.A + by, 0, 1), d.B * np.exp(seed[2]), d.C_mid * np.exp(shift.log_mid + seed[1]), d.R0)
    return Fitted(replace(one.run, draws=draws), one.A + by, one.se)


@dataclass(frozen=True)
class SeedEffect:
    """sd of what a seed does to a run."""

    A: float
    log_mid: float = SEED_LOG_MID

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """(A, ln C_mid, ln B) of each run: (size, 3)."""
        return rng.normal(0, (self.A, self.log_mid, SEED_LOG_B), (size, 3))


Sweep = dict[str, list[Fitted]]


def banked_sweep(
    bank: Bank, rng: np.random.Generator, shifts: tuple[Shift, ...], spread: SeedEffect, seeds: int
) -> Sweep:
    """A sweep of runs taken from the bank."""
    pool = bank[list(bank)[int(rng.integers(len(bank)))]][bool(rng.integers(2))]
    total = (len(shifts) + 1) * seeds
    chosen, effects = rng.choice(len(pool), total, replace=False), spread.draw(rng, total)
    arms = (Shift(), *shifts)
    runs = [moved(pool[chosen[at]], arms[at // seeds], effects[at]) for at in range(total)]
    return {_name(at): runs[at * seeds : (at + 1) * seeds] for at in range(len(arms))}


def full_sweep(
    bank: Bank, rng: np.random.Generator, shifts: tuple[Shift, ...], spread: SeedEffect, seeds: int
) -> Sweep:
    """A sweep of which every run is simulated and fitted."""
    A, B, mid = list(bank)[int(rng.integers(len(bank)))]
    wandering = bool(rng.integers(2))
    sweep: Sweep = {}
    for at, shift in enumerate((Shift(), *shifts)):
        effects = spread.draw(rng, seeds)
        sweep[_name(at)] = [
            fitted(simulate(rng, A + shift.A + e[0], B * np.exp(e[2]), mid * np.exp(shift.log_mid + e[1]), wandering))
            for e in effects
        ]
    return sweep


def _name(at: int) -> str:
    return "control" if at == 0 else f"arm{at}"


def past_seeds(bank: Bank, rng: np.random.Generator, spread: SeedEffect, arms: int) -> PooledSeeds:
    """What so many arms of past sweeps say of the spread between seeds."""
    sweeps = [banked_sweep(bank, rng, (), spread, PAST_SEEDS) for _ in range(arms)]
    return pool_runs([[one.run for one in sweep["control"]] for sweep in sweeps])


def verdicts(sweep: Sweep, known: PooledSeeds) -> Comparison:
    """Ours."""
    rules = Rules(ROPE, LEVEL, known.ceiling, known.log_compute)
    return judge({name: [one.run for one in runs] for name, runs in sweep.items()}, "control", rules, "GPU-hours")


@dataclass
class Tally:
    """Counts over the sweeps of one cell; per-arm arrays have shape (7,). `differences` and `multipliers` say of each
    90 % interval that was given whether it held the truth; of a multiplier it is known where the ceiling did not move.
    """

    sweeps: int
    any_wrong: int
    wrong_ceiling: int
    wrong_efficiency: int
    labels: list[dict[str, int]]
    wrong_way: int
    claimed: int
    naive_any: int
    wald_any: int
    naive: FloatArray
    wald: FloatArray
    differences: list[bool] = field(default_factory=list)
    multipliers: list[bool] = field(default_factory=list)


Maker = Callable[[Bank, np.random.Generator, tuple[Shift, ...], SeedEffect, int], Sweep]


def cell(maker: Maker, bank: Bank, key: Key, sweeps: int, past: int, rng: np.random.Generator) -> Tally:
    """Simulate one cell."""
    kind, tau, seeds = key
    shifts = SWEEPS[kind]
    tally = Tally(sweeps, 0, 0, 0, [{} for _ in shifts], 0, 0, 0, 0, np.zeros(len(shifts)), np.zeros(len(shifts)))
    spread = SeedEffect(tau, LOG_MIDS.get(kind, SEED_LOG_MID))
    for _ in range(sweeps):
        sweep = maker(bank, rng, shifts, spread, seeds)
        known = past_seeds(bank, rng, spread, past) if past else PooledSeeds(CEILING_SPREAD, COMPUTE_SPREAD)
        _count_ours(tally, verdicts(sweep, known), shifts)
        _count_rivals(tally, sweep, shifts)
    return tally


def _count_ours(tally: Tally, said: Comparison, shifts: tuple[Shift, ...]) -> None:
    wrong_c = wrong_e = False
    for at, (arm, shift) in enumerate(zip(said.arms, shifts, strict=True)):
        tally.labels[at][arm.label] = tally.labels[at].get(arm.label, 0) + 1
        if arm.difference is not None:
            tally.differences.append(arm.difference.lower <= shift.A <= arm.difference.upper)
        if arm.multiplier is not None and not shift.A:
            ratio = arm.multiplier.ratio
            tally.multipliers.append(ratio.lower <= np.exp(-shift.log_mid) <= ratio.upper)
        wrong_c |= arm.verdict == "ceiling" and abs(shift.A) <= ROPE
        wrong_e |= arm.verdict == "efficiency" and not shift.log_mid
        if arm.verdict == "ceiling" and shift.A:
            tally.claimed += 1
            tally.wrong_way += (arm.direction == "up") != (shift.A > 0)
        if arm.verdict == "efficiency" and shift.log_mid:
            tally.claimed += 1
            tally.wrong_way += (arm.direction == "slower") != (shift.log_mid > 0)
    tally.wrong_ceiling += wrong_c
    tally.wrong_efficiency += wrong_e
    tally.any_wrong += wrong_c or wrong_e


def _count_rivals(tally: Tally, sweep: Sweep, shifts: tuple[Shift, ...]) -> None:
    A = np.array([np.mean([one.A for one in runs]) for runs in sweep.values()])
    se = np.array([np.sqrt(np.mean([one.se**2 for one in runs]) / len(runs)) for runs in sweep.values()])
    naive = np.abs(A[1:] - A[0]) > ROPE
    wald = np.abs(A[1:] - A[0]) / np.hypot(se[1:], se[0]) > norm.ppf(0.975)
    tally.naive += naive
    tally.wald += wald
    within = np.array([abs(shift.A) <= ROPE for shift in shifts])
    unmoved = np.array([shift.A == 0 for shift in shifts])
    tally.naive_any += bool((naive & within).any())
    tally.wald_any += bool((wald & unmoved).any())


def main() -> None:
    """Run everything and print the tables."""
    parser = common.parser(__doc__, runs=60)
    parser.add_argument("--fits", type=int, default=48, help="fits for each recipe and noise, at least 40")
    parser.add_argument("--check", type=int, default=20, help="sweeps of the cell that is fitted in full")
    parser.add_argument("--past", type=int, default=0, help="arms of past sweeps that tell of the seeds")
    asked = parser.parse_args()
    began = time.perf_counter()
    size = max(asked.fits, 40)
    bank, small = (
        make_bank(size, RECIPES, np.random.default_rng(1)),
        make_bank(size, (SMALL,), np.random.default_rng(3)),
    )
    common.note(f"{2 * size * (len(bank) + len(small))} fits: {time.perf_counter() - began:.0f} s")
    rng = np.random.default_rng(2)
    tallies = {}
    for key in CELLS:
        tallies[key] = cell(banked_sweep, small if key[0] == "small" else bank, key, asked.runs, asked.past, rng)
    check = cell(full_sweep, bank, ("null", 0.0125, 2), asked.check, 0, rng) if asked.check else None
    common.note(f"all: {time.perf_counter() - began:.0f} s")
    rows = [_row(key, tally) for key, tally in tallies.items()]
    if asked.json:
        common.answer({"cells": rows, "check": _row(("null", 0.0125, 2), check) if check else None})
        return
    _print_errors(tallies, check)
    _print_power(tallies)


def _row(key: Key, tally: Tally) -> dict[str, object]:
    kind, tau, seeds = key
    shares = {
        "any_wrong": tally.any_wrong, "wrong_ceiling": tally.wrong_ceiling, "wrong_efficiency": tally.wrong_efficiency,
        "paper_rule_any_wrong": tally.naive_any, "curve_only_any_wrong": tally.wald_any,
    }  # fmt: skip
    return {
        "sweep": kind, "tau": tau, "seeds": seeds, "sweeps": tally.sweeps,
        **{name: count / tally.sweeps for name, count in shares.items()},
        "wrong_way": tally.wrong_way / max(tally.claimed, 1),
        "difference_held": _share(tally.differences), "multiplier_held": _share(tally.multipliers),
        "arms": [{label: n / tally.sweeps for label, n in labels.items()} for labels in tally.labels],
        "paper_rule": (tally.naive / tally.sweeps).tolist(),
        "curve_only": (tally.wald / tally.sweeps).tolist(),
    }  # fmt: skip


def _share(held: list[bool]) -> float | None:
    return float(np.mean(held)) if held else None


def _print_errors(tallies: dict[Key, Tally], check: Tally | None) -> None:
    print("\nProbability of any wrong claim in a sweep of 7 arms (asked: at most 5 %), in %")
    columns = f"{'sweep':6} {'true tau':>8} {'seeds':>5} | {'ours':>5} {'ceil.':>5} {'effic.':>6}"
    print(f"{columns} | {'paper rule':>10} {'curve only':>10} | {'difference':>10} {'multiplier':>10} held, in %")
    for (kind, tau, seeds), tally in tallies.items():
        print(_error_line(kind, tau, seeds, tally))
    if check is not None:
        print(_error_line("null", 0.0125, 2, check), f"  <- {check.sweeps} sweeps fitted in full")


def _error_line(kind: str, tau: float, seeds: int, tally: Tally) -> str:
    ours, ceil, effic, naive, wald = (
        100 * count / tally.sweeps
        for count in (tally.any_wrong, tally.wrong_ceiling, tally.wrong_efficiency, tally.naive_any, tally.wald_any)
    )
    rivals = f"{naive:10.1f} {wald:10.1f}" if kind not in ("edge", "small") else f"{naive:10.1f} {'':>10}"
    held = " ".join(f"{'-' if share is None else f'{100 * share:.0f}':>10}" for share in _held(tally))
    return f"{kind:6} {tau:8.4f} {seeds:5d} | {ours:5.1f} {ceil:5.1f} {effic:6.1f} | {rivals} | {held}"


def _held(tally: Tally) -> tuple[float | None, float | None]:
    return _share(tally.differences), _share(tally.multipliers)


def _print_power(tallies: dict[Key, Tally]) -> None:
    print("\nmixed sweep: verdict 'ceiling' (or, for the slower arms, 'efficiency'), in % of sweeps")
    print(
        f"{'true tau':>8} {'seeds':>5} | "
        + " ".join(f"{name:>11}" for name in MIXED)
        + " | wrong way | 'same' at 0, +.02"
    )
    for (kind, tau, seeds), tally in tallies.items():
        if kind == "mixed":
            print(_power_line(tau, seeds, tally))


def _power_line(tau: float, seeds: int, tally: Tally) -> str:
    def share(at: int, word: str) -> float:
        return 100 * sum(n for label, n in tally.labels[at].items() if label.startswith(word)) / tally.sweeps

    seen = [share(at, "ceiling" if at < 5 else "efficiency") for at in range(7)]
    same = f"{share(0, 'no difference'):6.1f} {share(1, 'no difference'):6.1f}"
    wrong = 100 * tally.wrong_way / max(tally.claimed, 1)
    return f"{tau:8.4f} {seeds:5d} | " + " ".join(f"{value:11.1f}" for value in seen) + f" | {wrong:9.2f} | {same}"


if __name__ == "__main__":
    main()
