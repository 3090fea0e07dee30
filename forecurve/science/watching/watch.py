"""Watch a live run against its frozen forecast.

Each evaluation after the freeze gives an innovation z (surprise.py), and an e-process collects the evidence for a fall
(evidence.py). WARN is the sharp form: threshold 20, so false in at most 5 % of the runs for which the forecast holds.
ALERT is the robust form: z is clipped at +-4 before the next evaluation is judged, so that no single evaluation can
raise it, and the threshold is 100, so false in at most 1 %. Both withstand a noise that is larger than assumed, because
the noise scale is itself uncertain in the forecast and is learned on the way. docs/science/watch.md has the figures.

What surprises depends on how noisy the run was believed to be. A run of which few noisy evaluations were known at the
freeze may fall to 0 and stay there without enough evidence. Where its fit of all evaluations so far is given, a fall
that this finds, and that has left the frozen forecast, is a WARN too.

Evidence is read off only at evaluations below the frozen forecast: a run that leaps above it is no fall, whatever the
innovations after the leap say. Nothing happens at an evaluation that is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import checks, errors
from ..arrays import FloatArray
from ..fitting.fit import Fit
from ..values import SDS_TO_A_SIDE, Estimate, jsonable
from ..wording import compute_text, level_text
from .evidence import Evidence, evidence
from .frozen import FrozenForecast
from .surprise import Mixture, innovations

if TYPE_CHECKING:
    import plotly.graph_objects as go


WARN_THRESHOLD = 20.0  # 1 / 0.05, by Ville's inequality
ALERT_THRESHOLD = 100.0  # 1 / 0.01
CLIP = 4.0
DOUBT = "Its curve is smooth, but bends otherwise than a sigmoid does: the forecast may be what was wrong."
_MOST = 400  # evaluations judged one by one; more are averaged in blocks


@dataclass(frozen=True, eq=False, repr=False)
class Watch:
    """The verdict on all evaluations after the freeze.

    Attributes:
        name, unit: of the run.
        level: None, "WARN" (sharp evidence, or a fall that the fit finds) or "ALERT" (robust evidence); once reached by
            evidence it stays.
        since_compute: compute of the evaluation from which the fall most likely began; None without a level.
        e_value, e_value_robust: the largest evidence so far; thresholds are 20 and 100.
        compute, reward: what was judged, shape (H,).
        z: its innovations, (H,).
        expected, lower, upper: the frozen forecast of each evaluation by itself, median and 90 %, (H,).
        sentence: one line.
        fall: what the fit of all evaluations says of the fall, where that and not the evidence is why it is a WARN.
        doubt: why the forecast, and not the run, may be what was wrong; None where nothing speaks for that.
    """

    name: str
    unit: str
    level: str | None
    since_compute: float | None
    e_value: float
    e_value_robust: float
    compute: FloatArray
    reward: FloatArray
    z: FloatArray
    expected: FloatArray
    lower: FloatArray
    upper: FloatArray
    sentence: str
    fall: str | None = None
    doubt: str | None = None

    @property
    def predicted(self) -> Estimate:
        """The frozen forecast of the last evaluation, 90 %."""
        return Estimate(float(self.expected[-1]), float(self.lower[-1]), float(self.upper[-1]))

    @property
    def actual(self) -> float:
        """The last evaluation."""
        return float(self.reward[-1])

    @property
    def shortfall(self) -> float:
        """Predicted - actual."""
        return self.predicted.median - self.actual

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        names = ("name", "level", "since_compute", "unit", "e_value", "e_value_robust", "fall", "actual", "shortfall")
        columns = ("compute", "reward", "z", "expected", "lower", "upper")
        body = {name: getattr(self, name) for name in names}
        body["predicted"] = self.predicted.to_dict()
        body["sentence"] = self.sentence
        body["evaluations"] = {name: getattr(self, name).tolist() for name in columns}
        return dict(jsonable(body))

    def plot(self) -> go.Figure:
        """A plotly figure: evaluations on the frozen band, and where the fall began. Needs plotly."""
        from .plot import plot

        return plot(self)

    def __repr__(self) -> str:
        since = "" if self.since_compute is None else f" since {self.since_compute:g} {self.unit}"
        count = f"{len(self.compute)} evaluation{'s' * (len(self.compute) != 1)}"
        return (
            f"Watch({self.name!r}: {self.level or 'fine'}{since}, {count}, "
            f"e-value {self.e_value:.3g} sharp, {self.e_value_robust:.3g} robust)"
        )


def watch(
    frozen: FrozenForecast,
    compute: npt.ArrayLike,
    reward: npt.ArrayLike,
    variance: npt.ArrayLike | None = None,
    *,
    fit: Fit | None = None,
) -> Watch:
    """Judge all evaluations after the freeze, in order.

    Args:
        frozen: the forecast.
        compute, reward: at least one evaluation, compute strictly increasing and after `frozen.at_compute`, rewards in
            the curve's range. Leave out what is missing.
        variance: nominal sampling variance of each, computed as for the fitted curve (`Curve.noise.variance`); the
            last one's before the freeze where left out, or 0 or NaN.
        fit: of the run up to the last of these evaluations, made by itself (no siblings). Where it finds a collapse or
            a decline (`Fit.misfit`) that began with these evaluations and is not made up for, and the last two of
            them lie below the frozen 90 % interval, that is a WARN. Where it finds a smooth curve that is no sigmoid
            (`shape`), an ALERT is a WARN: it may be the forecast that was wrong and not the run.

    Raises:
        FrozenError: no evaluations, or not after the freeze, or no such rewards or variances; a fit with another end.
    """
    checks.check_kind("frozen", frozen, FrozenForecast, "pass freeze(fit(curve))", errors.FrozenError)
    checked = _evaluations(frozen, compute, reward, variance)
    _check_same_end(fit, float(checked[0][-1]))
    x, y, v, horizon = _in_blocks(frozen, *checked)
    forecast = frozen.mixture(x, v)
    mean, sd = forecast.moments()
    sharp, robust, z = _judge(forecast, y, horizon)
    smooth = fit is not None and fit.misfit == "shape"
    level = _level(sharp.peak, robust.peak, smooth=smooth)
    judged = robust if level == "ALERT" else sharp
    since = None if level is None else float(x[judged.start])
    low, high = frozen.bounds
    lower, upper = np.maximum(mean - SDS_TO_A_SIDE * sd, low), np.minimum(mean + SDS_TO_A_SIDE * sd, high)
    left = len(y) > 1 and bool((y[-2:] < lower[-2:]).all())
    fall = None
    found = _fall(fit, checked[0]) if fit is not None and level is None and left else None
    if found is not None:
        level, (since, fall) = "WARN", found
    predicted = Estimate(float(mean[-1]), float(lower[-1]), float(upper[-1]))
    said = _sentence(frozen, level, since, x[-1], predicted, float(y[-1]), fall)
    doubt = DOUBT if smooth and level is not None else None
    return Watch(
        name=frozen.name,
        unit=frozen.unit,
        level=level,
        since_compute=since,
        e_value=sharp.peak,
        e_value_robust=robust.peak,
        compute=x,
        reward=y,
        z=z,
        expected=mean,
        lower=lower,
        upper=upper,
        sentence=said if doubt is None else f"{said} {doubt}",
        fall=fall,
        doubt=doubt,
    )


def _check_same_end(fit: Fit | None, last: float) -> None:
    if fit is None:
        return
    checks.check_kind("fit", fit, Fit, "pass fit(curve) of the whole run", errors.FrozenError)
    if fit.curve.now != last:
        raise errors.FrozenError(
            "fit", f"it ends at {fit.curve.now:g}", f"the evaluations end at {last:g}", "fit the run up to the last one"
        )


def _fall(fit: Fit, compute: FloatArray) -> tuple[float, str] | None:
    """The fall that the fit finds and that nothing has made up for, if it began with these evaluations: the first that
    is down, and what the fit says."""
    found = fit.misfit_detail
    if found is None or found.since is None or not found.fallen:
        return None
    before = fit.curve.compute[fit.curve.compute < compute[0]]  # a fall is dated by the last evaluation before it
    if len(before) and found.since < before[-1]:
        return None
    down = int(np.searchsorted(compute, found.since, side="right"))
    return float(compute[min(down, len(compute) - 1)]), found.sentence


def _judge(forecast: Mixture, reward: FloatArray, horizon: int) -> tuple[Evidence, Evidence, FloatArray]:
    """Sharp and robust evidence, and the sharp innovations."""
    below = reward < forecast.moments()[0]
    z = innovations(forecast, reward[None, :])[0]
    clipped = innovations(forecast, reward[None, :], clip=CLIP)[0]
    return evidence(z, horizon, below), evidence(clipped, horizon, below), z


def _level(sharp: float, robust: float, *, smooth: bool) -> str | None:
    if robust >= ALERT_THRESHOLD:
        return "WARN" if smooth else "ALERT"
    return "WARN" if sharp >= WARN_THRESHOLD else None


def _in_blocks(
    frozen: FrozenForecast, x: FloatArray, y: FloatArray, v: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray | None, int]:
    """Evaluations, averaged over equal blocks where there are or will be too many, and the horizon in blocks."""
    size = -(-max(frozen.horizon, len(x)) // _MOST)
    blocks = len(x) // size
    if size == 1 or blocks == 0:
        return x, y, v, frozen.horizon
    cut = slice(len(x) - blocks * size, None)  # the newest one belongs to a whole block
    usual = np.full(len(x), frozen.last_variance) if v is None else v
    x, y, spread = (part[cut].reshape(blocks, size).mean(axis=1) for part in (x, y, usual))
    return x, y, spread / size, max(1, frozen.horizon // size)


def _evaluations(
    frozen: FrozenForecast, compute: npt.ArrayLike, reward: npt.ArrayLike, variance: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    try:
        return _checked(frozen, compute, reward, variance)
    except errors.CurveError as error:  # it says what is wrong with a column; here it does not follow the freeze
        raise errors.FrozenError(error.field, error.value, error.message, error.way_out) from error


def _checked(
    frozen: FrozenForecast, compute: npt.ArrayLike, reward: npt.ArrayLike, variance: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    x, y = checks.numbers("compute", compute, one_will_do=True), checks.numbers("reward", reward, one_will_do=True)
    if len(x) == 0 or len(x) != len(y):
        raise errors.FrozenError(
            "reward", f"{len(y)} for {len(x)}", "one per compute and at least one is needed", "pair them up"
        )
    checks.check_finite("compute", x)
    checks.check_finite("reward", y)
    if x[0] <= frozen.at_compute or (np.diff(x) <= 0).any():
        raise errors.FrozenError(
            "compute",
            checks.short(x.tolist()),
            f"it must increase from {frozen.at_compute:g} {frozen.unit}",
            "pass only evaluations after the freeze, in order",
        )
    checks.check_order(x)
    low, high = frozen.bounds
    checks.check_range(y, low, high)
    v = checks.column_of("variance", variance, len(x), 0.0, (high - low) ** 2)
    checks.check_variance(v, high - low)
    return x, y, None if v is None else np.where(v > 0, v, frozen.last_variance)


def _sentence(
    frozen: FrozenForecast,
    level: str | None,
    since: float | None,
    now: float,
    predicted: Estimate,
    actual: float,
    fall: str | None,
) -> str:
    here = f"{actual:.2f} at {compute_text(now)} {frozen.unit}, forecast {level_text(predicted)}"
    if fall is not None:
        return f"{frozen.name} may be falling below its own forecast: {here}. {fall}."
    if level is None or since is None:
        stands = "is below its forecast, which may be chance" if actual < predicted.lower else "follows its forecast"
        return f"{frozen.name} {stands}: {here}."
    verb = "fell below" if level == "ALERT" else "may be falling below"
    return f"{frozen.name} {verb} its own forecast: {here}, since {compute_text(since)} {frozen.unit}."
