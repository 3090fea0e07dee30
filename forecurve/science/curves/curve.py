"""A validation curve: what was measured, in which unit, and how noisy each evaluation is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forecurve.limits import MOST_COMPUTE

from .. import checks, errors
from ..arrays import BoolArray, FloatArray, IntArray
from .arms import arm_of
from .columns import check_agreement, longer, next_of, tallies_of, with_start
from .evaluation import Evaluation
from .granularity import LOOKED_AT, answers_told_by, are_of, is_told
from .noise import (
    LEVEL_OF,
    SOURCES,
    SamplingNoise,
    filled,
    latest,
    levels_of,
    next_level,
    next_noise,
    next_number,
    numbers_of,
    sampling_noise,
    smoothed_binomial,
)
from .room import Columns, Room, one_more

_FEWEST_GAPS = 3

DEFAULT_UNIT = "compute units"


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Evaluations of one run in the order of compute.

    Args:
        compute: compute spent at each evaluation, strictly increasing, in `unit`; shape (N,). 0 is allowed for the
            first one and is a measurement of R0.
        reward: mean pass rate at each evaluation, inside `bounds`; shape (N,).
        unit: the unit of compute, e.g. "GPU-hours"; it is in every sentence, and nothing is converted.
        name: what the run is called in sentences and JSON.
        prompts: prompts in an evaluation: one number, or one per evaluation (None or NaN where unknown).
        samples: samples per prompt, likewise.
        variance: known sampling variance of each evaluation, shape (N,); goes before counts and prompts.
        counts: successes per prompt of each evaluation (prompts in a fixed order), or None where unknown;
            needs `samples`.
        start: the measured reward at zero compute, where it is not among the points. It is put in front as an
            evaluation with the noise of the first one.
        seed: the seed of the run.
        bounds: the range of the reward.
        restarts: compute at which the run was resumed from a checkpoint, if it was: what an evaluation holds beside the
            curve and sampling noise does not carry over from one segment to the next.

    Attributes:
        answers: in each evaluation, as the rewards themselves tell where nobody says any size (`granularity`), or those
            of runs like it (`of_answers`).
        sizes: answers in each evaluation, shape (N,); of one of which that is unknown those of the one before, and NaN
            where it is of none.

    Raises:
        CurveError: one of its subclasses, naming field, value and way out.

    >>> curve = Curve([1, 2, 4, 8], [0.30, 0.41, 0.52, 0.58], unit="GPU-hours", prompts=1000, samples=16, start=0.2)
    >>> curve
    Curve('run': 5 evaluations to 8 GPU-hours, reward 0.2 to 0.58)
    """

    compute: FloatArray
    reward: FloatArray
    unit: str = DEFAULT_UNIT
    name: str = "run"
    prompts: FloatArray | None = None
    samples: FloatArray | None = None
    variance: FloatArray | None = None
    counts: tuple[IntArray | None, ...] | None = None
    start: float | None = None
    seed: int | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    restarts: tuple[float, ...] = ()
    noise: SamplingNoise = field(init=False)
    answers: int | None = field(init=False, default=None)
    sizes: FloatArray = field(init=False)
    _told_answers: int | None = field(init=False, default=None)
    _room: Room | None = field(init=False, default=None)

    def __init__(
        self,
        compute: npt.ArrayLike,
        reward: npt.ArrayLike,
        unit: str = DEFAULT_UNIT,
        name: str = "run",
        prompts: checks.PerPoint = None,
        samples: checks.PerPoint = None,
        variance: checks.PerPoint = None,
        counts: checks.Counts | None = None,
        start: float | None = None,
        seed: int | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        restarts: npt.ArrayLike = (),
    ):
        low, high = checks.bounds_of(bounds)
        x, y = checks.numbers("compute", compute), checks.numbers("reward", reward)
        if len(x) != len(y):
            raise errors.UnequalLengths(
                "reward", len(y), f"{len(x)} values are needed, one per compute", "pair them up"
            )
        size = len(x)
        per_point = {
            "prompts": checks.column_of("prompts", prompts, size, 1.0, checks.MOST_COUNTED),
            "samples": checks.column_of("samples", samples, size, 1.0, checks.MOST_COUNTED),
            "variance": checks.column_of("variance", variance, size, 0.0, (high - low) ** 2),
        }
        checks.check_variance(per_point["variance"], high - low)
        tallies = tallies_of(counts, per_point["samples"], size)
        checks.check_finite("compute", x)
        checks.check_finite("reward", y)
        if len(x):
            checks.check_order(x)
        checks.check_range(y, low, high)
        if start is not None:
            x, y, per_point, tallies = with_start(x, y, per_point, tallies, start, low, high)
        checks.check_size(x)
        check_agreement((y - low) / (high - low), tallies, per_point["samples"])
        for array in (x, y, *per_point.values()):
            if array is not None:
                array.flags.writeable = False
        values: dict[str, Any] = {
            "compute": x,
            "reward": y,
            "unit": checks.unit_of(unit),
            "name": "run" if name is None else str(name),
            **per_point,
            "counts": tallies,
            "start": start,
            "seed": checks.seed_of(seed),
            "bounds": (low, high),
            "restarts": checks.restarts_of(restarts),
        }
        rate = (y - low) / (high - low)
        values["answers"] = (
            None if is_told(per_point["prompts"], per_point["variance"], tallies) else answers_told_by(rate)
        )
        by_rewards = values["answers"] is not None
        if not by_rewards:
            number = filled(numbers_of(len(y), per_point["prompts"], per_point["samples"], tallies))
        else:
            number = np.full(len(y), float(values["answers"]))
        behind, told = latest(np.nan_to_num(number)), (per_point["samples"], per_point["variance"], tallies)
        values["sizes"] = number
        values["noise"] = sampling_noise(levels_of(rate), behind, high - low, number, *told, by_rewards)
        for key, value in values.items():
            object.__setattr__(self, key, value)

    @property
    def points(self) -> int:
        """Number of evaluations, the start included."""
        return len(self.compute)

    @property
    def now(self) -> float:
        """Compute of the last evaluation."""
        return float(self.compute[-1])

    @property
    def width(self) -> float:
        """Width of the range of rewards: what 1 is where they lie in [0, 1]."""
        return self.bounds[1] - self.bounds[0]

    @property
    def arm(self) -> str | None:
        """What it has in common with its other seeds, None without a seed. See `arm_of`."""
        return arm_of(self.name, self.seed)

    @property
    def identity(self) -> tuple[object, ...]:
        """Compute and reward as a key: curves that share it are copies of one run. Many runs that never moved have the
        same ones, so copies of such a run share its name and seed too."""
        told = self.compute.tobytes(), self.reward.tobytes()
        return told if np.ptp(self.reward) > 0 else (*told, self.name, self.seed)

    @property
    def continues(self) -> bool:
        """Whether it is another one `extended`, of whose evaluations nothing else is taken to be so than before."""
        return self._room is not None

    def of_answers(self, answers: int | None) -> Curve:
        """The same curve with evaluations of so many answers each, as runs like it tell: where nobody says any size and
        its own rewards tell none, but may be of so many."""
        if answers is None or self.noise.source != "unknown":
            return self
        rate = (self.reward - self.bounds[0]) / self.width
        if not are_of(rate, answers):
            return self
        sizes = np.full(self.points, float(answers))
        told = self.samples, self.variance, self.counts
        noise = sampling_noise(levels_of(rate), latest(sizes), self.width, sizes, *told, by_rewards=True)
        made = copy(self)
        made.__dict__.update(answers=answers, sizes=sizes, noise=noise, _told_answers=answers, _room=None)
        return made

    def until(self, compute: float) -> Curve:
        """The same curve as it was at `compute`: its evaluations and restarts up to and including it.

        Raises:
            CurveError: no number, or fewer than 3 evaluations.
        """
        at = checks.number("compute", compute)
        if math.isnan(at):
            raise errors.NotFinite("compute", at, "a number is needed", "say until where")
        upto = int(np.searchsorted(self.compute, at, side="right"))
        return self._part(slice(upto), [one for one in self.restarts if one <= at], 0.0, self.prompts)

    def part(self, kept: slice, since: float = 0.0) -> Curve:
        """Some of its evaluations as a curve of their own, each of as many answers as it is taken for here.

        Args:
            kept: which.
            since: where above 0, their compute is counted from there, and restarts up to there are left out.

        Raises:
            CurveError: fewer than 3 evaluations, or compute below `since`.
        """
        restarts = [one - since for one in self.restarts if one > since] if since else self.restarts
        bare = self.samples is None and self.counts is None and not np.isnan(self.sizes).all()
        made = self._part(kept, restarts, since, self.sizes if bare else self.prompts)
        if self.answers is not None:  # its sizes are no better known than those of the whole
            made.__dict__["noise"] = replace(made.noise, source=self.noise.source)
        return made

    def _part(self, kept: slice, restarts: Sequence[float], since: float, prompts: FloatArray | None) -> Curve:
        columns: dict[str, Any] = {
            name: None if column is None else column[kept]
            for name, column in (
                ("prompts", prompts),
                ("samples", self.samples),
                ("variance", self.variance),
                ("counts", self.counts),
            )
        }
        return Curve(
            self.compute[kept] - since,
            self.reward[kept],
            unit=self.unit,
            name=self.name,
            seed=self.seed,
            bounds=self.bounds,
            restarts=restarts,
            **columns,
        )

    def extended(self, new: Evaluation) -> Curve:
        """The same curve with one more evaluation; only that one is looked at.

        Raises:
            CurveError: as for a whole curve.
        """
        low, high = self.bounds
        compute, reward = checks.number("compute", new.compute), checks.number("reward", new.reward)
        if not (self.now < compute <= MOST_COMPUTE and low <= reward <= high):
            self._refuse(np.array([compute]), np.array([reward]))
        given = {
            "prompts": next_of("prompts", new.prompts, self.prompts),
            "samples": next_of("samples", new.samples, self.samples),
            "variance": checks.column_of("variance", new.variance, 1, 0.0, (high - low) ** 2),
        }
        checks.check_variance(given["variance"], high - low)
        rate, scale = (reward - low) / (high - low), high - low
        tallies = None
        if new.counts is not None:
            tallies = tallies_of([new.counts], given["samples"], 1)
            check_agreement(np.array([rate]), tallies, given["samples"])
        level = next_level([(one - low) / scale for one in self.reward[1 - LEVEL_OF :].tolist()], rate)
        if self._tells_otherwise(rate, given, tallies):
            return self._rebuilt(compute, reward, given, tallies)
        number = self._next_number(given, tallies)
        *before, latest_size = self.sizes[1 - LEVEL_OF :].tolist()
        if self.samples is None and given["samples"] is not None:  # of those before they are unknown
            return self._rebuilt(compute, reward, given, tallies)
        if math.isnan(number):
            number = latest_size
        elif math.isnan(latest_size):  # it says how large those before are taken to be
            return self._rebuilt(compute, reward, given, tallies)
        behind = 0.0 if math.isnan(number) else sum((*before, latest_size, number))
        if tallies is None and given["variance"] is None:
            one = next_noise(level, behind, number, scale, self.answers is not None)
        else:
            told = np.array([number]), given["samples"], given["variance"], tallies
            one = sampling_noise(np.array([level]), np.array([behind]), scale, *told)
        if SOURCES.index(one.source) < SOURCES.index(self.noise.source):  # more is known, and of all of them assumed
            return self._rebuilt(compute, reward, given, tallies)
        variance = self.noise.variance[-1] if one.source == "unknown" else one.variance[0]
        columns, room = self._one_more(compute, reward, given, number, float(variance))
        noise = SamplingNoise(columns.pop("noise"), self.noise.source)
        longer = Curve.__new__(Curve)
        longer.__dict__.update(vars(self), **columns, counts=self._counts_and(tallies), noise=noise, _room=room)
        return longer

    @property
    def recent_gap(self) -> float:
        """Compute between two evaluations, on average over the later half of them: they may come in bursts, or ever
        less often.

        >>> Curve([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0], [0.1, 0.2, 0.3, 0.3, 0.4, 0.4, 0.4]).recent_gap
        2.0
        """
        gaps = max(self.points // 2, min(_FEWEST_GAPS, self.points - 1))
        return float((self.compute[-1] - self.compute[-1 - gaps]) / gaps)

    @property
    def restarts_ahead(self) -> tuple[float, ...]:
        """Those at or after the last evaluation: an evaluation behind them has nothing of the wandering part so far."""
        return tuple(restart for restart in self.restarts if restart >= self.now)

    def resumed_before(self, compute: FloatArray) -> BoolArray:
        """Whether one of `restarts_ahead` lies before each place, of its shape."""
        return np.asarray(compute > min(self.restarts_ahead, default=np.inf))

    def noise_at(self, reward: FloatArray) -> FloatArray:
        """Nominal sampling variance of an evaluation like the last one, were the curve at these rewards; that of the
        last one itself where the size of evaluations is unknown. Shapes are kept."""
        last = float(self.noise.variance[-1])
        sizes = self.sizes[-LEVEL_OF:].tolist()
        number, behind = sizes[-1], sum(sizes)
        if math.isnan(number):
            return np.full(reward.shape, last)
        low, width = self.bounds[0], self.width
        *before, rate = ((self.reward[-LEVEL_OF:] - low) / width).tolist()
        level = next_level(before, rate)
        at = smoothed_binomial((reward - low) / width, np.array(number), np.array(behind))
        return np.asarray(last * at / smoothed_binomial(level, number, behind))

    def _next_number(self, given: dict[str, FloatArray | None], tallies: tuple[IntArray | None, ...] | None) -> float:
        """Answers in one more evaluation, NaN where unknown."""
        if self.answers is not None:
            return float(self.answers)
        if self.samples is not None and given["samples"] is None:
            return math.nan
        return next_number(given["prompts"], given["samples"], tallies)

    def _tells_otherwise(
        self, rate: float, given: dict[str, FloatArray | None], tallies: tuple[IntArray | None, ...] | None
    ) -> bool:
        """Whether one more evaluation changes what the rewards tell of the answers behind each."""
        if self.answers is None and self.noise.source != "unknown":
            return False  # sizes are told
        if is_told(given["prompts"], given["variance"], tallies):
            return self.answers is not None
        if self.points >= LOOKED_AT:
            return False
        rates = np.append((self.reward - self.bounds[0]) / self.width, rate)
        answers, told = answers_told_by(rates), self._told_answers
        if answers is None and told is not None and are_of(rates, told):
            answers = told
        return answers != self.answers

    def _refuse(self, compute: FloatArray, reward: FloatArray) -> None:
        """Say what keeps one more evaluation from coming next; each of shape (1,)."""
        checks.check_finite("compute", compute, offset=self.points)
        checks.check_finite("reward", reward, offset=self.points)
        checks.check_order(np.concatenate([self.compute[-1:], compute]), offset=self.points - 1)
        checks.check_range(reward, *self.bounds, offset=self.points)

    def _one_more(
        self, compute: float, reward: float, given: dict[str, FloatArray | None], number: float, variance: float
    ) -> tuple[Columns, Room]:
        """Every column with its next value, NaN where unknown, and their room."""
        columns = {"compute": self.compute, "reward": self.reward, "noise": self.noise.variance, "sizes": self.sizes}
        values = {"compute": compute, "reward": reward, "noise": variance, "sizes": number}
        for name, last in given.items():
            column = getattr(self, name)
            if column is not None or last is not None:
                columns[name] = np.full(self.points, np.nan) if column is None else column
                values[name] = np.nan if last is None else float(last[0])
        return one_more(columns, values, self._room)

    def _counts_and(self, last: tuple[IntArray | None, ...] | None) -> tuple[IntArray | None, ...] | None:
        """The counts with those of one more evaluation; None where none are known."""
        if last is None and self.counts is None:
            return None
        return *(self.counts or (None,) * self.points), *(last or (None,))

    def _rebuilt(
        self,
        compute: float,
        reward: float,
        given: dict[str, FloatArray | None],
        tallies: tuple[IntArray | None, ...] | None,
    ) -> Curve:
        size = self.points + 1
        columns: dict[str, Any] = {name: longer(getattr(self, name), given[name], size) for name in given}
        return Curve(
            np.append(self.compute, compute),
            np.append(self.reward, reward),
            unit=self.unit,
            name=self.name,
            counts=self._counts_and(tallies),
            seed=self.seed,
            bounds=self.bounds,
            restarts=self.restarts,
            **columns,
        )

    def __len__(self) -> int:
        return self.points

    def __repr__(self) -> str:
        return (
            f"Curve({self.name!r}: {self.points} evaluations to {self.now:g} {self.unit}, "
            f"reward {self.reward.min():.3g} to {self.reward.max():.3g})"
        )
