"""A run whose actors find room on different machines only. Here the machines are Ray nodes of one."""

from __future__ import annotations

import pytest
import ray

from trainer.launch import Launch, train
from trainer.records import checkpoint as checkpoints
from trainer.workers import place

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture
def cluster(monkeypatch):
    """A head that has no CPU for anybody, and two nodes of one each; we are a job of it."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    monkeypatch.setenv("RAY_ADDRESS", made.address)
    ray.init(address=made.address)
    yield made
    ray.shutdown()
    made.shutdown()


def test_a_run_trains_with_its_learner_on_one_and_its_generator_on_another(cluster, recipe, tmp_path):
    assert sorted(size.get("CPU", 0.0) for size in place.machines()) == [0.0, 1.0, 1.0]
    wanted = recipe({"resources.cpus": 2, "budget.compute": 3, "checkpoint.every_steps": 3})
    assert train(wanted, Launch(tmp_path, progress=False)).step == 3
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 3


def test_a_run_waits_until_a_machine_joins(cluster, recipe, monkeypatch):
    monkeypatch.setattr(place, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(place, "_LOOK_S", 0.1)
    told = []

    def tell(text):
        if not told:
            cluster.add_node(num_cpus=2)
        told.append(text)

    with place.placed(recipe({"resources.cpus": 3, "resources.generators": 2}), tell=tell):
        pass
    assert told[0].startswith(
        "the cluster is too small: the run needs 3 x 1 CPU at once, and its 3 machines have 2 CPUs"
    )
    assert told[-1] == "found room on the cluster"
