"""The runs that a plan is made of, and which of them are seeds of one arm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..attribution.runs import runs_of
from ..checks import check_kind
from ..curves.curve import Curve
from ..errors import FieldError
from ..fitting.fit import Fit
from ..fitting.given import Runs, fits_of
from ..posterior.prior import Prior

Seeds = Sequence[Curve | Fit] | Mapping[str, Curve | Fit]
Arms = Runs | Mapping[str, Curve | Fit | Seeds]


@dataclass(frozen=True)
class Grouped:
    """Runs, those of one arm side by side.

    Attributes:
        fits: of the runs, each under its own name, K of them.
        arms: names, A of them.
        sizes: how many runs each arm has, (A,).
    """

    fits: list[Fit]
    arms: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def seed_of(self) -> list[str | None]:
        """Of each run the arm that has others as well, (K,)."""
        own = zip(self.arms, self.sizes, strict=True)
        return [arm if size > 1 else None for arm, size in own for _ in range(size)]


def grouped(arms: Arms, error: type[FieldError], prior: str | Prior = "none") -> Grouped:
    """What `plan` takes, as runs; what is none, an arm without any, or one of two that are called alike, is refused by
    `error`."""
    check_kind("arms", arms, (Sequence, Mapping), "pass a list of runs, or name -> run or its seeds", error)
    if not isinstance(arms, Mapping) or all(isinstance(one, Curve | Fit) for one in arms.values()):
        fits = fits_of(arms, error, prior)  # type: ignore[arg-type]
        return Grouped(fits, tuple(fit.curve.name for fit in fits), (1,) * len(fits))
    _check_distinct([str(name) for name in arms], error)
    own = {str(name): _runs(str(name), given, error) for name, given in arms.items()}
    often = Counter(_name(one) for runs in own.values() if not isinstance(runs, Mapping) for one in runs)
    named = {
        arm: runs if isinstance(runs, Mapping) else dict(zip(_names(arm, runs, often), runs, strict=True))
        for arm, runs in own.items()
    }
    # a run that is its arm's only one goes by its own name, which may be another arm's
    _check_distinct([arm if len(runs) > 1 else str(next(iter(runs))) for arm, runs in named.items()], error)
    flat = [fits_of({name: one}, error, prior)[0] for runs in named.values() for name, one in runs.items()]
    return Grouped(flat, tuple(named), tuple(len(runs) for runs in named.values()))


def _check_distinct(called: Sequence[str], error: type[FieldError]) -> None:
    """That no two arms are called alike."""
    twice = sorted(name for name, often in Counter(called).items() if often > 1)
    if twice:
        raise error("arms", f"{twice[0]!r} twice", "names must be distinct", "name every arm, and no run after another")


def _runs(arm: str, given: object, error: type[FieldError]) -> list[Curve | Fit] | Mapping[str, Curve | Fit]:
    """Of one arm."""
    if not isinstance(given, Mapping):
        return runs_of(arm, given, error)
    if not given:
        runs_of(arm, [], error)
    for name, one in given.items():
        check_kind(f"arms[{arm!r}][{name!r}]", one, (Curve, Fit), "pass Curve(...) or fit(...)", error)
    return given


def _name(one: Curve | Fit) -> str:
    return (one.curve if isinstance(one, Fit) else one).name


def _names(arm: str, runs: Sequence[Curve | Fit], often: Mapping[str, int]) -> list[str]:
    """What the seeds of an arm are called: as they are, where no two of all have one name."""
    if len(runs) == 1:
        return [arm]
    names = [_name(one) for one in runs]
    if all(often[name] == 1 for name in names):
        return names
    seeds = [(one.curve if isinstance(one, Fit) else one).seed for one in runs]
    told = all(seed is not None for seed in seeds) and len(set(seeds)) == len(seeds)
    return [f"{arm} s{seed}" for seed in seeds] if told else [f"{arm} ({at + 1})" for at in range(len(runs))]
