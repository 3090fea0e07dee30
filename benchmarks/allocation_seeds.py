"""Arms of several seeds on one budget: chosen by the mean of their seeds, or each run by itself.

    python benchmarks/allocation_seeds.py --runs 32 [--jobs 2] [--seeds 3] [--json]

Sweeps of 5 arms, drawn from the spread of the paper's Table 1 (`table`) or from that of one-field ablations
(`siblings`), each with so many seeds about it (`SEED_SPREAD`), 40 evaluations a run with AR noise. They are replayed by
`next_round` with 8 places and a budget of the full compute, that of every run to its end, and of a quarter of it.

`chosen`: "by arm" as the service does it; "by run" as if each run were an arm, of which the arm of the chosen run is
taken; "evenly" is every run to the same share of its length, and the arm with the highest mean of last evaluations.
`regret` is what the best arm is worth less what the chosen one is: the ends of their own curves, which no seed has
exactly. `compute` is what was spent until it was over, as a share of the full compute, and `time` how long that took,
in lengths of one full run.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from common import note, parser, show

from forecurve.science.arrays import FloatArray
from forecurve.science.simulator import Sweep, replay_shared, synthetic_sweep
from forecurve.science.simulator.policies import Forecasts

SEED = 120_000  # of the sweeps reported; development used others
SPREADS = ("table", "siblings")
ARMS, PLACES = 5, 8
BUDGETS = (1.0, 0.25)  # of the full compute
CHOSEN = ("by arm", "by run", "evenly")


class Ended(NamedTuple):
    """One sweep; compute as a share of the full one, time in lengths of one full run."""

    regret: float
    compute: float
    time: float


def main() -> None:
    """Run and print."""
    made = parser(__doc__, runs=32)
    made.add_argument("--jobs", type=int, default=2, help="sweeps at a time, one process each")
    made.add_argument("--seeds", type=int, default=3, help="of an arm")
    asked = made.parse_args()
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        for spread in SPREADS:
            found = []
            for each in pool.map(partial(_ended, spread, asked.seeds), range(SEED, SEED + asked.runs)):
                found.append(each)
                note(f"{spread}: sweep {len(found)} of {asked.runs}")
            rows += [_row(spread, found, *setting) for setting in product(BUDGETS, CHOSEN)]
    show(rows, as_json=asked.json)


def _ended(spread: str, seeds: int, seed: int) -> dict[tuple[float, str], Ended]:
    sweep = synthetic_sweep(seed, arms=ARMS, seeds=seeds, spread=spread)
    runs = Sweep(tuple(replace(track, arm=None) for track in sweep.tracks), sweep.horizon)
    forecasts, ended = Forecasts(), {}
    for budget in BUDGETS:
        for chosen, replayed in (("by arm", sweep), ("by run", runs)):
            found = replay_shared(replayed, budget * sweep.full_cost, PLACES, forecasts)
            ended[budget, chosen] = Ended(found.regret, found.compute / sweep.full_cost, found.time)
        ended[budget, "evenly"] = Ended(_evenly(sweep, budget), budget, budget * len(sweep.tracks) / PLACES)
    return ended


def _evenly(sweep: Sweep, share: float) -> float:
    """Regret of the arm that leads."""
    last: dict[str | None, list[float]] = {}
    for track in sweep.tracks:
        last.setdefault(track.arm, []).append(track.curve.until(share * sweep.horizon).reward[-1])
    lead = max(last, key=lambda arm: np.mean(last[arm]))
    return sweep.best - next(track.final for track in sweep.tracks if track.arm == lead)


def _row(spread: str, found: list[dict[tuple[float, str], Ended]], budget: float, chosen: str) -> dict[str, Any]:
    own = np.array([each[budget, chosen] for each in found])
    beside = np.array([each[budget, "by arm"] for each in found])
    less = own[:, 0] - beside[:, 0]
    regret, compute, time = own.mean(axis=0).tolist()
    return {
        "sweeps": spread,
        "budget": budget,
        "chosen": chosen,
        "regret": regret,
        "se": _error(own[:, 0]),
        "compute": compute,
        "time": time,
        "regret more than by arm": float(less.mean()),
        "its se": _error(less),
    }


def _error(values: FloatArray) -> float:
    """Standard error of the mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


if __name__ == "__main__":
    main()
