"""What a door takes for a run: its curve or the fit of it, by itself or under a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

from ..checks import check_kind
from ..curves.curve import Curve
from ..errors import FieldError
from ..posterior.prior import Prior
from .fit import Fit, fit

Runs = Sequence[Curve | Fit] | Mapping[str, Curve | Fit]


def fit_of(field: str, one: Curve | Fit, error: type[FieldError], prior: str | Prior = "none") -> Fit:
    """The fit as it is, or that of the curve; anything else is refused."""
    check_kind(field, one, (Curve, Fit), "pass Curve(...) or fit(...)", error)
    return one if isinstance(one, Fit) else fit(one, prior=prior)


def fits_of(arms: Runs, error: type[FieldError], prior: str | Prior = "none") -> list[Fit]:
    """Of several runs; those of a mapping go by its names."""
    check_kind("arms", arms, (Sequence, Mapping), "pass a list of runs, or name -> run", error)
    if not isinstance(arms, Mapping):
        return [fit_of(f"arms[{at}]", one, error, prior) for at, one in enumerate(arms)]
    return [_named(fit_of(f"arms[{name!r}]", one, error, prior), str(name)) for name, one in arms.items()]


def _named(found: Fit, name: str) -> Fit:
    """The same fit with all that it has computed, of a curve of that name."""
    if found.curve.name == name:
        return found
    curve, named = copy(found.curve), copy(found)
    object.__setattr__(curve, "name", name)
    object.__setattr__(named, "curve", curve)
    return named
