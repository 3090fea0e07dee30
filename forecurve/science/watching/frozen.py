"""The frozen forecast: all that is needed to judge later evaluations of a run, as plain JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE

from .. import checks, errors
from ..arrays import FloatArray, IntArray
from ..curves.noise import clock_ahead
from ..fitting.fit import Fit
from ..posterior.drawing import resample
from ..posterior.sigmoid import reward_at
from ..values import Estimate, estimate_of
from .pieces import Pieces
from .surprise import Mixture

VERSION = 2
_DRAWS = 400
_MOST_EXPECTED = 1e100  # evaluations
_LEAST_GAP = 1e-16 * LEAST_COMPUTE  # two evaluations that a float can tell apart
HORIZON = 80  # evaluations among which a change is looked for first


@dataclass(frozen=True, eq=False, repr=False)
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
        source: what nominal variances were known from, see `SamplingNoise`; None where that was not kept.
        last_share: the last evaluation's nominal variance over `nominal`.
        usual_gap: compute between two evaluations.
        hypotheses: (eta, rho) of each hypothesis.
        restarts: those of the curve at or after its last evaluation.
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
    source: str | None
    last_share: float
    usual_gap: float
    hypotheses: tuple[tuple[float, float], ...]
    restarts: tuple[float, ...] = ()

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
            "source": self.source,
            "last_share": self.last_share,
            "usual_gap": self.usual_gap,
            "hypotheses": [list(pair) for pair in self.hypotheses],
            "restarts": list(self.restarts),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> FrozenForecast:
        """Read it back.

        Raises:
            FrozenError: a missing part, one that is no such number, or another version.
        """
        checks.check_kind("forecast", stored, dict, "pass what FrozenForecast.to_dict gave", errors.FrozenError)
        version = stored.get("version")
        if version != VERSION:
            raise errors.FrozenError("version", version, f"this reads version {VERSION}", "freeze the run again")
        try:
            read = cls(
                unit=_text(stored["unit"]),
                name=_text(stored["name"]),
                bounds=checks.bounds_of(stored["bounds"]),
                at_compute=float(stored["at_compute"]),
                points=_whole(stored["points"]),
                horizon=_whole(stored["horizon"]),
                hypothesis=np.array([_whole(one) for one in stored["hypothesis"]], dtype=np.int64),
                state_variance=np.array(stored["state_variance"], dtype=np.float64),
                nominal=float(stored["nominal"]),
                source=None if stored["source"] is None else _text(stored["source"]),
                last_share=float(stored["last_share"]),
                usual_gap=float(stored["usual_gap"]),
                hypotheses=tuple((float(eta), float(rho)) for eta, rho in stored["hypotheses"]),
                restarts=checks.restarts_of(stored["restarts"]),
                **{name: np.array(stored["draws"][name], dtype=np.float64) for name in cls._DRAWN},
            )
        except (KeyError, TypeError, ValueError, OverflowError, errors.CurveError) as error:
            raise errors.FrozenError(
                "forecast", repr(error), "a part cannot be read", "freeze the run again"
            ) from error
        read._check()
        return read

    def _check(self) -> None:
        """What was stored may have been damaged since."""
        size, kinds = len(self.hypothesis), len(self.hypotheses)
        drawn = {name: getattr(self, name) for name in self._DRAWN}
        positive = {name: getattr(self, name) for name in ("nominal", "last_share", "scale", "B", "C_mid")}
        faults = {name: "a positive number" for name, value in positive.items() if not np.all(np.asarray(value) > 0)}
        finite = {name: getattr(self, name) for name in ("nominal", "last_share")}
        faults |= {name: "a finite number" for name, value in finite.items() if not np.isfinite(value)}
        faults |= {name: f"{size} finite numbers" for name, values in drawn.items() if not _are_finite(values, size)}
        if not size or not ((self.hypothesis >= 0) & (self.hypothesis < kinds)).all():
            faults["hypothesis"] = f"a place among {kinds} hypotheses for each draw"
        if not (_are_finite(self.state_variance, kinds) and (self.state_variance >= 0).all()):
            faults["state_variance"] = f"{kinds} finite numbers of at least 0"
        if not all(0 <= eta < np.inf and 0 <= rho < 1 and (rho > 0 or eta == 0) for eta, rho in self.hypotheses):
            faults["hypotheses"] = "pairs of eta, at least 0, and rho from 0 to below 1, above 0 where eta is"
        for name in ("points", "horizon"):
            if not 1 <= getattr(self, name) <= _MOST_EXPECTED:
                faults[name] = f"a whole number from 1 to {_MOST_EXPECTED:g}"
        for name, least in (("at_compute", LEAST_COMPUTE), ("usual_gap", _LEAST_GAP)):
            if not least <= getattr(self, name) <= MOST_COMPUTE:
                faults[name] = f"compute from {least:g} to {MOST_COMPUTE:g}"
        if faults:
            name, needed = next(iter(faults.items()))
            damaged = f"it is damaged: {needed} is needed"
            raise errors.FrozenError(name, "what was stored", damaged, "freeze the run again")

    @property
    def last_variance(self) -> float:
        """Nominal sampling variance of the last evaluation it has seen."""
        return self.last_share * self.nominal

    def __repr__(self) -> str:
        low, high = self.bounds
        return (
            f"FrozenForecast({self.name!r}: made at {self.at_compute:g} {self.unit} of {self.points} evaluations, "
            f"{self.horizon} expected, A {np.median(self.A):.3g} in [{low:g}, {high:g}])"
        )

    def clock(self, compute: FloatArray, restarts: tuple[float, ...] = ()) -> FloatArray:
        """The evaluation clock since the freeze, (H,).

        Args:
            compute: of every evaluation after the freeze, (H,).
            restarts: of the run, besides those that the frozen curve knew of.
        """
        ahead = tuple({*self.restarts, *(one for one in restarts if one >= self.at_compute)})
        first = (compute[0] - self.at_compute) / self.usual_gap
        return np.asarray(first + clock_ahead(compute, self.usual_gap, ahead))

    def mixture(self, compute: FloatArray, variance: FloatArray, clock: FloatArray, *, since: float = 0.0) -> Mixture:
        """The joint forecast of evaluations after the freeze, uncertainty of curve and noise included.

        Each piece is a group of draws with its own mean and covariance; what the draws say of the noise scale becomes
        degrees of freedom. Nothing of this hangs on which evaluations have come: a later one changes nothing that was
        judged, and those from any one on have the forecast that they have among all.

        Args:
            compute: strictly increasing, after `at_compute`, (H,).
            variance: nominal sampling variance of each, (H,).
            clock: at each, see `clock`, (H,): not every evaluation need be among them.
            since: the clock at the evaluation before the first of them; 0 says the freeze.
        """
        return self._pieces.mixture(self._drawn(compute, clock), variance / self.nominal, clock, since)

    def _drawn(self, compute: FloatArray, clock: FloatArray) -> FloatArray:
        """The curve with what is known of the wandering part, (H, K)."""
        rho = np.array([pair[1] for pair in self.hypotheses])[self.hypothesis]
        return reward_at(compute, self.A, self.B, self.C_mid, self.R0) + self.state * rho ** clock[:, None]

    @cached_property
    def _pieces(self) -> Pieces:
        horizon = self.at_compute + self.horizon * self.usual_gap
        end = reward_at(np.array([horizon]), self.A, self.B, self.C_mid, self.R0)[0]
        return Pieces.of(end, self.scale, self.hypothesis, self.hypotheses, self.state_variance)

    def is_same(self, other: FrozenForecast) -> bool:
        """Whether every part of both is the same, as of one that was read twice."""
        parts = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return self is other or all(np.array_equal(one, two) for one, two in parts)

    def at(self, compute: float) -> Estimate:
        """The curve at one compute, after the freeze or before: median and 90 % interval.

        Raises:
            FrozenError: no finite compute of at least 0.
        """
        if not checks.is_positive(compute, or_zero=True):
            way_out = f"ask for another, in {self.unit}"
            value = checks.short(compute)
            raise errors.FrozenError("compute", value, "a finite compute of at least 0 is needed", way_out)
        return estimate_of(reward_at(np.array([checks.as_float(compute)]), self.A, self.B, self.C_mid, self.R0)[0])


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{checks.short(value)} is no whole number")
    return value


def _are_finite(values: FloatArray, size: int) -> bool:
    return values.shape == (size,) and bool(np.isfinite(values).all())


def freeze(fit: Fit, *, horizon: int = HORIZON) -> FrozenForecast:
    """Freeze a forecast so that later evaluations can be judged against it.

    Args:
        fit: the forecast.
        horizon: evaluations expected after now.

    Raises:
        FrozenError: a misfit withholds the forecast, so that there is none to judge by; a horizon below 1 or
            beyond all measure.
    """
    checks.check_kind("fit", fit, Fit, "pass fit(curve)", errors.FrozenError)
    if not checks.is_positive(horizon) or not 1 <= checks.as_float(horizon) <= _MOST_EXPECTED:
        needed = f"1 to {_MOST_EXPECTED:g} evaluations are needed"
        raise errors.FrozenError("horizon", checks.short(horizon), needed, "leave it out")
    if fit.withheld:
        raise errors.FrozenError(
            "fit", fit.misfit, "a forecast that is withheld cannot be held against a run", "freeze one without a misfit"
        )
    p, setting = fit.posterior, fit.setting
    low, width = fit.curve.bounds[0], fit.curve.width
    chosen = resample(np.ones(len(p.A)), p.A, _DRAWS)
    nominal = setting.unit_variance * width**2
    return FrozenForecast(
        unit=fit.unit,
        name=fit.curve.name,
        bounds=fit.curve.bounds,
        at_compute=fit.curve.now,
        points=fit.points,
        horizon=int(horizon),
        A=low + width * p.A[chosen],
        B=p.B[chosen],
        C_mid=p.C_mid[chosen],
        R0=low + width * p.R0[chosen],
        scale=p.alpha[chosen] * nominal,
        state=width * p.state_mean[chosen],
        hypothesis=p.hypothesis[chosen],
        state_variance=fit.state_variance,
        nominal=nominal,
        source=setting.source,
        last_share=float(fit.curve.noise.variance[-1] / nominal),
        usual_gap=setting.usual_gap,
        hypotheses=tuple((h.eta, h.rho) for h in setting.hypotheses),
        restarts=fit.curve.restarts_ahead,
    )
