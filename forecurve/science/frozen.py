"""The frozen forecast: all that is needed to judge later evaluations of a run, as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import errors
from .arrays import FloatArray, IntArray
from .drawing import resample
from .noise import clock_ticks
from .sigmoid import reward_at

if TYPE_CHECKING:
    from .fitting import Fit

VERSION = 1
_DRAWS = 400
HORIZON = 80  # evaluations among which a change is looked for first


@dataclass(frozen=True, eq=False)
class FrozenForecast:
    """A forecast as it stood when it was frozen. Rewards in the curve's own scale.

    Attributes:
        unit, name, bounds: of the curve.
        at_compute: compute of the last evaluation it has seen.
        points: how many it has seen.
        horizon: evaluations expected after the freeze; changes within it are found soonest.
        A, B, C_mid, R0: equally weighted draws, shape (K,).
        scale: noise variance of one usual evaluation under each draw, shape (K,).
        state: where the wandering part stood, shape (K,).
        hypothesis: index of the noise hypothesis under each draw, shape (K,).
        state_variance: of the wandering part in units of `scale`, one per hypothesis.
        nominal: nominal sampling variance of one evaluation that `scale` stands for.
        last_share: the last evaluation's nominal variance over `nominal`.
        usual_gap: compute between two evaluations.
        hypotheses: (eta, rho) of each hypothesis.
    """

    unit: str
    name: str
    bounds: tuple[float, float]
    at_compute: float
    points: int
    horizon: int
    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray
    scale: FloatArray
    state: FloatArray
    hypothesis: IntArray
    state_variance: FloatArray
    nominal: float
    last_share: float
    usual_gap: float
    hypotheses: tuple[tuple[float, float], ...]

    _DRAWN = ("A", "B", "C_mid", "R0", "scale", "state")

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe; numbers with 7 significant digits, far below any noise."""
        return {
            "version": VERSION,
            "unit": self.unit,
            "name": self.name,
            "bounds": list(self.bounds),
            "at_compute": self.at_compute,
            "points": self.points,
            "horizon": self.horizon,
            "draws": {name: [float(f"{value:.7g}") for value in getattr(self, name)] for name in self._DRAWN},
            "hypothesis": [int(index) for index in self.hypothesis],
            "state_variance": [float(value) for value in self.state_variance],
            "nominal": self.nominal,
            "last_share": self.last_share,
            "usual_gap": self.usual_gap,
            "hypotheses": [list(pair) for pair in self.hypotheses],
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> FrozenForecast:
        """Read it back.

        Raises:
            FrozenError: a missing part or another version.
        """
        version = stored.get("version")
        if version != VERSION:
            raise errors.FrozenError(f"version: this reads version {VERSION}, got {version}; freeze the run again")
        try:
            return cls(
                unit=stored["unit"],
                name=stored["name"],
                bounds=(float(stored["bounds"][0]), float(stored["bounds"][1])),
                at_compute=float(stored["at_compute"]),
                points=int(stored["points"]),
                horizon=int(stored["horizon"]),
                hypothesis=np.array(stored["hypothesis"], dtype=np.int64),
                state_variance=np.array(stored["state_variance"], dtype=np.float64),
                nominal=float(stored["nominal"]),
                last_share=float(stored["last_share"]),
                usual_gap=float(stored["usual_gap"]),
                hypotheses=tuple((float(eta), float(rho)) for eta, rho in stored["hypotheses"]),
                **{name: np.array(stored["draws"][name], dtype=np.float64) for name in cls._DRAWN},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise errors.FrozenError(f"forecast: a part cannot be read ({error!r}); freeze the run again") from error

    def outlook(self, compute: FloatArray, variance: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean (N,) and covariance (N, N) of evaluations after the freeze, uncertainty of the curve included.

        Args:
            compute: strictly increasing, after `at_compute`.
            variance: nominal sampling variance of each; that of the last one seen when left out or NaN.
        """
        curves = reward_at(compute, self.A, self.B, self.C_mid, self.R0)  # (N, K)
        first = (compute[0] - self.at_compute) / self.usual_gap
        clock = first + np.concatenate([[0.0], np.cumsum(clock_ticks(np.diff(compute), self.usual_gap))])
        rho = np.array([pair[1] for pair in self.hypotheses])
        means = curves + self.state * rho[self.hypothesis] ** clock[:, None]
        mean = means.mean(axis=1)
        centred = means - mean[:, None]
        return mean, centred @ centred.T / centred.shape[1] + self._noise(clock, variance)

    def _noise(self, clock: FloatArray, variance: FloatArray | None) -> FloatArray:
        """Covariance of wandering and sampling noise, averaged over the draws."""
        shares = np.full(len(clock), self.last_share)
        if variance is not None:
            shares = np.where(np.isfinite(variance) & (variance > 0), variance / self.nominal, shares)
        apart = np.abs(clock[:, None] - clock[None, :])
        since = clock[:, None] + clock[None, :]
        total = np.diag(shares * self.scale.mean())
        for index, (eta, rho) in enumerate(self.hypotheses):
            weight = self.scale[self.hypothesis == index].sum() / len(self.scale)
            if weight > 0 and eta > 0:
                total += weight * (eta * (rho**apart - rho**since) + self.state_variance[index] * rho**since)
        return total


def freeze(fit: Fit, *, horizon: int = HORIZON) -> FrozenForecast:
    """Freeze a forecast so that later evaluations can be judged against it.

    Args:
        fit: the forecast.
        horizon: evaluations expected after now.
    """
    if horizon < 1:
        raise errors.FrozenError(f"horizon: at least 1 evaluation is needed, got {horizon}; leave it out")
    p, setting = fit.posterior, fit.setting
    low, width = fit.curve.bounds[0], fit.curve.bounds[1] - fit.curve.bounds[0]
    chosen = resample(np.ones(len(p.A)), p.A, _DRAWS)
    nominal = setting.unit_variance * width**2
    return FrozenForecast(
        unit=fit.unit,
        name=fit.curve.name,
        bounds=fit.curve.bounds,
        at_compute=fit.curve.now,
        points=fit.points,
        horizon=horizon,
        A=low + width * p.A[chosen],
        B=p.B[chosen],
        C_mid=p.C_mid[chosen],
        R0=low + width * p.R0[chosen],
        scale=p.alpha[chosen] * nominal,
        state=width * p.state_mean[chosen],
        hypothesis=p.hypothesis[chosen],
        state_variance=fit.state_variance,
        nominal=nominal,
        last_share=float(fit.curve.noise.variance[-1] / nominal),
        usual_gap=setting.usual_gap,
        hypotheses=tuple((h.eta, h.rho) for h in setting.hypotheses),
    )
