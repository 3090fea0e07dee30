"""A slower end: how much of a forecast hangs on the sigmoid's rise.

ScaleRL's curve rises as steeply in ln C before C_mid as it levels off behind it. Many runs begin so and level off more
slowly: late gains come harder than early ones did. Beside it stands

    R(C) = R0 + (A - R0) (1 - (1 + (C / C_mid)^B)^(-1/3)),

Burr's law (his type XII) in place of the logistic one in ln C: at first it grows as C^B too, in the end A - R falls as
C^(-B/3). While a run is still rising both often describe it, and lead elsewhere. Where no past run tells how runs go,
evaluations to come are drawn from both, each as often as its evidence says, the sigmoid being twice as likely
beforehand (docs/decisions/0036), and advice heeds it where it is the more probable (`growth`). The curve, its
parameters and its band remain the sigmoid's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..posterior.integral import Table, integrate
from .drift import past_runs_tell
from .misfit import HOLDS

if TYPE_CHECKING:
    from ..fitting.fit import Fit

BEFOREHAND = 1 / 3
"""The probability of Burr's law before any evaluation."""
_LOG_ODDS = float(np.log((1 - BEFOREHAND) / BEFOREHAND))
_LEAST_SHARE = 0.002  # below, no quantile that is told hangs on it
_SILVER = 0.41421356237309515  # low discrepancy, and no multiple of what other draws are laid by


@dataclass(frozen=True, eq=False)
class OtherRise:
    """The evaluations under Burr's law.

    Attributes:
        fit: its posterior.
        share: the probability of that law.
    """

    fit: Fit
    share: float

    def mixed(self, sigmoid: FloatArray, other: FloatArray) -> FloatArray:
        """Draws of the sigmoid's and of this law's, (..., K) each, as often as each is probable."""
        ours = (0.5 + _SILVER * np.arange(sigmoid.shape[-1])) % 1.0 < self.share
        return np.where(ours, other, sigmoid)


def other_rise(fit: Fit) -> OtherRise | None:
    """None where past runs tell how runs go, where a run has left any curve, or where the sigmoid is certain."""
    if past_runs_tell(fit.prior) or fit.misfit not in HOLDS:
        return None
    problem = replace(fit.problem, setting=replace(fit.problem.setting, burr=True))
    table = integrate(problem)
    against = _LOG_ODDS + _log_evidence(fit.table) - _log_evidence(table)
    share = float(1 / (1 + np.exp(np.clip(against, -700, 700))))
    if share < _LEAST_SHARE:
        return None
    return OtherRise(replace(fit, setting=problem.setting, table=table, last=problem.filtered.last), share)


def _log_evidence(table: Table) -> float:
    return float(np.logaddexp.reduce(table.masses.nodes))
