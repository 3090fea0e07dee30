"""A slower end: how much of a forecast hangs on the sigmoid's rise.

ScaleRL's curve rises as steeply in ln C before C_mid as it levels off behind it. Many runs begin so and level off more
slowly: late gains come harder than early ones did. Beside it stands

    R(C) = R0 + (A - R0) (1 - (1 + (C / C_mid)^B)^(-1/3)),

Burr's law (his type XII) in place of the logistic one in ln C: at first it grows as C^B too, in the end A - R falls as
C^(-B/3). While a run is still rising both often describe it, and lead elsewhere. Where no past run tells how such a
run goes on evaluations to come are drawn from both, each as often as its evidence says, the sigmoid being twice as
likely beforehand (docs/decisions/0036), and advice heeds it where it is the more probable (`growth`). The curve, its
parameters and its band remain the sigmoid's.

Of a run with past ones this is so as far as it is not one of them, which the flat part of their prior stands for. How
far it is one is asked of it as of them, by the sigmoid: they leave theirs as well, and by how much is known of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..posterior.evenly import Axis, uniforms
from ..posterior.integral import Table, integrate, log_sum
from ..posterior.problem import Problem
from .drift import past_runs_tell, untold
from .late_start import P_LATE_START, late_start
from .misfit import HOLDS

if TYPE_CHECKING:
    from ..fitting.fit import Fit

P_BURR = 1 / 3
"""The probability of Burr's law before any evaluation, of a run that does not begin late."""
_LEAST_SHARE = 0.002  # below, no quantile that is told hangs on it,
_LEAST_UNTOLD = 0.05  # nor below this on draws of which only a part may be of this law


@dataclass(frozen=True, eq=False)
class OtherRise:
    """The evaluations under other laws than a sigmoid that begins with the run.

    Attributes:
        laws: the posterior and the probability of each, where no past run tells how such a run goes on.
        slower: of that, Burr's.
        untold: the draws of the sigmoid of which that is so, (K,).
    """

    laws: tuple[tuple[Fit, float], ...]
    slower: float
    untold: BoolArray

    @property
    def share(self) -> float:
        """The probability of any of them, where no past run tells."""
        return sum(share for _, share in self.laws)

    @property
    def probability(self) -> float:
        """Of any of them, whatever past runs tell."""
        return self.share * float(self.untold.mean())

    @property
    def p_slower_end(self) -> float:
        """The probability of Burr's law, whatever past runs tell."""
        return self.slower * float(self.untold.mean())

    @property
    def p_late_start(self) -> float:
        """The probability of a late start, likewise."""
        return (self.share - self.slower) * float(self.untold.mean())

    @property
    def words(self) -> str:
        """The likelier of them."""
        return "a slower end than a sigmoid's" if self.slower >= self.share / 2 else "a start later than the run's"

    def mixed(self, sigmoid: FloatArray, of: Callable[[Fit], FloatArray]) -> FloatArray:
        """Draws, (..., K), of the sigmoid and of these laws, each as often as it is probable.

        Args:
            sigmoid: its draws.
            of: those of a posterior.
        """
        at, both, below = np.flatnonzero(self.untold), sigmoid.copy(), 0.0
        u, even = uniforms(Axis.LAW, len(at)), (np.arange(len(at)) + 0.5) / max(len(at), 1)
        for fit, share in self.laws:
            ours, other = (u >= below) & (u < below + share), of(fit)
            evenly = (even[ours] * other.shape[-1]).astype(int)  # draws lie in the order of their ceilings
            both[..., at[ours]] = other[..., evenly]
            below += share
        return both


def other_rise(fit: Fit) -> OtherRise | None:
    """None where past runs tell how it goes on, where it has left any curve, or where the sigmoid is certain."""
    open_ones = untold(fit)
    if open_ones.mean() < _LEAST_UNTOLD or (fit.departure is not None and fit.departure.name not in HOLDS):
        return None
    pairs, prior = fit.table_of_problem.masses.pairs, fit.setting.prior
    if past_runs_tell(fit.prior):
        pairs, prior = pairs[:1] - np.log(1 - prior.weight), replace(prior, weight=0.0)
    problem = replace(fit.problem, setting=replace(fit.problem.setting, prior=prior))
    burr = replace(problem, setting=replace(problem.setting, burr=True))
    laws = [(burr, integrate(burr), float(np.log(P_BURR * (1 - P_LATE_START))))]
    late = fit.late_start if prior is fit.setting.prior else late_start(fit.posterior, problem)
    if late is not None:
        each = float(np.log(P_LATE_START / len(late.tables))) + late.log_spread
        laws += [(one, table, each) for one, table in zip(late.problems, late.tables, strict=True)]
    evidence = [beforehand + log_sum(table.masses.nodes) for _, table, beforehand in laws]
    sigmoid = log_sum(pairs) + float(np.log((1 - P_BURR) * (1 - P_LATE_START)))
    shares = np.exp(evidence - np.logaddexp.reduce([sigmoid, *evidence])).tolist()
    if sum(shares) < _LEAST_SHARE:
        return None
    fits = tuple((_of(fit, *law[:2]), share) for law, share in zip(laws, shares, strict=True))
    return OtherRise(fits, shares[0], open_ones)


def _of(fit: Fit, problem: Problem, table: Table) -> Fit:
    """The fit under another law."""
    other = replace(fit, setting=problem.setting, table=table, last=problem.filtered.last)
    other.__dict__["problem"] = problem  # known already
    return other
