"""Which arm is best: what `rank` says of simulated sweeps from a part of their runs, against what is true.

Sweeps of 5 arms are drawn from the spread of one-field ablations, the seeds of an arm about it (ceilings with an sd of
.0125, as the paper's runs differ), 16,000 GPU-hours and 40 evaluations a run, AR noise. An arm's truth is its own curve
at the end, which no seed has exactly. Every run is seen to a share of its budget. Reported: how sure it was on average
that the likeliest arm is the best, and how often it is (the two should agree); arms a sweep that are dominated, and the
share of those that are within .01 of the best (under .05, by the definition); the reward that is lost by the choice, by
choosing the arm that is ahead now, and by chance.
"""

from __future__ import annotations

from typing import Any

import common
import numpy as np

from forecurve.science import SeedSpread, fit, rank
from forecurve.science.simulator import SPREADS, synthetic_run

SEED = 70_000
ARMS, BUDGET, EVALUATIONS, START = 5, 16_000.0, 40, 0.2
SEED_SD = np.array([0.0125, 0.1, 0.2])  # of A, ln B, ln C_mid
SHARES = (0.15, 0.25, 0.5)
WITHIN = 0.01


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__, runs=100)
    made.add_argument("--seeds", type=int, nargs="*", default=[1, 3], help="of an arm")
    asked = made.parse_args()
    rows = []
    for seeds in asked.seeds:
        found: dict[float, list[dict[str, float]]] = {share: [] for share in SHARES}
        for at in range(asked.runs):
            truth, sweep = _sweep(np.random.default_rng(SEED + at), seeds)
            for share in SHARES:
                found[share].append(_said(truth, sweep, share))
        common.note(f"{seeds} seeds: {asked.runs} sweeps")
        rows += [{"seeds": seeds, "seen": share, **_mean(every)} for share, every in found.items()]
    if asked.json:
        common.answer({"rows": rows})
        return
    common.table(list(rows[0]), (list(row.values()) for row in rows))


def _sweep(rng: np.random.Generator, seeds: int) -> tuple[dict[str, float], dict[str, list[Any]]]:
    """Of each arm its true reward at the end, and its runs."""
    truth, runs = {}, {}
    for at, theta in enumerate(SPREADS["siblings"].draw(rng, ARMS)):
        name = f"arm {at}"
        ceiling, rate, middle = theta[0], np.exp(theta[1]), np.exp(theta[2])
        truth[name] = float(START + (ceiling - START) / (1 + (middle / BUDGET) ** rate))
        runs[name] = [
            synthetic_run(
                theta + SEED_SD * rng.standard_normal(3),
                START,
                rng,
                horizon=BUDGET,
                evaluations=EVALUATIONS,
                noise="ar",
            ).curve
            for _ in range(seeds)
        ]
    return truth, runs


def _said(truth: dict[str, float], sweep: dict[str, list[Any]], share: float) -> dict[str, float]:
    early = {name: [fit(run.until(share * BUDGET)) for run in runs] for name, runs in sweep.items()}
    ranks = rank(early, BUDGET, seed_sd=SeedSpread(SEED_SD[0]))
    best, first = max(truth.values()), ranks[0]
    now = {name: np.mean([one.curve.reward[-3:].mean() for one in runs]) for name, runs in early.items()}
    ahead = max(now, key=lambda name: now[name])
    out = [one for one in ranks if one.dominated]
    return {
        "P(best) said": first.p_best,
        "best": float(truth[first.arm] == best),
        "dominated": float(len(out)),
        "of those within": float(sum(truth[one.arm] >= best - WITHIN for one in out)),
        "lost": best - truth[first.arm],
        "lost by who leads": best - truth[ahead],
        "lost by chance": best - float(np.mean(list(truth.values()))),
    }


def _mean(every: list[dict[str, float]]) -> dict[str, float]:
    mean = {name: float(np.mean([one[name] for one in every])) for name in every[0]}
    mean["of those within"] = mean["of those within"] / max(mean["dominated"], 1e-9)
    return mean


if __name__ == "__main__":
    main()
