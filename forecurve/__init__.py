"""Forecurve: forecast RL post-training before it is paid for.

    import forecurve

    forecast = forecurve.fit(forecurve.Curve(compute, reward, unit="GPU-hours", prompts=1000, samples=16))
    forecast.sentence(budget=16_000)

Names are loaded when they are first used, so that `import forecurve` in a training script costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecurve.client import Api as Api
    from forecurve.client import ApiError as ApiError
    from forecurve.client import ClientError as ClientError
    from forecurve.client import connect as connect
    from forecurve.client import finish as finish
    from forecurve.client import init as init
    from forecurve.client import log as log
    from forecurve.curve_cells import CurveFileError as CurveFileError
    from forecurve.curve_files import read_arms as read_arms
    from forecurve.curve_files import read_curves as read_curves
    from forecurve.recipes import Recipe as Recipe
    from forecurve.science import Advice as Advice
    from forecurve.science import AdviceError as AdviceError
    from forecurve.science import Backtest as Backtest
    from forecurve.science import CompareError as CompareError
    from forecurve.science import Comparison as Comparison
    from forecurve.science import Curve as Curve
    from forecurve.science import CurveError as CurveError
    from forecurve.science import FieldError as FieldError
    from forecurve.science import Fit as Fit
    from forecurve.science import FrozenError as FrozenError
    from forecurve.science import FrozenForecast as FrozenForecast
    from forecurve.science import Plan as Plan
    from forecurve.science import PlanError as PlanError
    from forecurve.science import Prior as Prior
    from forecurve.science import PriorError as PriorError
    from forecurve.science import Siblings as Siblings
    from forecurve.science import Watch as Watch
    from forecurve.science import advise as advise
    from forecurve.science import advise_sweep as advise_sweep
    from forecurve.science import backtest as backtest
    from forecurve.science import compare as compare
    from forecurve.science import fit as fit
    from forecurve.science import freeze as freeze
    from forecurve.science import plan as plan
    from forecurve.science import rank as rank
    from forecurve.science import watch as watch

__version__ = "0.1.0"

_SCIENCE = (
    "Advice", "AdviceError", "Backtest", "CompareError", "Comparison", "Curve", "CurveError", "FieldError", "Fit",
    "FrozenError", "FrozenForecast", "Plan", "PlanError", "Prior", "PriorError", "Siblings", "Watch", "advise",
    "advise_sweep", "backtest", "compare", "fit", "freeze", "plan", "rank", "watch",
)  # fmt: skip
_HOME = {
    **dict.fromkeys(_SCIENCE, "forecurve.science"),
    **dict.fromkeys(("read_arms", "read_curves"), "forecurve.curve_files"),
    "CurveFileError": "forecurve.curve_cells",
    **dict.fromkeys(("Api", "ApiError", "ClientError", "connect", "finish", "init", "log"), "forecurve.client"),
    "Recipe": "forecurve.recipes",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'forecurve' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
