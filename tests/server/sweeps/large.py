"""A sweep of more runs than one page shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from tests.server.forecasts.seeds import add_evaluations, make_forecast, make_run, make_sweep, sigmoid

SEEDS = 4
COMPUTE = (0.0, 2.0, 8.0, 20.0, 40.0)


@dataclass(frozen=True)
class Large:
    """Its id, and those of its runs by arm, as they were planned."""

    id: str
    arms: dict[str, list[str]]

    @property
    def runs(self) -> list[str]:
        return [id_ for ids in self.arms.values() for id_ in ids]


def ceiling(arm: int) -> float:
    """The control's is in the middle; the further an arm is from it in number, the higher or the lower."""
    return 0.6 + 0.004 * (arm if arm % 2 else -arm)


def large_sweep(session: Session, arms: int = 30) -> Large:
    """So many arms of four seeds, each evaluated and forecast; of thirty, `arm 29` is highest and `arm 28` lowest."""
    sweep = make_sweep(session)
    made: dict[str, list[str]] = {}
    for arm in range(arms):
        name = f"arm {arm}" if arm else "control"
        for seed in range(SEEDS):
            run = make_run(session, f"{name} s{seed}", arm=name, sweep_id=sweep.id, is_control=not arm, seed=seed)
            rates = sigmoid(np.array(COMPUTE), A=ceiling(arm) + 0.001 * seed)
            add_evaluations(session, run, COMPUTE, rates)
            forecast = make_forecast(session, run)
            end = {"median": ceiling(arm) + 0.001 * seed, "lower": 0.3, "upper": 0.8}
            forecast.summary = forecast.summary | {"at_budget": {"compute": 100.0, "curve": end, "evaluation": end}}
            run.forecast_id = forecast.id
            made.setdefault(name, []).append(run.id)
    return Large(sweep.id, made)
