"""What a plan takes beside the fits that it rests on, by the number of runs.

    python benchmarks/plan_cost.py [--sizes 8 30 100 300] [--json]

Synthetic sweeps, each run stopped somewhere from 6 to 40 % of the horizon, with a fifth of the sweep's whole compute to
spend. `fits` is fitting every run and looking for misfits, `plan` a plan of these fits, `anew` another of the same fits
(what they remember is there by then): that divided by the first is `ratio`. `looks` are the arms the plan looks at.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import common
import numpy as np

from forecurve import fit, plan
from forecurve.science.simulator.sweeps import SPREADS, synthetic_sweep
from forecurve.science.warm_up import warm_up

EVALUATIONS, LEAST, MOST, SHARE = 80, 0.06, 0.4, 0.2

T = TypeVar("T")


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__)
    made.add_argument("--sizes", type=int, nargs="+", default=[8, 30, 100, 300], help="runs of a sweep")
    asked = made.parse_args()
    warm_up()
    common.answer_rows([measured(spread, size) for spread in SPREADS for size in asked.sizes], asked.json)


def measured(spread: str, size: int) -> dict[str, object]:
    """One sweep."""
    sweep, rng = synthetic_sweep(3, arms=size, spread=spread, evaluations=EVALUATIONS), np.random.default_rng(0)
    curves = [track.curve.until(sweep.horizon * rng.uniform(LEAST, MOST)) for track in sweep.tracks]
    fits, fitting = timed(lambda: [fit(curve) for curve in curves])
    _, judging = timed(lambda: [each.misfit for each in fits])
    budget = SHARE * size * sweep.horizon
    _, first = timed(lambda: plan(fits, budget, horizon=sweep.horizon))
    found, again = timed(lambda: plan(fits, budget, horizon=sweep.horizon))
    looks = sum(row.kind == "look" for row in found.allocation)
    return {
        "spread": spread,
        "runs": size,
        "fits, s": fitting + judging,
        "plan, s": first,
        "anew, s": again,
        "ratio": again / (fitting + judging),
        "looks": looks,
    }


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What comes of it, and the seconds it took."""
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


if __name__ == "__main__":
    main()
