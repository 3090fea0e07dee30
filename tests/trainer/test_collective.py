"""Weights by broadcast: bytes that arrive as they were sent, peers that stay away, and the store beside it all."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ray.exceptions import RayActorError

from trainer.errors import ConfigurationError, TrainerError, WorkerLost
from trainer.types import WeightVersion
from trainer.workers import collective
from trainer.workers.collective import Channel, Place, fused, host, layout_of, parted, refuse, size_of
from trainer.workers.inbox import Inbox
from trainer.workers.offers import MOST_FAULTS, PATIENCE_S, CollectiveOffers

TYPES = st.sampled_from(["float32", "float16", "float64", "int64", "int8", "bool"])
ARRAYS = TYPES.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))


@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=5), st.integers(0, 2**40))
def test_what_is_fused_comes_apart_bit_for_bit(weights, version):
    layout = layout_of(weights)
    flat = fused(version, weights, layout)
    came, tensors = parted(torch.from_numpy(flat), layout)
    assert (came, len(flat), list(tensors)) == (version, size_of(layout), list(weights))
    for name, value in weights.items():
        assert tensors[name].numpy().tobytes() == value.tobytes()
        assert (tuple(tensors[name].shape), str(tensors[name].numpy().dtype)) == (value.shape, str(value.dtype))


@pytest.fixture(scope="module")
def members():
    """Groups of a given size that have met, in threads of this process; the learner's channel is the first."""
    store, address = host("127.0.0.1")
    epochs = count(1)
    with ThreadPoolExecutor(4) as pool:

        def meet(size, timeout_s=20.0, present=None):
            epoch = next(epochs)
            places = [Place(address, epoch, rank, size) for rank in range(size if present is None else present)]
            return list(pool.map(lambda place: Channel(place, "cpu", timeout_s), places))

        meet.pool = pool
        yield meet
    del store


def test_every_member_gets_every_version_bit_for_bit_in_buckets_of_any_size(members, monkeypatch):
    monkeypatch.setattr(collective, "BUCKET_BYTES", 1000)
    learner, *generators = members(3)
    rng = np.random.default_rng(0)
    for version in (4, 5):
        weights = {
            "half": torch.from_numpy(rng.normal(size=(7, 33)).astype(np.float32)).to(torch.bfloat16),
            "full": rng.normal(size=(50, 11)).astype(np.float32),
        }
        coming = [members.pool.submit(channel.receive, version) for channel in generators]
        learner.send(version, weights)
        for arrived in coming:
            assert torch.equal(arrived.result()["half"], weights["half"])
            assert arrived.result()["full"].numpy().tobytes() == weights["full"].tobytes()
    for channel in (learner, *generators):
        channel.close()


def test_a_version_that_is_not_the_awaited_one_is_refused(members):
    learner, generator = members(2)
    coming = members.pool.submit(generator.receive, 8)
    learner.send(9, {"w": np.ones(3, np.float32)})
    with pytest.raises(TrainerError, match="receive version 8: version 9 came"):
        coming.result()


def test_a_peer_that_stays_away_is_a_timeout_with_a_name(members):
    with pytest.raises(TrainerError, match=r"group \d+: could not meet"):
        members(2, timeout_s=0.3, present=1)


def test_a_peer_that_hangs_holds_nobody_up_for_longer_than_the_timeout(members):
    learner, silent = members(2, timeout_s=0.3)
    with pytest.raises(TrainerError, match="could not send version 1"):
        learner.send(1, {"w": np.zeros(20_000_000, np.float32)})  # more than a socket takes in unread
    with pytest.raises(TrainerError, match="could not receive version 1"):
        silent.receive(1)


# What a generator takes.


def nothing_is_pulled(reference):
    raise AssertionError(f"pulled {reference}")


def pulled(reference):
    return {"pulled": reference}


def test_what_has_arrived_is_taken_without_a_look_into_the_store():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(3, "three", epoch=1)
    assert inbox.newest(2, at_least=2) is None  # on its way, and what is held will do
    inbox.arrive(3, {"w": 3})
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"w": 3})
    assert inbox.newest(3, at_least=3) is None


def test_a_broadcast_that_comes_before_its_offer_waits_for_it():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(0, "zero")
    inbox.arrive(1, {"w": 1})
    assert inbox.newest(0) is None
    inbox.offer(1, "one", epoch=1)
    assert inbox.newest(0) == (1, {"w": 1})


def test_a_version_of_a_failed_broadcast_is_pulled_and_so_is_one_without():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.fail(1)
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})
    inbox.offer(4, "four")
    assert inbox.newest(3) == (4, {"pulled": "four"})
    inbox.offer(5, "five", epoch=2)
    assert inbox.newest(4, at_least=4) is None


def test_an_arrived_version_older_than_an_offer_by_store_is_passed_over():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    inbox.offer(4, "four")
    assert inbox.newest(2, at_least=3) == (4, {"pulled": "four"})


def test_an_arrived_version_serves_while_the_next_is_on_its_way():
    inbox = Inbox(nothing_is_pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    inbox.offer(4, "four", epoch=1)
    assert inbox.newest(2, at_least=3) == (3, {"w": 3})


def test_weights_that_were_taken_are_pulled_when_an_evaluation_has_put_older_ones_in():
    inbox = Inbox(pulled)
    inbox.offer(3, "three", epoch=1)
    inbox.arrive(3, {"w": 3})
    assert inbox.newest(2) == (3, {"w": 3})
    inbox.offer(4, "four", epoch=1)
    assert inbox.newest(3) is None  # held now: our copy is let go
    inbox.fail(1)
    assert inbox.newest(1) == (4, {"pulled": "four"})


def test_a_broadcast_that_never_ends_is_given_up_and_the_version_pulled():
    inbox = Inbox(pulled, timeout_s=0.05)
    inbox.offer(3, "three", epoch=1)
    inbox.wait_for(3)
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


class Later:
    """Another thread, whose work is done when the test says so."""

    def __init__(self):
        self.work = []

    def __call__(self, work):
        self.work.append(work)

    def run(self):
        self.work.pop(0)()


def test_an_offer_is_pulled_ahead_and_generation_goes_on_meanwhile():
    later, pulls = Later(), []
    inbox = Inbox(lambda reference: pulls.append(reference) or {"pulled": reference}, ahead=later)
    inbox.offer(3, "three")
    assert (inbox.newest(2, at_least=2), pulls) == (None, [])
    later.run()
    assert inbox.newest(2) == (3, {"pulled": "three"})
    assert pulls == ["three"]
    assert inbox.newest(3) is None


def test_of_several_offers_the_newest_is_pulled_ahead_and_once():
    later, pulls = Later(), []
    inbox = Inbox(lambda reference: pulls.append(reference) or {"pulled": reference}, ahead=later)
    inbox.offer(3, "three")
    inbox.offer(4, "four")
    later.run()
    assert inbox.newest(2) == (4, {"pulled": "four"})
    later.run()
    assert pulls == ["four"]


def test_weights_that_must_be_there_are_waited_for():
    release = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        inbox = Inbox(lambda reference: release.wait(20) and {"pulled": reference}, ahead=pool.submit)
        inbox.offer(3, "three")
        threading.Timer(0.05, release.set).start()
        assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


def test_what_cannot_be_pulled_ahead_fails_where_it_is_needed():
    def lost(reference):
        raise OSError("the object is gone")

    later = Later()
    inbox = Inbox(lost, ahead=later)
    inbox.offer(3, "three")
    later.run()
    with pytest.raises(OSError, match="the object is gone"):
        inbox.newest(2)


def test_weights_that_do_not_come_ahead_in_time_are_pulled_by_whom_they_are_needed():
    inbox = Inbox(pulled, timeout_s=0.05, ahead=Later())
    inbox.offer(3, "three")
    assert inbox.newest(2, at_least=3) == (3, {"pulled": "three"})


def test_what_comes_by_broadcast_is_not_pulled_ahead():
    later = Later()
    inbox = Inbox(pulled, ahead=later)
    inbox.offer(3, "three")
    inbox.offer(4, "four", epoch=1)  # comes by itself
    later.run()
    assert inbox.newest(2, at_least=2) is None
    inbox.arrive(4, {"w": 4})
    assert inbox.newest(2) == (4, {"w": 4})


def test_weights_that_nobody_offers_are_a_lost_worker():
    with pytest.raises(WorkerLost, match="no weights of version 1"):
        Inbox(pulled, timeout_s=0.05).wait_for(1)


# What the driver arranges.


class Method:
    def __init__(self, actor, name):
        self._actor, self._name = actor, name

    def remote(self, *arguments):
        reference = (self._actor.name, self._name, next(Actor.numbers))
        self._actor.calls.append((self._name, *arguments))
        Actor.under_way.append(reference)
        return reference


class Actor:
    numbers, under_way = count(), []

    def __init__(self, name):
        self.name, self.calls = name, []

    def __getattr__(self, name):
        return Method(self, name)

    def last(self):
        return self.calls[-1]


class Arrangement:
    """A learner, two generators, a clock that stands until it is set, and which calls have ended or failed."""

    def __init__(self):
        Actor.under_way = []
        self.now, self.mute, self.dead = 0.0, set(), set()
        self.learner, self.generators = Actor("learner"), [Actor("first"), Actor("second")]
        self.offers = CollectiveOffers(self.learner, self._ready, self._get, lambda: self.now)
        self.versions = count()

    def offer(self, complete=True):
        version = next(self.versions)
        self.offers.offer(WeightVersion(version, f"weights of {version}"), self.generators, complete)
        return version

    def _ready(self, references):
        return [reference for reference in references if reference[0] not in self.mute]

    def _get(self, reference):
        if reference[0] in self.dead:
            raise RayActorError()


def test_the_first_version_goes_by_store_and_the_next_by_broadcast():
    place = Arrangement()
    place.offer()
    assert place.generators[0].calls[0] == ("offer", 0, ["weights of 0"])
    assert [actor.last()[0] for actor in (place.learner, *place.generators)] == ["meet"] * 3
    assert [actor.last()[2:] for actor in (place.learner, *place.generators)] == [(1, 0, 3), (1, 1, 3), (1, 2, 3)]
    place.offer()
    assert place.learner.last() == ("broadcast", 1, ["weights of 1"], 1)
    for actor in place.generators:
        assert actor.calls[-2:] == [("offer", 1, ["weights of 1"], 1), ("receive", 1, 1)]
    assert place.offers.news() == []


def test_while_the_group_is_busy_a_version_goes_by_store():
    place = Arrangement()
    place.mute.add("second")
    place.offer()
    place.offer()
    assert place.generators[0].last() == ("offer", 1, ["weights of 1"])
    place.mute.clear()
    place.offer()
    assert place.generators[0].last() == ("receive", 2, 1)


def test_a_newcomer_gets_weights_at_once_and_a_group_when_it_is_there():
    place = Arrangement()
    place.offer()
    place.offer()
    place.generators[0] = Actor("third")
    place.offer(complete=False)
    assert [actor.last() for actor in place.generators] == [("offer", 2, ["weights of 2"])] * 2
    place.offer()
    assert [actor.last()[2:] for actor in place.generators] == [(2, 1, 3), (2, 2, 3)]
    place.offer()
    assert [actor.last() for actor in place.generators] == [("receive", 4, 2)] * 2


def test_a_peer_that_hangs_is_named_and_its_group_given_up():
    place = Arrangement()
    place.offer()
    place.offer()
    place.mute.add("second")
    place.now += PATIENCE_S
    place.offer()
    assert place.offers.news() == []
    place.now += 1
    place.offer()
    (said,) = place.offers.news()
    assert "broadcast of version 1" in said
    assert "no answer within 91 s from generator 1" in said
    assert place.generators[0].calls[-2] == ("offer", 3, ["weights of 3"])
    assert place.generators[0].last()[0] == "meet"


def test_the_silent_one_is_named_beside_those_that_have_given_up_on_it():
    place = Arrangement()
    place.offer()
    place.offer()
    place.mute.add("second")
    place.dead.add("learner")
    place.now += 31
    place.offer()
    (said,) = place.offers.news()
    assert "the learner: " in said
    assert "no answer within 31 s from generator 1" in said


def test_after_too_many_faults_in_a_row_the_run_stays_with_the_store():
    place = Arrangement()
    place.dead.add("first")
    for _ in range(MOST_FAULTS + 5):
        place.offer()
    assert sum(call[0] == "meet" for call in place.learner.calls) == MOST_FAULTS
    assert "generator 0" in place.offers.news()[0]
    assert place.generators[1].last()[:2] == ("offer", MOST_FAULTS + 4)


def test_a_broadcast_that_works_forgives_the_faults_before_it():
    place = Arrangement()
    for _ in range(3 * MOST_FAULTS):
        place.dead.add("first")
        place.offer()
        place.offer()
        place.dead.clear()
        place.offer()
        place.offer()
        place.offer()
    assert place.generators[0].last()[0] == "receive"


# What a recipe may ask for.


def test_a_broadcast_within_one_process_is_refused(recipe):
    wanted = recipe({"resources.weight_transfer": "collective"})
    refuse(wanted, ray=True)
    with pytest.raises(ConfigurationError, match="--no-ray"):
        refuse(wanted, ray=False)


def test_a_broadcast_between_gpus_needs_one_for_each_actor(recipe):
    changes = {"resources.weight_transfer": "collective", "resources.generators": 2, "budget.unit": "GPU-hours"}
    refuse(recipe(changes | {"resources.gpus": 3}), ray=True)
    with pytest.raises(ConfigurationError, match="reserve 3, or use store"):
        refuse(recipe(changes | {"resources.gpus": 2}), ray=True)
