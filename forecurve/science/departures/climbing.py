"""From a good sigmoid to the best one, step by step on ever smaller lattices.

A further term has its own best node looked for. Were the sigmoid alone left at the nearest node of some lattice, the
term would explain the distance: much of it where a run rises steeply between two evaluations.
"""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, IntArray
from ..posterior.integral import sums_at
from ..posterior.lattice import Lattice
from ..posterior.linear import best_on_triangle
from ..posterior.masses import form_of
from ..posterior.problem import Problem

_SIDE = 7  # nodes of a lattice
_REACH = 0.3  # of the first one, to each side in ln B and ln C_mid
_SMALLER = 3.0  # the next one, where the best node is not at an edge
_ROUNDS = 8
_FLAT = 0.1  # of a log likelihood between the best node and its neighbours: half of a cell is hardly better


def climb(problem: Problem, node: FloatArray, hypotheses: IntArray) -> FloatArray:
    """The (ln B, ln C_mid) near `node` at which the evaluations are likeliest under any of the hypotheses, (2,)."""
    box, reach = problem.setting.box, np.full(2, _REACH)
    low, high = np.array([box.log_b, box.log_mid]).T
    for _ in range(_ROUNDS):
        ends = np.clip(node - reach, low, high), np.clip(node + reach, low, high)
        log_b, log_mid = (np.linspace(*pair, _SIDE) for pair in zip(*ends, strict=True))
        lattice = Lattice.plain(log_b, np.tile(log_mid, (_SIDE, 1)))
        likelihood = _likelihood(problem, lattice, hypotheses).reshape(_SIDE, _SIDE)
        i, j = divmod(int(likelihood.argmax()), _SIDE)
        node = np.array([log_b[i], log_mid[j]])
        if (np.array([i in (0, _SIDE - 1), j in (0, _SIDE - 1)]) & (node > low) & (node < high)).any():
            continue  # at an edge beyond which it may be better: from there on
        about = likelihood[max(i - 1, 0) : i + 2, max(j - 1, 0) : j + 2]
        if np.ptp(about) < _FLAT:
            break
        reach = reach / _SMALLER
    return node


def _likelihood(problem: Problem, lattice: Lattice, hypotheses: IntArray) -> FloatArray:
    """Log likelihood of each node under its best hypothesis, (K,)."""
    setting, totals = problem.setting, problem.filtered.sums[hypotheses][:, None]
    form = form_of(sums_at(problem, lattice, hypotheses), totals, setting.unit_variance)
    least = best_on_triangle(form)[2]
    constant = setting.log_weights[hypotheses, None] - totals[..., 3] / 2
    return np.asarray((constant - setting.nu * np.log(setting.rate + least / 2)).max(axis=0))
