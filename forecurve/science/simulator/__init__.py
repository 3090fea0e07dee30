"""Replays of sweeps under policies that say which arm to run how far next.

sweep = synthetic_sweep(seed=1, arms=8, spread="table")
replay(sweep, Forecasting()).regret_at(40_000.0)
"""

from .policies import BestSoFar, ConstantCut, EqualForecast, Forecasting, Policy, Step, SuccessiveHalving
from .replay import Replay, State, replay
from .sweeps import SPREADS, Sweep, Track, recorded_sweep, synthetic_run, synthetic_sweep

__all__ = [
    "SPREADS",
    "BestSoFar",
    "ConstantCut",
    "EqualForecast",
    "Forecasting",
    "Policy",
    "Replay",
    "State",
    "Step",
    "SuccessiveHalving",
    "Sweep",
    "Track",
    "recorded_sweep",
    "replay",
    "synthetic_run",
    "synthetic_sweep",
]
