"""Forecasting science: pure functions and values on numpy and scipy, no input or output.

curve = Curve(compute, reward, unit="GPU-hours", prompts=1000, samples=16, start=0.2)
forecast = fit(curve)
forecast.A, forecast.predict(16_000), forecast.sentence(budget=16_000)
advise(forecast, now=4_000, budget=16_000)
watch(freeze(forecast), later_compute, later_reward)
compare({"base": [curve, other_seed], "no-fp32": third}, control="base")

The rooms, from the ground up; each knows only those before it (`make lint` holds it to that):

    curves        evaluations against compute, and how they scatter
    posterior     of a sigmoid's parameters, by adaptive quadrature
    departures    misfits, and what else a run may do than follow its sigmoid
    fitting       `fit`: bands, the expected end, the compute to a target
    past          what past runs tell: the prior they make, what forecasts of theirs got wrong
    attribution   `compare`: ceiling or efficiency
    backtesting   how good forecasts would have been, and were; the paper's procedure; `Siblings`
    watching      `freeze`, `watch`: a live run against its frozen forecast
    planning      `plan`, `rank`: which runs to train how far, and which is best
    advice        `advise`: stop, continue or scale
    simulator     sweeps replayed under policies
"""

from .advice.advise import Advice, advise
from .advice.reaching import milestones
from .advice.sweep import advise_sweep
from .attribution import ArmVerdict, Comparison, PooledSeeds, SeedSpread, compare, pool_seeds
from .backtesting.alternatives import Alternative, alternatives
from .backtesting.backtest import backtest
from .backtesting.baselines import PowerLaw, last_value, power_law
from .backtesting.one_run import past_forecast
from .backtesting.paper import PaperFit, PaperGrid, paper_fit, paper_grid, scaled_grid
from .backtesting.rows import Backtest
from .backtesting.siblings import Siblings
from .backtesting.track_record import Forecast, TrackRecord, score
from .curves.curve import Curve
from .curves.evaluation import Evaluation
from .departures.misfit import Misfit
from .errors import AdviceError, CompareError, CurveError, FieldError, FrozenError, PlanError, PriorError
from .fitting.fit import Fit, fit
from .fitting.outcome import Outcome, predict_ending, predict_mean
from .past.analogues import Course
from .past.conformal import Conformal
from .past.family import sibling_prior
from .past.hindsight import Hindsight, Past
from .planning.outlook import Allocation, Outlook
from .planning.plan import Plan, plan
from .planning.ranking import Rank, rank
from .posterior.draws import Draws
from .posterior.point import PointFit, least_squares
from .posterior.prior import Prior
from .values import Band, Estimate, Reach
from .watching.frozen import FrozenForecast, freeze
from .watching.revision import Revision, revision
from .watching.watch import Watch, watch

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
    "Forecast",
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
    "milestones",
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
