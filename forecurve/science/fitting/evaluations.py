"""Evaluations to come, were the run to stay on its curve: the curve, the wandering part and sampling noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import checks
from ..arrays import FloatArray
from ..curves.noise import clock_ticks
from ..posterior.evenly import Axis, normals

if TYPE_CHECKING:
    from .fit import Fit


def evaluations_on_curve(
    fit: Fit, x: FloatArray, prompts: float | None = None, samples: float | None = None
) -> FloatArray:
    """Draws of single evaluations at x, (N, K); arguments as in `Fit.predict_evaluation`."""
    mean, variance = _wandering(fit, x)
    curve = fit.all_draws.reward_at(x)
    variance = variance + sampling_variance(fit, curve) * _size_ratio(fit, prompts, samples)
    return np.asarray(curve + mean + np.sqrt(variance) * normals(Axis.NOISE, variance.shape[1]))


def sampling_variance(fit: Fit, reward: FloatArray) -> FloatArray:
    """Of an evaluation like the last one where the curve's draws are at these rewards, (N, K), in their own scale."""
    return fit.posterior.alpha * fit.curve.noise_at(reward)


def _wandering(fit: Fit, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the wandering part at x, each (N, K): it is still near where it was last seen."""
    p, width, ahead = fit.posterior, fit.curve.width, np.maximum(x - fit.curve.now, 0.0)
    eta, rho = (values[p.hypothesis] for values in fit.setting.wandering)
    ticks = clock_ticks(ahead, fit.setting.usual_gap)
    decay = rho ** np.maximum(ahead / fit.setting.usual_gap, ticks)[:, None]
    decay[x <= fit.curve.now] = 0.0  # behind us: what any evaluation there could have been
    decay[fit.curve.resumed_before(x)] = 0.0
    variance = p.alpha * fit.setting.unit_variance * (eta * (1 - decay**2) + p.state_variance * decay**2)
    return width * p.state_mean * decay, width**2 * variance


def _size_ratio(fit: Fit, prompts: float | None, samples: float | None) -> float:
    """How many times the variance of the last evaluation that of one of this size is; 1 where the size of none is
    known. Prompts without samples have as many as those of the last one, and samples without prompts as many prompts.
    """
    of_prompt, prompts, samples = 1.0, _size("prompts", prompts), _size("samples", samples)
    if fit.curve.samples is not None and np.isfinite(fit.curve.samples[-1]):
        of_prompt = float(fit.curve.samples[-1])
    last = float(fit.curve.sizes[-1])
    if np.isnan(last):
        return 1.0
    return last / ((prompts or last / of_prompt) * (samples or of_prompt))


def _size(name: str, value: float | None) -> float | None:
    """A number of prompts or samples; None where it is unknown."""
    if value is None:
        return None
    column = checks.column_of(name, checks.number(name, value), 1, 1.0, checks.MOST_COUNTED)
    return None if column is None or np.isnan(column[0]) else float(column[0])
