"""A sweep whose runs share one budget, on real Postgres, and what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from server.runs.models import Run
from server.settings import Settings
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import SweepComparison
from server.sweeps.schemas import AllocationView
from server.sweeps.service import get_sweep, sweep_read
from tests.server.forecasts.seeds import START, add_evaluations, make_run, make_sweep, sigmoid
from tests.worker.refitting import COMPUTE, Sessions
from worker.compare import compare_sweep

LATER = START + timedelta(hours=1)
CEILINGS = {"control": 0.60, "higher": 0.62, "lower": 0.35, "top": 0.70}


def curve(arm: str) -> Any:
    noise = np.random.default_rng(len(arm)).normal(0.0, 6e-5**0.5, len(COMPUTE))
    return sigmoid(COMPUTE, A=CEILINGS[arm]) + noise


def begin(
    sessions: Sessions, points: Mapping[str, int], budget: float = 300.0, **columns: Mapping[str, Any]
) -> tuple[str, dict[str, str]]:
    """A sweep whose arms have so many evaluations each, and the ids of its runs. `columns`: of single runs, by arm."""
    with sessions.begin() as session:
        sweep = make_sweep(session, "allocate", budget_compute=budget)
        runs = {}
        for arm, count in points.items():
            usual = {"sweep_id": sweep.id, "is_control": arm == "control", "allocated": True, "goes_to": 0.0}
            run = make_run(session, **({"name": arm, "arm": arm} | usual | columns.get(arm, {})))
            if count:
                add_evaluations(session, run, COMPUTE[:count], curve(arm)[:count])
            runs[arm] = run.id
        return sweep.id, runs


def allocate(sessions: Sessions, settings: Settings, sweep_id: str, at: datetime = LATER) -> AllocationView:
    """One more comparison, and what is told of the allocation after it."""
    with sessions.begin() as session:
        ask_for_comparison(session, sweep_id, at)
    compare_sweep(sessions, settings, sweep_id, at)
    with sessions() as session:
        found = sweep_read(session, get_sweep(session, sweep_id), at).allocation
    assert found is not None
    return found


def states(sessions: Sessions, runs: Mapping[str, str]) -> dict[str, tuple[str, str, bool]]:
    """By arm: what is wanted, what is the case, and whether it has somewhere to go."""
    with sessions() as session:
        found = {arm: session.get_one(Run, run_id) for arm, run_id in runs.items()}
    return {arm: (run.desired_state, run.status, run.goes_to is not None) for arm, run in found.items()}


def run_of(sessions: Sessions, run_id: str) -> Run:
    with sessions() as session:
        return session.get_one(Run, run_id)


PAUSED = {"desired_state": "pause", "status": "paused", "goes_to": None}


def dirty_at(sessions: Sessions, sweep_id: str) -> datetime | None:
    with sessions() as session:
        return session.get_one(SweepComparison, sweep_id).dirty_at
