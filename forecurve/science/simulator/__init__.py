"""Replays of sweeps under policies that say which arm to run how far next.

sweep = synthetic_sweep(seed=1, arms=8, spread="table")
replay(sweep, Forecasting()).regret_at(40_000.0)
replay_shared(sweep, 40_000.0, places=4).regret  # several arms at once, until that is over
"""

from .policies import BestSoFar, ConstantCut, EqualForecast, Forecasting, Policy, Step, SuccessiveHalving
from .replay import Replay, State, replay
from .shared import Moment, SharedReplay, replay_shared, rounds_of
from .sweeps import SPREADS, Sweep, Track, recorded_sweep, synthetic_run, synthetic_sweep

__all__ = [
    "SPREADS",
    "BestSoFar",
    "ConstantCut",
    "EqualForecast",
    "Forecasting",
    "Moment",
    "Policy",
    "Replay",
    "SharedReplay",
    "State",
    "Step",
    "SuccessiveHalving",
    "Sweep",
    "Track",
    "recorded_sweep",
    "replay",
    "replay_shared",
    "rounds_of",
    "synthetic_run",
    "synthetic_sweep",
]
