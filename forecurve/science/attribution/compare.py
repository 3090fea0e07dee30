"""compare(arms, control) -> Comparison: did an arm move the ceiling, the efficiency, or nothing that can be shown?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .. import checks, errors
from ..curves.alike import check_one_range, check_one_unit
from ..curves.curve import Curve
from ..curves.margins import SAME_CEILING
from ..curves.order import place_of
from ..fitting.fit import Fit, fit
from ..wording import names_text
from .common_ceiling import paper_columns
from .comparison import Comparison
from .judge import Rules, judge
from .pool import ONE_RANGE
from .runs import run_of, runs_of
from .seeds import CEILING_SPREAD, COMPUTE_SPREAD, SeedSpread

OneOrSeveral = Curve | Fit | Sequence[Curve | Fit]


def compare(
    arms: Mapping[str, OneOrSeveral],
    control: str,
    *,
    rope: float | None = None,
    level: float = 0.95,
    seed_sd: float | SeedSpread | None = None,
    seed_sd_log_compute: float | SeedSpread | None = None,
) -> Comparison:
    """Compare the arms of a sweep with one control.

    Args:
        arms: name -> the curve of its run, or the curves of its seeds (or their fits), copies of one run counted once.
            The control is one of them.
        control: name of the arm that the others are compared with.
        rope: ceilings within +-rope of one another are the same in practice, in the reward's own scale; by default
            0.02 of its range.
        level: certainty of each verdict; claims of a difference are wrong with probability 1 - level at most, all of
            them together.
        seed_sd: the sd of the ceiling between seeds: a number when it is known (e.g. from past sweeps), a `SeedSpread`
            when it is roughly known, by default the paper's 0.0125 of the range of rewards as a rough guess.
            Replicates among the arms correct a rough one.
        seed_sd_log_compute: the same for the logarithm of the compute to a level; by default 0.20, a rough guess.

    Returns:
        One verdict an arm: ceiling (up, down), efficiency (faster, slower), no difference shown, or undecided with the
        seeds or the compute that would decide.

    Raises:
        CompareError: an unknown control, no other arm, mixed units or ranges of the reward.

    >>> import numpy as np
    >>> compute = [float(c) for c in range(0, 42, 2)]
    >>> def curve(A, seed):
    ...     noise = np.random.default_rng(seed).normal(0, 0.004, len(compute))
    ...     return Curve(compute, [0.2 + (A - 0.2) * c**2 / (c**2 + 25) + e for c, e in zip(compute, noise)])
    >>> sweep = {"base": [curve(0.6, 0), curve(0.6, 1)], "no-fp32": [curve(0.48, 2), curve(0.48, 3)]}
    >>> compare(sweep, "base").verdicts
    {'no-fp32': 'ceiling down'}
    """
    checks.check_kind("arms", arms, Mapping, "pass name -> runs", errors.CompareError)
    for name in arms:
        checks.check_kind("arms", name, str, "call each arm by a text", errors.CompareError)
    checks.check_kind("control", control, str, "give the name of an arm", errors.CompareError)
    fits = {name: _fits(name, given) for name, given in arms.items()}
    _check(fits, control)
    every = [one for group in fits.values() for one in group]
    width = every[0].curve.width
    checks.check_difference("rope", rope, width, errors.CompareError)
    rules = Rules(
        SAME_CEILING * width if rope is None else rope,
        level,
        SeedSpread.of(seed_sd, CEILING_SPREAD.scaled(width)),
        SeedSpread.of(seed_sd_log_compute, COMPUTE_SPREAD),
    )
    runs = {name: [run_of(one) for one in fits[name]] for name in _in_order(fits)}
    judged = judge(runs, control, rules, every[0].unit)
    verdicts = {arm.arm: arm for arm in judged.arms}
    paper = paper_columns({name: [one.curve for one in group] for name, group in fits.items()}, control)
    return replace(
        judged,
        arms=tuple(replace(verdicts[name], paper=paper[name]) for name in fits if name != control),
        control_paper=paper[control],
    )


def _in_order(fits: Mapping[str, Sequence[Fit]]) -> list[str]:
    """The arms as draws are made for them, whichever was given first, by all their runs: arms may share one, as runs
    that never moved look alike."""
    return sorted(fits, key=lambda name: sorted(place_of(one.curve) for one in fits[name]))


def _fits(name: str, given: OneOrSeveral) -> list[Fit]:
    """Fits with the flat prior: a shared prior would be counted once for every run."""
    runs = runs_of(name, given, errors.CompareError)
    return [one if isinstance(one, Fit) and not one.prior.informative else fit(_curve(one)) for one in runs]


def _curve(one: Curve | Fit) -> Curve:
    return one.curve if isinstance(one, Fit) else one


def _check(fits: Mapping[str, Sequence[Fit]], control: str) -> None:
    known = names_text(list(fits)) or "none"
    if control not in fits:
        raise errors.CompareError("control", repr(control), f"the arms are {known}", "name one of them")
    if len(fits) < 2:
        raise errors.CompareError("arms", known, "at least one arm beside the control is needed", "add an arm")
    every = [one.curve for group in fits.values() for one in group]
    check_one_unit(every, errors.CompareError, "one unit of compute is needed", "convert the curves")
    check_one_range(every, errors.CompareError, *ONE_RANGE)
