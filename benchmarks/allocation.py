"""A whole sweep on one budget, several runs at once: what `next_round` saves beside running all runs evenly.

    python benchmarks/allocation.py --runs 24 [--jobs 2] [FILES... [--group PATTERN]] [--json]

Sweeps of 8 arms are drawn from the spread of the paper's Table 1 (`table`) or from that of one-field ablations
(`siblings`), 40 evaluations a run, with AR or white noise; FILES give recorded ones, as `planner.py` takes them. They
are replayed by `next_round` with a budget of the full compute (that of every run to its end), of half and of a quarter
of it, and with 1, 2, 4 and 8 places: runs are forecast from 4 evaluations on, the measured start included, train side
by side at one speed, and all is thought over after every evaluation, until no run is to go on.

`regret` is the best arm's end (the true one; of recorded runs the mean of the last tenth of evaluations) minus that of
the chosen one, `compute` what was spent until it was over, as a share of the full compute, `launches` how often a run
was let train that did not just before, `time` how long it took, in lengths of one full run, `to its end` how often the
choice had gone there by then, and `reached` how far it had gone, as a share of its length. `evenly` is every run to the
same share of its length, with all places full, and the highest last evaluation chosen: with a budget of 1 every run to
its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from common import note, parser, show
from recorded import ARMS, recorded_sweeps, takes_recorded

from forecurve.science.simulator import ConstantCut, SharedReplay, Sweep, replay, replay_shared, synthetic_sweep
from forecurve.science.simulator.policies import Forecasts

SEED = 90_000  # of the sweeps reported; development used others
CELLS = (("table", "ar"), ("table", "white"), ("siblings", "ar"))
BUDGETS = (1.0, 0.5, 0.25)  # of the full compute
PLACES = (1, 2, 4, 8)


class Measured(NamedTuple):
    """One sweep: how it ended with each budget and number of places, what an even one loses with each budget, and its
    full compute."""

    shared: dict[tuple[float, int], SharedReplay]
    evenly: dict[float, float]
    full: float
    arms: int


def main() -> None:
    """Run and print."""
    made = parser(__doc__, runs=24)
    takes_recorded(made)
    made.add_argument("--jobs", type=int, default=2, help="sweeps at a time, one process each")
    asked = made.parse_args()
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool:
        sweeps = recorded_sweeps(asked.files, asked.group, asked.runs, SEED) if asked.files else _drawn(asked.runs)
        for name, of_it in sweeps:
            found = []
            for each in pool.map(_measured, of_it):
                found.append(each)
                note(f"{name}: sweep {len(found)} of {len(of_it)}")
            rows += [_row(name, found, *setting) for setting in product(BUDGETS, PLACES)]
    show(rows, as_json=asked.json)


def _drawn(runs: int) -> Iterator[tuple[str, list[Sweep]]]:
    for spread, noise in CELLS:
        seeds = range(SEED, SEED + runs)
        sweeps = [synthetic_sweep(seed, arms=ARMS, spread=spread, noise=noise) for seed in seeds]
        yield f"{spread}, {noise} noise", sweeps


def _measured(sweep: Sweep) -> Measured:
    forecasts = Forecasts()
    shared = {
        (budget, places): replay_shared(sweep, budget * sweep.full_cost, places, forecasts)
        for budget, places in product(BUDGETS, PLACES)
    }
    cut = replay(sweep, ConstantCut())
    return Measured(
        shared,
        {budget: cut.regret_at(budget * sweep.full_cost) for budget in BUDGETS},
        sweep.full_cost,
        len(sweep.tracks),
    )


def _row(cell: str, found: list[Measured], budget: float, places: int) -> dict[str, Any]:
    ours = [each.shared[budget, places] for each in found]
    regret, se = _mean([each.regret for each in ours])
    even_regret, even_se = _mean([each.evenly[budget] for each in found])
    return {
        "sweeps": cell,
        "budget": budget,
        "places": places,
        "regret": regret,
        "se": se,
        "compute": _mean([own.compute / each.full for own, each in zip(ours, found, strict=True)])[0],
        "launches": _mean([each.launches for each in ours])[0],
        "time": _mean([each.time for each in ours])[0],
        "to its end": _mean([each.reached >= 1 for each in ours])[0],
        "reached": _mean([each.reached for each in ours])[0],
        "evenly: regret": even_regret,
        "evenly: se": even_se,
        "evenly: time": budget * found[0].arms / places,
    }


def _mean(values: list[float]) -> tuple[float, float]:
    """And its standard error."""
    x = np.array(values, dtype=float)
    return float(x.mean()), float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else 0.0


if __name__ == "__main__":
    main()
