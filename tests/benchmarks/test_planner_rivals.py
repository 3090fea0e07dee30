"""The rivals of the planner's benchmark are what they are called."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from forecurve.science import Curve
from forecurve.science.simulator import Sweep, Track, replay

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
optuna = pytest.importorskip("optuna")
from optuna_policies import Pruned  # noqa: E402

COMPUTE = np.arange(1, 17, dtype=float)


def _parallel_arms(arms: int) -> Sweep:
    """Straight lines that never cross: arm k ends k-th from below."""
    curves = [Curve(COMPUTE, 0.1 + 0.02 * at + 0.005 * COMPUTE, name=str(at)) for at in range(arms)]
    return Sweep(tuple(Track(curve, float(curve.reward[-1])) for curve in curves), 16.0)


def _asha(first: int, eta: int) -> Pruned:
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=eta)
    return Pruned(pruner, together=True, seed=1)


def test_asha_keeps_the_best_of_curves_that_do_not_cross() -> None:
    found = replay(_parallel_arms(8), _asha(2, 2))
    assert found.regret[-1] == 0.0
    assert found.total < 8 * 16 / 2


def test_asha_prunes_at_its_rungs_only() -> None:
    policy, sweep = _asha(4, 2), _parallel_arms(8)
    replay(sweep, policy)
    last = [trial.last_step for trial in policy.study.get_trials() if trial.state == optuna.trial.TrialState.PRUNED]
    assert last
    assert set(last) <= {4, 8, 16}


def test_a_later_first_rung_costs_more() -> None:
    totals = [replay(_parallel_arms(8), _asha(first, 4)).total for first in (1, 4, 8)]
    assert totals == sorted(totals)
    assert totals[0] < totals[2]


def test_the_median_rule_runs_one_arm_after_the_other_and_drops_what_is_below() -> None:
    pruner = optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=3)
    policy = Pruned(pruner, together=False, seed=3)
    found = replay(_parallel_arms(8), policy)
    finals = np.array(sorted(policy.alive))
    assert found.regret[-1] == 0.0
    assert 2 <= len(finals) < 8  # the first two and whatever beat the median of those before
    assert found.total < 8 * 16
