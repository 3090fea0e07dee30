"""Runs on which the advice is replayed: simulated with a known truth, or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from forecurve.curve_files import read_curves
from forecurve.science import Curve, Siblings, advise, fit
from forecurve.science.fitting.outcome import tail_size
from forecurve.science.simulator import SPREADS, synthetic_run

SEED = 30_000
PAST_SEED = 40_000
PAST = 8  # finished runs of the same kind that a sibling prior is made of
START = 0.2
BUDGET, EVALUATIONS = 16_000.0, 40
SPARSE_BUDGET, SPARSE_EVALUATIONS, SPARSE_PROMPTS = 32_000.0, 12, 500
LEAST_POINTS = 10


class Case(NamedTuple):
    """A run at full length, its worth at any of its evaluations (by index), its place among siblings, if any; `noise`
    is the standard error of a difference of two worths."""

    curve: Curve
    worth: Callable[[int], float]
    siblings: Siblings | None
    at: int | None
    noise: float = 0.0

    def advised(self, upto: float, deltas: Sequence[float]) -> dict[float, str]:
        """The advice after so much compute, for each least gain that matters."""
        budget, early = self.curve.now, self.curve.until(upto)
        prior = self.siblings.prior(self.at) if self.siblings else "none"
        found = fit(early, prior=prior)
        told = self.siblings.hindsight(found, budget, self.at) if self.siblings else None
        return {delta: advise(found, budget=budget, delta=delta, hindsight=told).action for delta in deltas}


class Simulated(NamedTuple):
    """A run and its true curve at the evaluations."""

    curve: Curve
    truth: np.ndarray


def synthetic(prior: str, runs: int, kinds: Sequence[str]) -> Iterator[tuple[str, list[Case]]]:
    """These kinds of simulated runs, all of them where none is named."""
    for name in kinds or KINDS:
        draw = KINDS[name]
        past = HEALTHY.get(name, draw)  # past runs are finished ones that went well
        known = [past(np.random.default_rng(PAST_SEED + at)).curve for at in range(PAST if prior == "siblings" else 0)]
        siblings = Siblings(known) if known else None
        yield name, [_case(draw(np.random.default_rng(SEED + at)), siblings) for at in range(runs)]


def _case(made: Simulated, siblings: Siblings | None) -> Case:
    return Case(made.curve, lambda at: float(made.truth[at]), siblings, None)


def recorded(files: Sequence[Path], prior: str, runs: int) -> Iterator[tuple[str, list[Case]]]:
    """Runs of at least LEAST_POINTS evaluations; a random choice where there are more than `runs`.

    With the prior "siblings" the other series of a file are past runs at full length; copies of one run count once.
    """
    for file in files:
        curves = [curve for curve in read_curves(file) if curve.points >= LEAST_POINTS]
        chosen = np.random.default_rng(SEED).permutation(len(curves))[:runs]
        if len(chosen):
            siblings = Siblings(curves) if prior == "siblings" else None
            yield file.stem, [_recorded_case(curves[at], siblings, int(at)) for at in sorted(chosen)]


def _recorded_case(curve: Curve, siblings: Siblings | None, place: int) -> Case:
    window = tail_size(curve.points)
    noise = float(np.sqrt(2 / window) * _scatter(curve.reward[curve.points // 2 :]))
    return Case(curve, lambda at: float(curve.reward[max(at + 1 - window, 0) : at + 1].mean()), siblings, place, noise)


def _scatter(reward: np.ndarray) -> float:
    """Standard deviation of an evaluation about its neighbours, white noise taken for granted."""
    aside = reward[1:-1] - (reward[:-2] + reward[2:]) / 2
    return float(np.sqrt(np.mean(aside**2) / 1.5))


# --- kinds of simulated runs ---


def _of_spread(spread: str) -> Callable[[np.random.Generator], Simulated]:
    def draw(rng: np.random.Generator) -> Simulated:
        theta = SPREADS[spread].draw(rng, 1)[0]
        run = synthetic_run(theta, START, rng, horizon=BUDGET, evaluations=EVALUATIONS, noise="ar").curve
        return Simulated(run, _sigmoid(theta, run.compute))

    return draw


def _better(rng: np.random.Generator) -> Simulated:
    """A ceiling of .06 above the siblings', three of their standard deviations, and 1.7 times as slow."""
    theta = SPREADS["siblings"].draw(rng, 1)[0] + np.array([0.06, 0.0, np.log(1.7)])
    run = synthetic_run(theta, START, rng, horizon=BUDGET, evaluations=EVALUATIONS, noise="ar").curve
    return Simulated(run, _sigmoid(theta, run.compute))


def _sparse(rng: np.random.Generator) -> Simulated:
    theta = SPREADS["siblings"].draw(rng, 1)[0]
    compute = np.linspace(0.0, SPARSE_BUDGET, SPARSE_EVALUATIONS + 1)
    return _counted(compute, _sigmoid(theta, compute), SPARSE_PROMPTS, 1, rng)


def _fallen(recovers: bool) -> Callable[[np.random.Generator], Simulated]:
    """At 25 to 60 % of the budget 40 to 100 % of what was gained is lost from one evaluation to the next.

    A recovery begins after 5 to 60 % of what is left of the budget (uniform, so as not to lean on the model's own
    log-uniform wait) and closes the distance exponentially, with a time of 2 to 10 % of the budget.
    """

    def draw(rng: np.random.Generator) -> Simulated:
        run, healthy = _of_spread("siblings")(rng)
        fell = rng.uniform(0.25, 0.6) * BUDGET
        lost = rng.uniform(0.4, 1.0)
        wait, pace = rng.uniform(0.05, 0.6) * (BUDGET - fell), rng.uniform(0.02, 0.1) * BUDGET
        back = np.exp(-np.maximum(run.compute - fell - wait, 0.0) / pace) if recovers else 1.0
        truth = healthy - (healthy - START) * lost * back * (run.compute > fell)
        reward = np.clip(run.reward + truth - healthy, 0.0, 1.0)
        return Simulated(Curve(run.compute, reward, unit=run.unit, prompts=1000, samples=16), truth)

    return draw


def _stuck(starts: bool) -> Callable[[np.random.Generator], Simulated]:
    """Pass rate 0 from the first evaluation on, for good or until 5 to 80 % of the budget; 500 prompts x 4."""

    def draw(rng: np.random.Generator) -> Simulated:
        A, B, log_mid = SPREADS["siblings"].draw(rng, 1)[0]
        compute = np.linspace(0.0, BUDGET, EVALUATIONS + 1)
        idle = rng.uniform(0.05, 0.8) * BUDGET
        truth = np.zeros(len(compute))
        if starts:
            later = compute > idle
            truth[later] = A / (1 + (np.exp(log_mid) / (compute[later] - idle)) ** np.exp(B))
        return _counted(compute, truth, 500, 4, rng)

    return draw


def _sigmoid(theta: np.ndarray, compute: np.ndarray) -> np.ndarray:
    A, B, C_mid = theta[0], np.exp(theta[1]), np.exp(theta[2])
    return np.concatenate([[START], START + (A - START) / (1 + (C_mid / compute[1:]) ** B)])


def _counted(compute: np.ndarray, truth: np.ndarray, prompts: int, samples: int, rng: np.random.Generator) -> Simulated:
    """Evaluations that are counts of independent successes."""
    reward = rng.binomial(prompts * samples, truth) / (prompts * samples)
    return Simulated(Curve(compute, reward, unit="GPU-hours", prompts=prompts, samples=samples), truth)


KINDS: dict[str, Callable[[np.random.Generator], Simulated]] = {
    "siblings": _of_spread("siblings"),
    "table": _of_spread("table"),
    "better, slower": _better,
    "sparse": _sparse,
    "fell, recovers": _fallen(True),
    "fell, stays": _fallen(False),
    "at 0, starts late": _stuck(True),
    "at 0 for good": _stuck(False),
}
HEALTHY = {name: KINDS["siblings"] for name in KINDS if name.startswith(("better", "fell", "at 0"))}
