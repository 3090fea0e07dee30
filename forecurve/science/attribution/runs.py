"""What a comparison needs of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from .. import errors
from ..arrays import FloatArray
from ..checks import check_kind
from ..curves.curve import Curve
from ..departures.misfit import HOLDS
from ..fitting.fit import Fit
from ..posterior.draws import Draws
from ..posterior.sigmoid import compute_at

OneRun = TypeVar("OneRun", bound=Curve | Fit)

# ln compute beyond the evaluations: further than this the draws say only "much earlier" or "much later, or never"
_BEFORE, _AFTER = 2.0, 3.0


@dataclass(frozen=True, eq=False)
class Run:
    """One run, seen through the posterior of its curve under the flat prior.

    Attributes:
        name: as in its curve.
        draws: A, B, C_mid and R0, equally weighted.
        first, now: compute of the first evaluation after the start, and of the last.
        identified: whether its ceiling is.
        misfit: why one sigmoid is the wrong curve, or None.
        decide_at: compute at which its ceiling will be identified; None when that is not near.
    """

    name: str
    draws: Draws
    first: float
    now: float
    identified: bool = True
    misfit: str | None = None
    decide_at: float | None = None

    @property
    def usable(self) -> bool:
        """Whether a ceiling can be read at all."""
        return self.misfit in HOLDS

    @cached_property
    def reached(self) -> FloatArray:
        """Draws of the curve at the last evaluation, (K,): a lower bound of the ceiling that needs no extrapolation."""
        return np.asarray(self.draws.reward_at(self.now)[0])

    @cached_property
    def middle(self) -> tuple[float, float, float]:
        """Medians of the start, of the level reached and of the ceiling."""
        start, reached, ceiling = np.median([self.draws.R0, self.reached, self.draws.A], axis=1)
        return float(start), float(reached), float(ceiling)

    def log_compute_to(self, level: float, ceiling: float | None = None) -> FloatArray:
        """Draws of ln C at which the curve reaches `level`, (K,), cut where they only say much earlier or never; with
        `ceiling` those of the curve that ends there and is else the same."""
        d = self.draws
        top = d.A if ceiling is None else np.full_like(d.A, ceiling)
        compute = compute_at(level, top, d.B, d.C_mid, d.R0)
        low, high = np.log(self.first) - _BEFORE, np.log(self.now) + _AFTER
        with np.errstate(divide="ignore"):
            return np.clip(np.log(compute), low, high)


def runs_of(name: str, given: object, error: type[errors.FieldError]) -> list[Curve | Fit]:
    """The runs of an arm, of which one will do; copies of one run once."""
    field = f"arms[{name!r}]"
    check_kind(field, given, (Curve, Fit, Sequence), "pass Curve(...) or fit(...)", error)
    runs = [given] if isinstance(given, Curve | Fit) else list(cast(Sequence[Curve | Fit], given))
    if not runs:
        raise error(field, "no runs", "at least one run is needed", "leave the arm out")
    for one in runs:
        check_kind(field, one, (Curve, Fit), "pass Curve(...) or fit(...)", error)
    return distinct(runs)


def distinct(given: Sequence[OneRun]) -> list[OneRun]:
    """Copies of one run once: they are no replicates and say nothing of the spread between seeds."""
    kept = {(one.curve if isinstance(one, Fit) else one).identity: one for one in reversed(given)}
    return list(reversed(kept.values()))


def run_of(fit: Fit) -> Run:
    """The run behind a fit with the flat prior."""
    positive = fit.curve.compute[fit.curve.compute > 0]
    known = fit.ceiling_identified
    return Run(
        name=fit.curve.name,
        draws=fit.all_draws,
        first=float(positive[0]),
        now=fit.curve.now,
        identified=known,
        misfit=fit.misfit,
        decide_at=None if known else fit.decide_at(),
    )


def ceilings(runs: Sequence[Run]) -> list[FloatArray]:
    """Draws of each run's ceiling."""
    return [run.draws.A for run in runs]


def proven_ceilings(runs: Sequence[Run]) -> list[FloatArray]:
    """Draws of each run's ceiling where it is identified, of the level reached where it is not."""
    return [run.draws.A if run.identified else run.reached for run in runs]


def log_computes(runs: Sequence[Run], level: float, ceiling: float | None = None) -> list[FloatArray]:
    """Draws of ln C to a level, of each run; with `ceiling` as if all ended there."""
    return [run.log_compute_to(level, ceiling) for run in runs]


def standard_error(group: Sequence[FloatArray]) -> float:
    """Root mean square of the runs' own sd of a value, from the draws of each; 0 without runs."""
    return float(np.sqrt(np.mean([np.var(draws) for draws in group]))) if group else 0.0
