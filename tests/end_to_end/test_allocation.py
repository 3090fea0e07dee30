"""A sweep whose runs share one budget, from its submission to its end, with real trainers that pause and go on."""

from __future__ import annotations

import time

import pytest

from tests.end_to_end.cluster import Cluster, Job, cluster
from tests.trainer.conftest import SMALL
from tests.worker.harness import ray, world
from worker.compare import compare_sweep
from worker.refit import refit

__all__ = ["cluster", "ray", "world"]

STEPS = 24
BUDGET = 60.0
CHANGES = SMALL | {"budget.compute": STEPS, "evaluation.every_steps": 1, "checkpoint.every_steps": 7}
SWEEP = {
    "preset": "scalerl",
    "changes": CHANGES,
    "design": {"kind": "one_factor", "factors": {"optimizer.learning_rate": [1e-5, 3e-3]}},
    "policy": "allocate",
    "budget_compute": BUDGET,
}
AT_MOST = 40
"""Jobs: each run begins once, and every further one is a look that somebody thought worth it."""
LATE = STEPS
"""Steps that the run which trains may go beyond the budget, until it hears that it is to pause: to its own end at most,
on a machine that has much else to do."""


@pytest.mark.slow  # a minute and more; who is let on is in tests/worker, the rule itself in tests/forecurve
def test_a_sweep_spends_its_budget_where_it_tells_most_and_ends(cluster: Cluster) -> None:
    cluster.world.settings.max_concurrent_runs = 1
    cluster.world.settings.refit_every_s = 0.0
    sweep = cluster.api.create_sweep(SWEEP)["id"]
    jobs = 0
    while not is_over(cluster, sweep):
        jobs += 1
        assert jobs <= AT_MOST
        watch(cluster, cluster.start_next(), sweep)
    found = cluster.api.sweep(sweep)
    said = found["allocation"]
    assert said["over"] is not None
    assert said["spent"] <= BUDGET + LATE
    assert said["choice"] in {run["id"] for run in found["runs"]} or said["over"] == "the budget is spent"
    assert all(run["last_step"] >= 3 for run in found["runs"]), "each was looked at"
    assert any(run["attempt"] > 1 for run in found["runs"]), "one was held and let on again"


def is_over(cluster: Cluster, sweep: str) -> bool:
    think(cluster, sweep)
    for run in cluster.api.sweep(sweep)["runs"]:
        if run["desired_state"] == "stop":
            cluster.reconcile()
    return all(run["status"] in {"stopped", "succeeded"} for run in cluster.api.sweep(sweep)["runs"])


def watch(cluster: Cluster, job: Job, sweep: str) -> None:
    while job.process.poll() is None:
        think(cluster, sweep)
        cluster.reconcile()
        time.sleep(0.1)
    assert cluster.end(job) == 0
    think(cluster, sweep)


def think(cluster: Cluster, sweep: str) -> None:
    """What the broker would ring: refits, then the comparison."""
    sessions, settings = cluster.world.sessions, cluster.world.settings
    now = cluster.world.now
    for run in cluster.api.sweep(sweep)["runs"]:
        refit(sessions, settings, run["id"], now)
    compare_sweep(sessions, settings, sweep, now)
