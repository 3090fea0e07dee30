"""What the driver arranges: the store first, then broadcasts, and the store again when they fail."""

from __future__ import annotations

from itertools import count

from ray.exceptions import RayActorError

from trainer.types import WeightVersion
from trainer.workers.offers import MOST_FAULTS, PATIENCE_S, CollectiveOffers


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
