"""Forecasting science: pure functions and values on numpy and scipy, no input or output.

curve = Curve(compute, reward, unit="GPU-hours", prompts=1000, samples=16, start=0.2)
forecast = fit(curve)
forecast.A, forecast.predict(16_000), forecast.sentence(budget=16_000)
advise(forecast, now=4_000, budget=16_000)
watch(freeze(forecast), later_compute, later_reward)
compare({"base": [curve, other_seed], "no-fp32": third}, control="base")
"""

from .advice import Advice, advise
from .alternatives import Alternative, alternatives
from .analogues import Course
from .attribution import ArmVerdict, Comparison, PooledSeeds, SeedSpread, compare, pool_seeds
from .backtesting import Backtest, backtest, past_forecast
from .baselines import PowerLaw, last_value, power_law
from .conformal import Conformal
from .curve import Curve, Evaluation
from .draws import Draws
from .errors import AdviceError, CompareError, CurveError, FieldError, FrozenError, PlanError, PriorError
from .family import sibling_prior
from .fitting import Fit, fit
from .frozen import FrozenForecast, freeze
from .hindsight import Hindsight, Past
from .misfit import Misfit
from .outcome import Outcome, predict_ending, predict_mean
from .paper import PaperFit, PaperGrid, paper_fit, paper_grid, scaled_grid
from .planner import Allocation, Outlook, Plan, plan
from .point import PointFit, least_squares
from .prior import Prior
from .ranking import Rank, rank
from .revising import Revision, revision
from .siblings import Siblings
from .sweep_advice import advise_sweep
from .track_record import TrackRecord, score
from .values import Band, Estimate, Reach
from .watching import Watch, watch

__all__ = [
    "Advice",
    "AdviceError",
    "Allocation",
    "Alternative",
    "ArmVerdict",
    "Backtest",
    "Band",
    "CompareError",
    "Comparison",
    "Conformal",
    "Course",
    "Curve",
    "CurveError",
    "Draws",
    "Estimate",
    "Evaluation",
    "FieldError",
    "Fit",
    "FrozenError",
    "FrozenForecast",
    "Hindsight",
    "Misfit",
    "Outcome",
    "Outlook",
    "PaperFit",
    "PaperGrid",
    "Past",
    "Plan",
    "PlanError",
    "PointFit",
    "PooledSeeds",
    "PowerLaw",
    "Prior",
    "PriorError",
    "Rank",
    "Reach",
    "Revision",
    "SeedSpread",
    "Siblings",
    "TrackRecord",
    "Watch",
    "advise",
    "advise_sweep",
    "alternatives",
    "backtest",
    "compare",
    "fit",
    "freeze",
    "last_value",
    "least_squares",
    "paper_fit",
    "paper_grid",
    "past_forecast",
    "plan",
    "pool_seeds",
    "power_law",
    "predict_ending",
    "predict_mean",
    "rank",
    "revision",
    "scaled_grid",
    "score",
    "sibling_prior",
    "watch",
]
