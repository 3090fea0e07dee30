"""What a plan says that its looks save, beside what they save.

    python benchmarks/plan_value.py --runs 60 [--json]

Simulated sweeps (`synthetic_sweep`) are seen up to a share of the horizon and planned with half of their full compute.
All looks of that one plan are then taken, nothing is planned anew on the way, and the arms are forecast again. Regret
is the best arm's true end minus that of the chosen one. `said` is what the plan says: at once its `expected_regret`,
after the looks that less its `value_of_information`; `again` is the `expected_regret` that is found after the looks.
`spent` is the looks' share of the full compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from common import note, parser, show

from forecurve.science import Fit, Plan, fit, plan
from forecurve.science.simulator import Sweep, synthetic_sweep

SEED = 60_000
BUDGET = 0.5  # of the full compute


class Cell(NamedTuple):
    """Sweeps of one kind, seen up to a share of the horizon."""

    spread: str
    noise: str
    arms: int
    seen: float


CELLS = (
    Cell("siblings", "ar", 8, 0.15),
    Cell("table", "white", 8, 0.2),
    Cell("siblings", "ar", 12, 0.15),
)


def main() -> None:
    """Run and print."""
    asked = parser(__doc__, runs=60).parse_args()
    show([_row(cell, asked.runs) for cell in CELLS], as_json=asked.json)


def _row(cell: Cell, runs: int) -> dict[str, Any]:
    found = []
    for at in range(runs):
        found.append(_measured(synthetic_sweep(SEED + at, arms=cell.arms, spread=cell.spread, noise=cell.noise), cell))
        note(f"{cell}: sweep {at + 1} of {runs}")
    row: dict[str, Any] = {"sweeps": f"{cell.arms} of {cell.spread}, {cell.noise} noise, at {cell.seen:g}"}
    for name in found[0]:
        values = np.array([each[name] for each in found])
        row[name] = float(values.mean())
        if name.startswith("lost"):
            row[f"se {name}"] = float(values.std(ddof=1) / np.sqrt(runs))
    return row


def _measured(sweep: Sweep, cell: Cell) -> dict[str, float]:
    fits = {track.name: fit(track.curve.until(cell.seen * sweep.horizon)) for track in sweep.tracks}
    found = plan(list(fits.values()), BUDGET * sweep.full_cost, horizon=sweep.horizon)
    looks = {each.arm: each for each in found.allocation if each.kind == "look"}
    seen = [_looked(sweep, fits, arm, looks[arm].to) if arm in looks else fits[arm] for arm in fits]
    after = plan(seen, BUDGET * sweep.full_cost, horizon=sweep.horizon)
    return {
        "said at once": found.expected_regret,
        "lost at once": _regret(sweep, found),
        "said after": found.expected_regret - found.value_of_information,
        "again": after.expected_regret,
        "lost after": _regret(sweep, after),
        "spent": sum(each.spend for each in looks.values()) / sweep.full_cost,
    }


def _looked(sweep: Sweep, fits: Mapping[str, Fit], arm: str, to: float) -> Fit:
    """The arm seen as far as a look takes it."""
    curve = next(track.curve for track in sweep.tracks if track.name == arm)
    return fit(curve.until(max(to * (1 + 1e-9), fits[arm].curve.now)))


def _regret(sweep: Sweep, found: Plan) -> float:
    return sweep.best - next(track.final for track in sweep.tracks if track.name == found.choice)


if __name__ == "__main__":
    main()
