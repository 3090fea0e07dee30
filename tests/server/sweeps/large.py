"""A sweep of more runs than one page shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from server.database import new_id
from server.runs.models import Run
from tests.server.forecasts.seeds import make_sweep, new_evaluations, new_forecast, new_run, sigmoid

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
    runs: list[Run] = []
    for arm in range(arms):
        name = f"arm {arm}" if arm else "control"
        of_arm = {"arm": name, "sweep_id": sweep.id, "is_control": not arm}
        runs += [new_run(f"{name} s{seed}", id=new_id("run"), seed=seed, **of_arm) for seed in range(SEEDS)]
    session.add_all(runs)
    session.flush()  # all of a kind at once: one by one they take longer than most tests of them
    forecasts = []
    for at, run in enumerate(runs):
        end = ceiling(at // SEEDS) + 0.001 * (at % SEEDS)
        session.add_all(new_evaluations(run, COMPUTE, sigmoid(np.array(COMPUTE), A=end)))
        forecasts.append(new_forecast(run, id=new_id("fct")))
        told = {"median": end, "lower": 0.3, "upper": 0.8}
        forecasts[-1].summary |= {"at_budget": {"compute": 100.0, "curve": told, "evaluation": told}}
    session.add_all(forecasts)
    session.flush()
    made: dict[str, list[str]] = {}
    for run, forecast in zip(runs, forecasts, strict=True):
        run.forecast_id = forecast.id
        made.setdefault(run.arm, []).append(run.id)
    return Large(sweep.id, made)
