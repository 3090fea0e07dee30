"""Watch a live run against its frozen forecast.

Each evaluation after the freeze gives an innovation z (surprise.py), and an e-process collects the evidence for a fall
(evidence.py). WARN is the sharp form: threshold 20, so false in at most 5 % of the runs for which the forecast holds.
ALERT is the robust form: z is clipped at +-4 before the next evaluation is judged, and the threshold is 100, so false
in at most 1 %; and the other evaluations must speak for a fall too, whichever single one is left out, so that one
broken evaluation does not raise it. Both withstand a noise that is larger than assumed, because its scale is itself
uncertain in the forecast and is learned on the way. docs/science/watch.md has the figures.

What surprises depends on how noisy the run was believed to be. A run of which few noisy evaluations were known at the
freeze may fall to 0 and stay there without enough evidence. Where its fit of all evaluations so far is given, a fall
that this finds, and that has left the frozen forecast, is a WARN too.

Evidence is read off only at evaluations below the frozen forecast: a run that leaps above it is no fall, whatever the
innovations after the leap say. Nothing happens at an evaluation that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from .. import checks, errors
from ..arrays import FloatArray
from ..fitting.fit import Fit
from ..values import SDS_TO_A_SIDE, Estimate, jsonable
from .frozen import FrozenForecast
from .judged import Judged
from .standing import Standing
from .wording import watch_sentence

if TYPE_CHECKING:
    import plotly.graph_objects as go


Level = Literal["WARN", "ALERT"]
WARN_THRESHOLD = 20.0  # 1 / 0.05, by Ville's inequality
ALERT_THRESHOLD = 100.0  # 1 / 0.01
OTHERS = 2.0  # evidence that is left for an ALERT without any one evaluation
DOUBT = "Its curve is smooth, but bends otherwise than a sigmoid does: the forecast may be what was wrong."


@dataclass(frozen=True, eq=False, repr=False)
class Watch:
    """The verdict on all evaluations after the freeze.

    Attributes:
        name, unit: of the run.
        level: None, "WARN" (sharp evidence, or a fall that the fit finds) or "ALERT" (robust evidence); once reached by
            evidence it stays.
        since_compute: compute of the evaluation from which the fall most likely began; None without a level.
        e_value, e_value_robust: the largest evidence so far; thresholds are 20 and 100.
        e_value_others: the least of the latter that is left whichever single evaluation is left out; an ALERT asks for
            2 of it.
        compute, reward: what was judged, shape (H,): evaluations, and beyond 400 of them means of neighbours with, at
            the end, the last evaluation by itself (`judged`).
        z: its innovations, (H,).
        expected, lower, upper: the frozen forecast of each by itself: its mean, and 1.645 standard deviations to each
            side of it, all within the range of rewards; (H,).
        fall: what the fit of all evaluations says of a fall that the evidence does not show: why it is a WARN, or while
            the run has not left the forecast, without a level.
        doubt: why the forecast, and not the run, may be what was wrong; None where nothing speaks for that.
    """

    name: str
    unit: str
    level: Level | None
    since_compute: float | None
    e_value: float
    e_value_robust: float
    e_value_others: float
    compute: FloatArray
    reward: FloatArray
    z: FloatArray
    expected: FloatArray
    lower: FloatArray
    upper: FloatArray
    fall: str | None = None
    doubt: str | None = None
    _standing: Standing | None = None

    @property
    def sentence(self) -> str:
        """One line: how the run stands to its forecast."""
        return watch_sentence(self)

    @property
    def predicted(self) -> Estimate:
        """The frozen forecast of the last evaluation, 90 %."""
        return Estimate(float(self.expected[-1]), float(self.lower[-1]), float(self.upper[-1]))

    @property
    def actual(self) -> float:
        """The last evaluation."""
        return float(self.reward[-1])

    @property
    def is_above(self) -> bool:
        """Whether the last evaluation is above its 90 %."""
        return self.actual > self.predicted.upper

    @property
    def back_since(self) -> float | None:
        """From which compute on the run is within its forecast again, or above it; None while it is not, or never left.

        Two evaluations in a row make it back, and two in a row that are below take it down again: a single one may be
        chance, unless it is the one that the fall began with. A fall within a wide forecast never left it, and is no
        recovery from its first evaluation on.
        """
        if self.since_compute is None:
            return None
        fell = int(np.searchsorted(self.compute, self.since_compute))
        within = self.reward[fell:] >= self.lower[fell:]
        up, down = (np.flatnonzero(side[1:] & side[:-1]) for side in (within, ~within))
        left = down[-1] if len(down) else None if within[0] else 0
        back = up[:0] if left is None else up[up > left]
        return float(self.compute[fell + back[0]]) if len(back) else None

    @property
    def shortfall(self) -> float:
        """Predicted - actual."""
        return self.predicted.median - self.actual

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe."""
        values = ("e_value", "e_value_robust", "e_value_others", "actual", "shortfall")
        columns = ("compute", "reward", "z", "expected", "lower", "upper")
        names = ("name", "level", "since_compute", "back_since", "unit", "fall", "doubt", *values)
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
        return (
            f"Watch({self.name!r}: {self.level or 'fine'}{since}, {len(self.compute)} judged, "
            f"e-value {self.e_value:.3g} sharp, {self.e_value_robust:.3g} robust)"
        )


def watch(
    frozen: FrozenForecast,
    compute: npt.ArrayLike,
    reward: npt.ArrayLike,
    variance: npt.ArrayLike | None = None,
    *,
    restarts: npt.ArrayLike | None = None,
    fit: Fit | None = None,
    earlier: Watch | None = None,
) -> Watch:
    """Judge all evaluations after the freeze, in order.

    Args:
        frozen: the forecast.
        compute, reward: at least one evaluation, compute strictly increasing and after `frozen.at_compute`, rewards in
            the curve's range. Leave out what is missing.
        variance: nominal sampling variance of each, known from the same as the frozen curve's was
            (`Curve.noise.variance`). Where left out, or 0 or NaN, that of `fit`'s curve, relative to its own at the
            freeze where that is now known from something else; without a fit the last one's before the freeze.
        restarts: compute at which the run was resumed from a checkpoint; those of `fit`'s curve where left out.
        fit: of the run up to the last of these evaluations, made by itself (no siblings). Where it finds a collapse or
            a decline (`Fit.misfit`) that began with these evaluations and is not made up for, and the last two of
            them lie below the frozen 90 % interval, that is a WARN. Where it finds a smooth curve that is no sigmoid
            (`shape`), an ALERT is a WARN: it may be the forecast that was wrong and not the run.
        earlier: what was said of the run before. The answer is the same without it. With it an evaluation that is
            judged already, and no other than it was, is not judged again: one more costs as much after 500 as after
            5. Give the last one, whatever has come since:

                verdict = None
                for count in range(1, len(compute) + 1):
                    verdict = watch(frozen, compute[:count], reward[:count], earlier=verdict)

    Raises:
        FrozenError: no evaluations, or not after the freeze, or no such rewards, variances or restarts; a fit with
            another end.
    """
    checks.check_kind("frozen", frozen, FrozenForecast, "pass freeze(fit(curve))", errors.FrozenError)
    every, rewards, given = _evaluations(frozen, compute, reward, variance)
    _check_same_end(fit, float(every[-1]))
    if earlier is not None:
        checks.check_kind("earlier", earlier, Watch, "pass what watch(...) gave", errors.FrozenError)
    resumed = _restarts(restarts, fit)
    rows = Judged.of(frozen, every, rewards, _variances(frozen, every, given, fit), resumed)
    standing = _standing(frozen, rows.complete_ones(), earlier)
    shown = standing.through(rows)  # with the last evaluation by itself
    y, mean, sd = rows.reward, shown.expected, shown.sd
    sharp, robust = standing.evidence
    smooth = fit is not None and fit.misfit == "shape"
    level = _level(sharp.peak, robust.peak if robust.others >= OTHERS else 0.0, smooth=smooth)
    since = None if level is None else float(rows.since[standing.start(robust=level == "ALERT")])
    sides = (0.0, -SDS_TO_A_SIDE, SDS_TO_A_SIDE)  # of a mean that what wanders may lead beyond the range
    expected, lower, upper = (np.clip(mean + side * sd, *frozen.bounds) for side in sides)
    left = len(y) > 1 and bool((y[-2:] < lower[-2:]).all())
    found = _fall(fit, every) if fit is not None and level is None else None
    if found is not None and left:
        level, since = "WARN", found[0]
    return Watch(
        name=frozen.name,
        unit=frozen.unit,
        level=level,
        since_compute=since,
        e_value=sharp.peak,
        e_value_robust=robust.peak,
        e_value_others=robust.others,
        compute=rows.compute,
        reward=y,
        z=shown.z[0],
        expected=expected,
        lower=lower,
        upper=upper,
        fall=None if found is None else found[1],
        doubt=DOUBT if smooth and level is not None else None,
        _standing=standing,
    )


def _standing(frozen: FrozenForecast, rows: Judged, earlier: Watch | None) -> Standing:
    """After these rows, from where it was earlier on."""
    before = None if earlier is None else earlier._standing
    begun = Standing.at_freeze(frozen) if before is None else before.back_to(frozen, rows)
    return begun.through(rows)


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


def _level(sharp: float, robust: float, *, smooth: bool) -> Level | None:
    if robust >= ALERT_THRESHOLD:
        return "WARN" if smooth else "ALERT"
    return "WARN" if sharp >= WARN_THRESHOLD else None


def _restarts(given: npt.ArrayLike | None, fit: Fit | None) -> tuple[float, ...]:
    if given is None:
        return () if fit is None else fit.curve.restarts
    with _told_of_the_freeze():
        return checks.restarts_of(given)


def _variances(frozen: FrozenForecast, x: FloatArray, given: FloatArray, fit: Fit | None) -> FloatArray:
    """Nominal sampling variance of each evaluation, in the unit in which the frozen noise is told."""
    known = np.full(len(x), np.nan)
    if fit is not None:
        curve, at = fit.curve, np.searchsorted(fit.curve.compute, x)
        same = curve.compute[np.minimum(at, curve.points - 1)] == x
        known[same] = curve.noise.variance[at[same]]
        if frozen.source not in (None, curve.noise.source):
            last_seen = max(int(np.searchsorted(curve.compute, frozen.at_compute, side="right")) - 1, 0)
            known *= frozen.last_variance / curve.noise.variance[last_seen]
    return np.where(given > 0, given, np.where(known > 0, known, frozen.last_variance))


def _evaluations(
    frozen: FrozenForecast, compute: npt.ArrayLike, reward: npt.ArrayLike, variance: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    with _told_of_the_freeze():
        return _checked(frozen, compute, reward, variance)


@contextmanager
def _told_of_the_freeze() -> Iterator[None]:
    """A `CurveError` says what is wrong with a column; here it does not follow the freeze."""
    try:
        yield
    except errors.CurveError as error:
        raise errors.FrozenError(error.field, error.value, error.message, error.way_out) from error


def _checked(
    frozen: FrozenForecast, compute: npt.ArrayLike, reward: npt.ArrayLike, variance: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
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
    return x, y, np.full(len(x), np.nan) if v is None else v
