"""Forecasting science: pure functions and values on numpy and scipy, no input or output.

curve = Curve(compute, reward, unit="GPU-hours", prompts=1000, samples=16, start=0.2)
forecast = fit(curve)
forecast.A, forecast.predict(16_000), forecast.sentence(budget=16_000)
advise(forecast, now=4_000, budget=16_000)
watch(freeze(forecast), later_compute, later_reward)
"""

from .advice import Advice, advise
from .curve import Curve
from .errors import CurveError, FrozenError, PriorError
from .fitting import Draws, Fit, fit
from .frozen import FrozenForecast, freeze
from .misfit import Misfit
from .point import PointFit, least_squares
from .prior import Prior, sibling_prior
from .values import Band, Estimate, Reach
from .watching import Watch, watch

__all__ = [
    "Advice",
    "Band",
    "Curve",
    "CurveError",
    "Draws",
    "Estimate",
    "Fit",
    "FrozenError",
    "FrozenForecast",
    "Misfit",
    "PointFit",
    "Prior",
    "PriorError",
    "Reach",
    "Watch",
    "advise",
    "fit",
    "freeze",
    "least_squares",
    "sibling_prior",
    "watch",
]
