"""Priors of (A, ln B, ln C_mid): always proper, always with a flat part that lets the data overrule them.

The flat part: R0 ~ U(0, 1), A by the usual rise from there (`usual_rise`), ln C_mid uniform on a box relative to the
data's range of compute, ln B about the usual exponents; each leaves all of its range open. An informative
prior is 0.9 x (independent Student-t with 6 degrees of freedom) + 0.1 x flat ("robust MAP").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln, ndtr

from .. import errors
from ..arrays import FloatArray
from ..checks import as_float, bounds_of, check_kind, short, whole_of
from ..curves.noise import NoiseKnown

if TYPE_CHECKING:
    from ..curves.curve import Curve

# B outside 0.2 to 10 is a straight line or a step on any real run.
LOG_B_BOX = (float(np.log(0.2)), float(np.log(10.0)))
USUAL_LOG_B = (0.61, 1.0)
"""Mean and sd of ln B in the flat part, cut to the box: the centre of ScaleRL's Table 1, at four times and more the
spread of its rows."""
# C_mid from a twentieth of the first evaluation to twenty times the last one.
C_MID_REACH = 20.0
_LOG_ROOT_TWO_PI = float(0.5 * np.log(2 * np.pi))
_GIVE_PAIR = "give (mean, sd)"
_MEANS = {"A": (-np.inf, np.inf), "log_B": (-7.0, 7.0), "log_C_mid": (-75.0, 100.0)}
_SDS = {"A": (1e-6, 1e6), "log_B": (1e-3, 5.0), "log_C_mid": (1e-3, 50.0)}
"""Of what is told: a wider one asks for curves beyond what a float can hold, a narrower one for finer ones than a
lattice gets. A's are shares of the range of rewards."""
_MOST_DOF = 1e9  # a normal, to all digits
TELLING_RUNS = 3
"""Fewer past runs than these do not tell how far runs leave their curves, nor what forecasts get wrong."""


@dataclass(frozen=True)
class Prior:
    """What is known of a run before its own data.

    Args:
        name: what sentences call it.
        A, log_B, log_C_mid: (mean, sd), or None where nothing is known. The sd of A is from 1e-6 to 1e6 of the range of
            rewards; ln B has a mean from -7 to 7 and an sd from 0.001 to 5, ln C_mid from -75 to 100 and from 0.001 to
            50.
        weight: share of the informative part; the rest is flat.
        dof: degrees of freedom of its Student-t tails, above 2: with fewer they have no sd.
        bounds: the range of rewards in which A is told, the curve's own where left out. For a curve with another range
            A is moved along: what is known is a share of the range.
        unit: the unit of compute in which ln C_mid is told, the curve's own where left out. It is not converted.
        noise: what is known of the evaluations' noise, the usual where left out.
        answers: in each evaluation, where nobody says it of a run and its rewards may be of so many.
        runs: finished runs that it is made of, where it is made of runs. Fewer than 3 tell how runs lie to one another,
            and not how far they leave their curves (`drift`).
        ahead: runs that are not finished, of which it is made besides.

    Raises:
        FieldError: one of these that cannot be.
    """

    name: str
    A: tuple[float, float] | None = None
    log_B: tuple[float, float] | None = None
    log_C_mid: tuple[float, float] | None = None
    weight: float = 0.9
    dof: float = 6.0
    bounds: tuple[float, float] | None = None
    unit: str | None = None
    noise: NoiseKnown | None = None
    answers: int | None = None
    runs: int | None = None
    ahead: int = 0

    def __post_init__(self) -> None:
        told: dict[str, Any] = {"weight": _number("weight", self.weight), "dof": _number("dof", self.dof)}
        told |= {what: _pair(what, getattr(self, what)) for what in _SDS}
        told["bounds"] = None if self.bounds is None else bounds_of(self.bounds)
        for what, value in told.items():
            object.__setattr__(self, what, value)
        if not 0 <= self.weight < 1:
            way_out = "give a weight of at least 0 and below 1"
            raise errors.PriorError("weight", self.weight, "the flat part needs a share", way_out)
        if not 2 < self.dof <= _MOST_DOF:
            way_out = f"give more than 2, at most {_MOST_DOF:g}"
            raise errors.PriorError("dof", self.dof, "tails need an sd, which they have above 2", way_out)
        if self.bounds is not None:  # else once a curve tells its range, see `of_share`
            _check_place("A", self.A, self.bounds[1] - self.bounds[0])
        _check_place("log_B", self.log_B)
        _check_place("log_C_mid", self.log_C_mid)
        self._check_rest()

    def _check_rest(self) -> None:
        """What is no number."""
        check_kind("name", self.name, str, "call it by a text", errors.PriorError)
        if self.unit is not None:
            check_kind("unit", self.unit, str, "name it, or leave it out", errors.PriorError)
        if self.noise is not None:
            check_kind(
                "noise", self.noise, NoiseKnown, "leave it out, or take that of sibling_prior", errors.PriorError
            )
        if self.answers is not None:
            way_out = "say how many answers an evaluation rests on, or leave it out"
            whole_of("answers", self.answers, errors.PriorError, way_out, least=1)
        if self.runs is not None:
            whole_of("runs", self.runs, errors.PriorError, "say how many runs it is made of, or leave it out")
        whole_of("ahead", self.ahead, errors.PriorError, "say how many more runs it is made of, or leave it out")

    @property
    def informative(self) -> bool:
        """Whether it says anything beyond the flat part."""
        return self.weight > 0 and any(pair is not None for pair in (self.A, self.log_B, self.log_C_mid))

    def of_share(self, curve: Curve) -> Prior:
        """The same prior with A as a share of the range of rewards, as the fit of that curve sees it.

        Raises:
            PriorError: C_mid is known in another unit of compute than the curve's, or A outside its range.
        """
        if self.log_C_mid is not None and self.unit not in (None, curve.unit):
            raise errors.PriorError(
                "unit", self.unit, f"the curve counts {curve.unit}", "convert one of them, or leave C_mid out"
            )
        if self.A is None:
            return self
        low, high = self.bounds or curve.bounds
        mean, sd = self.A
        if not low <= mean <= high:
            raise errors.PriorError(
                "A", mean, f"a ceiling lies in [{low:g}, {high:g}]", "give it there, or state bounds=(low, high)"
            )
        return replace(self, A=((mean - low) / (high - low), sd / (high - low)), bounds=(0.0, 1.0))


def _number(what: str, value: object) -> float:
    """As it is told, finite or not."""
    try:
        return as_float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.PriorError(what, short(value), "a number is needed", "leave it out for the usual one") from error


def _pair(what: str, pair: object) -> tuple[float, float] | None:
    """(mean, sd), finite and the sd positive."""
    if pair is None:
        return None
    try:
        mean, sd = (as_float(value) for value in pair)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.PriorError(what, short(pair), "two numbers are needed", _GIVE_PAIR) from error
    if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
        raise errors.PriorError(what, short(pair), "a finite mean and a positive sd are needed", _GIVE_PAIR)
    return mean, sd


def _check_place(what: str, pair: tuple[float, float] | None, scale: float = 1.0) -> None:
    """That mean and sd, in units of `scale`, are where a fit can see them."""
    if pair is None:
        return
    (low, high), (least, most) = _MEANS[what], _SDS[what]
    if not low <= pair[0] / scale <= high:
        raise errors.PriorError(what, pair, f"a mean from {low * scale:g} to {high * scale:g} is needed", _GIVE_PAIR)
    if not least <= pair[1] / scale <= most:
        raise errors.PriorError(what, pair, f"an sd from {least * scale:g} to {most * scale:g} is needed", _GIVE_PAIR)


FLAT = Prior("none", weight=0.0)

# ScaleRL's Table 1 (10 runs; Polaris maths, 8B and Scout): A .619 sd .038, ln B .61 sd .22, which sqrt(1 + 1/10) and
# what runs of one recipe still differ by, .02 and .15, make .045 and .28; told a little wider, for runs like these and
# for others. Its C_mid (3.6k GB200-hours) depends on model, batch and hardware: left flat.
PAPER = Prior("the paper's table", A=(0.619, 0.05), log_B=(0.61, 0.30), bounds=(0.0, 1.0))


def named_prior(prior: str | Prior, *beside: str) -> Prior:
    """`none`, `paper`, or a Prior as it is; `beside`: what else the door takes, for the way out."""
    if isinstance(prior, Prior):
        return prior
    known = {"none": FLAT, "paper": PAPER}
    if not isinstance(prior, str) or prior not in known:
        names = ", ".join(map(repr, (*known, *beside)))
        way_out = f"use {names} or a Prior, as Siblings(curves).prior() makes of past runs"
        raise errors.PriorError("prior", short(prior), "no such prior", way_out)
    return known[prior]


def student_t(x: FloatArray, mean: float, sd: float | FloatArray, dof: float) -> FloatArray:
    """Log density of a Student-t scaled so that `sd`, which broadcasts with `x`, is its standard deviation."""
    apart = (x - mean) / (sd * student_t_scale(1.0, dof))
    return np.asarray(student_t_constant(1.0, dof) - np.log(sd) - (dof + 1) / 2 * np.log1p(apart**2 / dof))


def student_t_scale(sd: float, dof: float) -> float:
    """The scale at which `sd` is its standard deviation."""
    return sd * float(np.sqrt((dof - 2) / dof))


def student_t_constant(sd: float, dof: float) -> float:
    """Its log density at the mean."""
    spread = np.log(student_t_scale(sd, dof))
    return float(gammaln((dof + 1) / 2) - gammaln(dof / 2) - 0.5 * np.log(dof * np.pi) - spread)


@dataclass(frozen=True)
class Box:
    """The range of (ln B, ln C_mid) that a fit looks at."""

    log_b: tuple[float, float]
    log_mid: tuple[float, float]

    @property
    def area(self) -> float:
        """Of the whole."""
        return (self.log_b[1] - self.log_b[0]) * (self.log_mid[1] - self.log_mid[0])

    @property
    def log_density_mid(self) -> float:
        """Log density of ln C_mid in the flat part."""
        return -float(np.log(self.log_mid[1] - self.log_mid[0]))

    def log_density_b(self, log_b: FloatArray) -> FloatArray:
        """Log density of ln B in the flat part, at places inside the box."""
        mean, sd = USUAL_LOG_B
        low, high = ((end - mean) / sd for end in self.log_b)
        mass = float(ndtr(high) - ndtr(low))
        return np.asarray(-0.5 * ((log_b - mean) / sd) ** 2 - np.log(sd * mass) - _LOG_ROOT_TWO_PI)


def box_of(prior: Prior, compute: FloatArray) -> Box:
    """The flat part's box, widened so that the informative part (4 sd) fits in."""
    first, last = float(compute[np.searchsorted(compute, 0.0, side="right")]), float(compute[-1])
    mid = (float(np.log(first / C_MID_REACH)), float(np.log(last * C_MID_REACH)))
    if not prior.informative:
        return Box(LOG_B_BOX, mid)
    return Box(_widen(LOG_B_BOX, prior.log_B), _widen(mid, prior.log_C_mid))


def _widen(box: tuple[float, float], pair: tuple[float, float] | None) -> tuple[float, float]:
    if pair is None:
        return box
    return min(box[0], pair[0] - 4 * pair[1]), max(box[1], pair[0] + 4 * pair[1])
