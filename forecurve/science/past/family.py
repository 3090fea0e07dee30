"""What runs tell of the next one like them: an empirical-Bayes prior from every sibling's whole posterior.

Each parameter theta_i of sibling i (A, ln B, ln C_mid, each by itself) is N(mu, s^2), with mu uniform over the range
that the flat prior allows and s^2 scaled-inverse-chi-squared about the spread that siblings have by default. What a
sibling's own data say of theta_i is the likelihood L_i: its fit's draws weighed by 1 / (the prior they were made
under) and by what is known of the two other parameters, on a line of bins. Then

    p(mu, s | all)  =  p(mu) p(s) prod_i F_i(mu, s),    F_i(mu, s) = sum over bins of L_i N(bin | mu, s^2)

on a lattice of (mu, s), from which follow the mean and the sd for one more sibling. A sibling that knows a parameter
badly thus says little of it, and siblings are not taken to differ by what is only not known of them. Where some are
seeds of one arm the family has two levels (`nested`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import errors
from ..arrays import FloatArray, IntArray
from ..checks import check_kind, whole_of
from ..curves.alike import check_one_unit
from ..curves.arms import told_apart
from ..curves.order import Place, place_of
from ..fitting.fit import Fit
from ..posterior.prior import FLAT, LOG_B_BOX, Prior
from .exchangeable import BINS_A_CENTRE, TOLD, WORTH, InBins, bins_over, told_by_all
from .family_noise import noise_known
from .nested import told_by_arms
from .parameters import parameters_of
from .remembered import remembered
from .sizes import answers_of_all, of_answers

Pair = tuple[float, float]

# Spread between siblings before any is seen: the synthetic runs of the paper's scale.
SPREAD = (0.03, 0.25, 0.4)
SEED_SPREAD = (0.0125, 0.1, 0.2)
"""Spread between seeds of one arm before any is seen, worth as many seeds: as attribution has it."""
PASSED = 0.5  # a run is of the family when it has passed its middle with this probability,
RISEN = 0.5  # or when even the 5 % quantile of its rise is so much of the median
MEMBER = 0.9  # weight of the informative part where all siblings are of the family
_ROUNDS = 3  # in which what is known of one parameter sharpens the others
_DRAWS, _FEWEST_DRAWS = 100_000, 200  # of all siblings together, of one


@dataclass(frozen=True)
class Arms:
    """Of each sibling, and of the run that they are asked about."""

    of_each: Sequence[str]
    of_new: str | None


@dataclass(frozen=True, eq=False)
class Drawn:
    """Draws of all siblings one after another: theta (3, D), the log prior density of each (D,), and where each
    sibling's begin (R,)."""

    theta: FloatArray
    log_prior: FloatArray
    starts: IntArray


def sibling_prior(fits: Sequence[Fit], arm: str | None = None, *, finished: int | None = None) -> Prior:
    """An empirical-Bayes prior from runs like this one that are finished, or at least as far (`telling`).

    Args:
        fits: fits of the siblings as far as they went, in one unit of compute. Ranges of rewards may differ: a ceiling
            counts as a share of its run's range. Where some are seeds of one arm (`Curve.arm`) they count as such.
        arm: of the run that the prior is for: seeds of the same arm tell more of it.
        finished: how many of them went about as far as the run is to go, all where left out: with fewer than 3, how far
            runs leave their curves stays open (`Prior.runs`).

    Returns:
        Mean and sd of (A, ln B, ln C_mid) for one more of them. Runs with a misfit but `shape`, and those that have not
        risen, are not of the family: the weight of what it tells is 0.9 times the share of those that are. A parameter
        that the family leaves open stays open. The flat prior where none is of it, or it tells nothing. It
        carries the siblings' unit of compute, the range of rewards of one of them, and what is known of the noise
        (`family_noise`).

    Raises:
        PriorError: what is no fit, or siblings in different units of compute.
    """
    check_kind("fits", fits, Sequence, "pass a list of fits", errors.PriorError)
    for at, one in enumerate(fits):
        check_kind(f"fits[{at}]", one, Fit, "pass fit(curve)", errors.PriorError)
    if finished is not None:
        finished = whole_of("finished", finished, errors.PriorError, "say how many of them are, or leave it out")
    fits = sorted(fits, key=_place)  # sums hang on the order of what is summed
    answers = answers_of_all([fit.curve for fit in fits])
    fits = [of_answers(fit, answers) for fit in fits]
    prior = replace(parameter_prior(fits, arm), noise=noise_known(fits), answers=answers)
    if finished is None or prior.runs is None:
        return prior
    runs = min(prior.runs, finished)
    return replace(prior, runs=runs, ahead=prior.runs - runs)


def parameter_prior(fits: Sequence[Fit], arm: str | None = None) -> Prior:
    """`sibling_prior` without what is known of the noise."""
    curves = [fit.curve for fit in fits]
    check_one_unit(curves, errors.PriorError, "siblings must share one unit of compute", "convert them first")
    family = [fit for fit in fits if is_member(fit)]
    if not family:
        return FLAT
    drawn = _drawn(family)
    arms = [fit.curve.arm for fit in family]
    names = told_apart(arms)
    nested = len(set(names)) < len(names) or arm in names
    ceiling, log_b, log_mid = _told_of(drawn, _boxes(family), Arms(names, arm) if nested else None)
    if ceiling is None and log_b is None and log_mid is None:
        return FLAT
    first = family[0].curve
    if ceiling is not None:
        ceiling = first.bounds[0] + ceiling[0] * first.width, ceiling[1] * first.width
    weight = MEMBER * len(family) / len(fits)
    runs = len(family)
    name = f"{runs} sibling{'' if runs == 1 else 's'}"
    return Prior(name, ceiling, log_b, log_mid, weight, bounds=first.bounds, unit=first.unit, runs=runs)


@remembered
def _place(fit: Fit) -> Place:
    return place_of(fit.curve)


@remembered
def is_member(fit: Fit) -> bool:
    """Whether a sibling tells of others: it is one sigmoid that has risen. Of one that has not, only that is known."""
    if fit.misfit not in (None, "shape"):
        return False
    draws, now = fit.all_draws, fit.curve.now
    if float((draws.C_mid < now).mean()) >= PASSED:
        return True
    least, middle = np.quantile(draws.reward_at(now)[0] - draws.R0, (0.05, 0.5))
    return bool(least >= RISEN * middle)


def _drawn(family: Sequence[Fit]) -> Drawn:
    most = max(_DRAWS // len(family), _FEWEST_DRAWS)
    siblings = [parameters_of(fit).thinned(most) for fit in family]
    theta = np.ascontiguousarray(np.concatenate([each.theta for each in siblings]).T)
    sizes = [len(each.log_prior) for each in siblings]
    return Drawn(theta, np.concatenate([each.log_prior for each in siblings]), np.cumsum([0, *sizes[:-1]]))


def _boxes(family: Sequence[Fit]) -> list[Pair]:
    """The range of each parameter under the flat prior of all of them."""
    mids = np.array([parameters_of(fit).box.log_mid for fit in family])
    return [(0.0, 1.0), LOG_B_BOX, (float(mids[:, 0].min()), float(mids[:, 1].max()))]


def _told_of(drawn: Drawn, boxes: Sequence[Pair], arms: Arms | None) -> list[Pair | None]:
    """(mean, sd) of each parameter for one more sibling; None where they leave it open."""
    told: list[Pair | None] = [None] * len(boxes)
    lines = [bins_over(*box, spread) for box, spread in zip(boxes, SPREAD, strict=True)]
    placed = [InBins.of(theta, drawn.starts, bins) for theta, bins in zip(drawn.theta, lines, strict=True)]
    for left in reversed(range(_ROUNDS)):  # what sharpens the others need not know of arms, which costs more
        weights = _log_weights(drawn, told)
        known = [each.shares(weight) for each, weight in zip(placed, weights, strict=True)]
        told = [_one(known[at], at, bins, None if left else arms) for at, bins in enumerate(lines)]
    return told


def _log_weights(drawn: Drawn, told: Sequence[Pair | None]) -> Iterator[FloatArray]:
    """For each parameter of every draw that with which its run's own data say of it, given what is told of the two
    others: (D,)."""
    away = [
        None if pair is None else 0.5 * ((theta - pair[0]) / pair[1]) ** 2
        for theta, pair in zip(drawn.theta, told, strict=True)
    ]
    for at in range(len(away)):
        weight = -drawn.log_prior
        for other, far in enumerate(away):
            if other != at and far is not None:
                weight -= far
        yield weight


def _one(known: FloatArray, at: int, bins: FloatArray, arms: Arms | None) -> Pair | None:
    """Of the parameter at this place, from what is known of each sibling's, (R, bins)."""
    if arms is None:
        mean, variance = told_by_all(known, bins, SPREAD[at])
    else:
        spread, centres = (SPREAD[at], SEED_SPREAD[at], WORTH), bins[::BINS_A_CENTRE]
        mean, variance = told_by_arms(known, arms.of_each, arms.of_new, bins, centres, *spread)
    return (mean, float(np.sqrt(variance))) if variance <= (1 - TOLD) * (bins[-1] - bins[0]) ** 2 / 12 else None
