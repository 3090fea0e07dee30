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

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..posterior.integral import integrate
from .drift import untold
from .misfit import HOLDS

if TYPE_CHECKING:
    from ..fitting.fit import Fit

BEFOREHAND = 1 / 3
"""The probability of Burr's law before any evaluation."""
_LOG_ODDS = float(np.log((1 - BEFOREHAND) / BEFOREHAND))
_LEAST_SHARE = 0.002  # below, no quantile that is told hangs on it,
_LEAST_UNTOLD = 0.05  # nor below this on draws of which only a part may be of this law
_SILVER = 0.41421356237309515  # low discrepancy, and no multiple of what other draws are laid by


@dataclass(frozen=True, eq=False)
class OtherRise:
    """The evaluations under Burr's law.

    Attributes:
        fit: its posterior.
        share: the probability of that law where no past run tells how such a run goes on.
        untold: the draws of the sigmoid of which that is so, (K,).
    """

    fit: Fit
    share: float
    untold: BoolArray

    @property
    def probability(self) -> float:
        """Of that law."""
        return self.share * float(self.untold.mean())

    def mixed(self, sigmoid: FloatArray, other: FloatArray) -> FloatArray:
        """Draws of the sigmoid's and of this law's, (..., K) each, as often as each is probable."""
        at = np.flatnonzero(self.untold)
        step = np.arange(len(at))
        ours = (0.5 + _SILVER * step) % 1.0 < self.share
        evenly = ((step + 0.5) * other.shape[-1] / len(at)).astype(int)  # draws lie in the order of their ceilings
        both = sigmoid.copy()
        both[..., at[ours]] = other[..., evenly[ours]]
        return both


def other_rise(fit: Fit) -> OtherRise | None:
    """None where past runs tell how it goes on, where it has left any curve, or where the sigmoid is certain."""
    open_ones = untold(fit)
    if open_ones.mean() < _LEAST_UNTOLD or fit.misfit not in HOLDS:
        return None
    ours, prior = fit.table.masses.nodes, fit.setting.prior
    if not open_ones.all():
        ours, prior = fit.table.masses.pairs[0] - np.log(1 - prior.weight), replace(prior, weight=0.0)
    problem = replace(fit.problem, setting=replace(fit.problem.setting, burr=True, prior=prior))
    table = integrate(problem)
    against = _LOG_ODDS + float(np.logaddexp.reduce(ours, axis=None) - np.logaddexp.reduce(table.masses.nodes))
    share = float(1 / (1 + np.exp(np.clip(against, -700, 700))))
    if share < _LEAST_SHARE:
        return None
    return OtherRise(replace(fit, setting=problem.setting, table=table, last=problem.filtered.last), share, open_ones)
