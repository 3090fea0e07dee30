"""Weights by broadcast between real actors: what generators then sample, and what happens when one dies."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import closing

import numpy as np
import pytest
import ray

from trainer.launch import Launch, train
from trainer.types import GeneratorLost, Wave, WeightVersion
from trainer.workers.local import LocalWorkers
from trainer.workers.offers import CollectiveOffers
from trainer.workers.ray_actors import RayWorkers, placed

pytestmark = [  # half a minute; the broadcast itself is in test_collective.py, who gets what in test_offers.py
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.usefixtures("own_ray"),
]

LIMIT_S = 120.0


@pytest.fixture
def broadcasts(monkeypatch):
    """Versions that were broadcast."""
    versions, sent = [], CollectiveOffers._broadcast

    def note(self, weights):
        versions.append(weights.version)
        return sent(self, weights)

    monkeypatch.setattr(CollectiveOffers, "_broadcast", note)
    return versions


def test_a_run_by_broadcast_is_that_of_the_same_weights_taken_without(recipe, tmp_path, broadcasts):
    changes = {"budget.compute": 6, "algorithm.max_staleness": 0, "algorithm.off_policy": "on-policy"}
    rewards = {}
    for way, with_ray in (("collective", True), ("store", False)):
        wanted = recipe(changes | {"resources.weight_transfer": way})
        assert train(wanted, Launch(tmp_path / way, ray=with_ray, progress=False)).step == 6
        lines = [json.loads(line) for line in (tmp_path / way / "metrics.jsonl").read_text().splitlines()]
        rewards[way] = [line["metrics"]["train/reward"] for line in lines if "train/reward" in line["metrics"]]
    assert rewards["collective"] == rewards["store"]
    assert len(rewards["store"]) == 6
    assert broadcasts


class Drive:
    """Workers under our hand: offers weights until they go by broadcast, and has waves generated."""

    def __init__(self, recipe, base, place):
        self.recipe, self.base = recipe, base
        self.workers, self.version = RayWorkers(recipe, base, place), 0

    def close(self):
        self.workers.close()

    def weights(self, version):
        return {name: value * np.float32(1 - 0.01 * version) for name, value in self.base.items()}

    def offer(self):
        self.version += 1
        self.workers.offer(WeightVersion(self.version, ray.put(self.weights(self.version))))

    def offer_until(self, broadcasts):
        """Offer new versions until one goes by broadcast."""
        before, deadline = len(broadcasts), time.monotonic() + LIMIT_S
        while len(broadcasts) == before:
            assert time.monotonic() < deadline, "no broadcast came about"
            self.offer()
            time.sleep(0.05)

    def broadcast_alone(self):
        """Broadcast a new version while the store's reference leads to other weights."""
        offers, self.version = self.workers._fleet._offers, self.version + 1
        ray.get(list(offers._calls))
        right, wrong, epoch = ray.put(self.weights(self.version)), ray.put(self.base), offers._epoch
        offers._learner.broadcast.remote(self.version, [right], epoch)
        for actor in self.workers._fleet.actors:
            actor.offer.remote(self.version, [wrong], epoch)
            actor.receive.remote(self.version, epoch)

    def waves(self, count):
        """What that many waves of the newest version, one group each, come to; and news of the dead."""
        for number in range(count):
            self.workers.start_wave(Wave(((number, number),), self.version))
        groups, lost, deadline = [], [], time.monotonic() + LIMIT_S
        while len(groups) < count:
            assert time.monotonic() < deadline, "the waves did not come back"
            for _, result in self.workers.wait(1.0):
                if isinstance(result, GeneratorLost):
                    lost.append(result)
                elif hasattr(result, "groups"):
                    groups += result.groups
        return sorted(groups, key=lambda group: group.ordinal), lost

    def expected(self, count):
        """The same waves in this process, with the same weights."""
        here = LocalWorkers(self.recipe, self.base)
        here.offer(WeightVersion(self.version, self.weights(self.version)))
        for number in range(count):
            here.start_wave(Wave(((number, number),), self.version))
        groups = []
        while len(groups) < count:
            for _, result in here.wait(1.0):
                groups += result.groups
        return sorted(groups, key=lambda group: group.ordinal)

    def same_as_here(self, count):
        found, lost = self.waves(count)
        for ours, theirs in zip(self.expected(count), found, strict=True):
            assert set(theirs.responses.versions[theirs.responses.sampled]) == {self.version}
            np.testing.assert_array_equal(ours.responses.tokens, theirs.responses.tokens)
            np.testing.assert_array_equal(ours.responses.logprobs, theirs.responses.logprobs)
        return lost


def test_generators_sample_from_what_was_broadcast_and_one_that_dies_is_let_in_again(recipe, base, broadcasts):
    wanted = recipe({"resources.weight_transfer": "collective", "resources.generators": 2})
    with placed(wanted) as place, closing(Drive(wanted, base, place)) as drive:
        drive.offer_until(broadcasts)
        assert drive.same_as_here(4) == []
        os.kill(drive.workers.process_ids[0], signal.SIGKILL)
        first = len(broadcasts)
        drive.offer()
        drive.offer()
        assert len(drive.same_as_here(4)) == 1
        drive.offer_until(broadcasts)
        assert len(broadcasts) > first
        assert drive.same_as_here(4) == []
        drive.broadcast_alone()
        assert drive.same_as_here(4) == []
