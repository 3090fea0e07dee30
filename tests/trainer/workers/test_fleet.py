"""Generators that die or stall are replaced: bookkeeping, bounds, order, with actors and a clock of plain Python."""

from __future__ import annotations

from itertools import count

import pytest
from ray.exceptions import RayActorError

from trainer.errors import WorkerLost
from trainer.types import GeneratorLost, Wave, WeightVersion
from trainer.workers import Ticket
from trainer.workers.fleet import MOST_LOSSES, START_TIMEOUT_S, WINDOW_S, Fleet, Work
from trainer.workers.stalls import StallWatch


class Method:
    """What `actor.method.remote(...)` is called on: keeps the call, and gives a reference to it."""

    def __init__(self, actor, name):
        self._actor, self._name = actor, name

    def remote(self, *arguments):
        self._actor.calls.append((self._name, *arguments))
        return (self._actor.number, self._name, next(self._actor.references))


class Actor:
    references = count()

    def __init__(self, number):
        self.number, self.calls = number, []

    def __getattr__(self, name):
        return Method(self, name)


class Place:
    """A fleet of two, a clock that stands until it is set, which actors are dead or silent, and what others did."""

    def __init__(self, limit=900.0):
        self.now, self.dead, self.silent, self.steps, self.made, self.killed = 0.0, set(), set(), {}, [], []
        watch = StallWatch(limit, lambda: self.now, self._ended, self.get)
        self.fleet = Fleet(self._make, 2, watch, lambda: self.now, kill=self._kill)

    def _make(self, index):
        self.made.append(Actor(len(self.made)))
        return self.made[-1]

    def get(self, reference):
        if reference[0] in self.dead:
            raise RayActorError()
        if reference[1] == "signs":
            return self.steps.get(reference[0], 0)
        return f"result of {reference[1]}"

    def _ended(self, references):
        return [reference for reference in references if reference[0] not in self.silent]

    def _kill(self, actor):
        self.killed.append(actor.number)
        self.dead.add(actor.number)

    def pass_time(self, seconds, at_work=()):
        """Second by second; those at work make a step in each. What was lost meanwhile."""
        news = []
        for _ in range(int(seconds)):
            self.now += 1
            for actor in at_work:
                self.steps[actor] = self.steps.get(actor, 0) + 1
            news += self.fleet.check()
        return news

    def newcomers_are_there(self):
        for reference in self.fleet.references:
            if reference[1] == "ready":
                self.fleet.finished(reference, self.get)

    def start(self, number, what):
        self.fleet.start(Work(Ticket(number, "wave" if isinstance(what, Wave) else "evaluation"), what))

    def at(self, actor):
        return [reference for reference in self.fleet.references if reference[0] == actor]


FIRST, SECOND, THIRD = (Wave(((n, n),), 0) for n in range(3))


def test_work_goes_to_the_generator_that_has_least_and_comes_back_under_its_ticket():
    place = Place()
    for number, wave in enumerate((FIRST, SECOND, THIRD)):
        place.start(number, wave)
    assert [len(place.at(0)), len(place.at(1))] == [2, 1]
    ticket, result = place.fleet.finished(place.at(1)[0], place.get)
    assert (ticket.number, result, len(place.at(1))) == (1, "result of generate", 0)


def test_what_a_dead_generator_had_to_do_starts_again_with_the_newest_weights_evaluations_first():
    place = Place()
    weights = WeightVersion(7, "weights of 7")
    place.fleet.offer(weights)
    place.start(0, FIRST)
    place.start(1, SECOND)
    place.start(2, weights)
    place.start(3, THIRD)
    place.now = 5.0
    place.dead.add(0)
    ticket, news = place.fleet.finished(place.at(0)[1], place.get)
    assert (ticket.kind, type(news)) == ("generator", GeneratorLost)
    assert news.cost.wall_seconds == 5.0
    assert not place.at(0)
    assert place.made[2].calls == [
        ("ready",),
        ("offer", 7, ["weights of 7"]),
        ("evaluate", 7, "weights of 7", 0),
        ("generate", FIRST, 1),  # one evaluation before it
    ]
    newcomer, *again = sorted(place.at(2), key=lambda reference: reference[2])
    assert place.fleet.finished(newcomer, place.get) is None
    assert [place.fleet.finished(reference, place.get)[0].number for reference in again] == [2, 0]


def test_an_evaluation_is_sent_to_go_after_the_wave_that_its_generator_is_at_and_before_those_that_wait():
    place = Place()
    weights = WeightVersion(7, "weights of 7")
    for number, what in enumerate((FIRST, SECOND, THIRD, FIRST, weights)):
        place.start(number, what)
    assert place.made[0].calls[-1] == ("evaluate", 7, "weights of 7", 1)  # of two waves
    place.fleet.finished(place.at(0)[0], place.get)
    place.fleet.finished(place.at(1)[0], place.get)
    place.start(5, weights)
    assert place.made[1].calls[-1] == ("evaluate", 7, "weights of 7", 2)  # the first is over, the second begun


def test_time_before_the_last_result_is_no_loss():
    place = Place()
    place.start(0, FIRST)
    place.start(1, SECOND)
    place.start(2, THIRD)
    place.now = 30.0
    place.fleet.finished(place.at(0)[0], place.get)
    place.now = 32.0
    place.dead.add(0)
    _, news = place.fleet.finished(place.at(0)[0], place.get)
    assert news.cost.wall_seconds == 2.0


def die(place):
    """Whoever is at work dies, and its work says so."""
    reference = next(reference for reference in place.fleet.references if reference[1] == "generate")
    place.dead.add(reference[0])
    return place.fleet.finished(reference, place.get)


def test_too_many_deaths_within_the_window_end_the_run_by_name():
    place = Place()
    place.start(0, FIRST)
    for _ in range(MOST_LOSSES):
        die(place)
    with pytest.raises(WorkerLost, match="the 4th within 10 minutes"):
        die(place)


def test_deaths_far_apart_are_put_up_with_for_ever():
    place = Place()
    for number in range(5 * MOST_LOSSES):
        place.start(number, FIRST)
        place.now += WINDOW_S / MOST_LOSSES + 1
        assert isinstance(die(place)[1], GeneratorLost)
        again = next(reference for reference in place.fleet.references if reference[1] == "generate")
        place.fleet.finished(again, place.get)


def test_work_that_generator_after_generator_is_lost_at_ends_the_run_by_name_however_long_that_takes():
    place = Place()
    place.start(0, FIRST)
    place.start(1, WeightVersion(3, "weights"))
    place.start(2, SECOND)
    for _ in range(MOST_LOSSES):
        place.now += 2 * WINDOW_S
        die(place)
    with pytest.raises(WorkerLost, match="4 generators were lost at the wave of prompts 0 to 0"):
        die(place)


def test_an_evaluation_that_ends_generators_is_named_although_a_wave_was_sent_before_it():
    """A wave is under way, another waits, an evaluation comes: it is next, and every generator dies of it."""
    place = Place()
    place.start(0, FIRST)
    place.start(1, SECOND)  # at the other one
    place.start(2, THIRD)
    place.start(3, SECOND)
    place.start(4, WeightVersion(3, "weights"))
    place.fleet.finished(place.at(0)[0], place.get)
    for _ in range(MOST_LOSSES):
        place.now += 2 * WINDOW_S
        actor = next(reference for reference in place.fleet.references if reference[1] == "evaluate")[0]
        place.dead.add(actor)
        place.fleet.finished(place.at(actor)[0], place.get)
    place.now += 2 * WINDOW_S
    actor = next(reference for reference in place.fleet.references if reference[1] == "evaluate")[0]
    place.dead.add(actor)
    with pytest.raises(WorkerLost, match="4 generators were lost at the evaluation of step 3"):
        place.fleet.finished(place.at(actor)[0], place.get)


def test_a_newcomer_that_finds_no_room_ends_the_run_by_name():
    place = Place()
    place.start(0, FIRST)
    die(place)
    place.now = START_TIMEOUT_S
    place.fleet.check()
    place.now += 1
    with pytest.raises(WorkerLost, match="no room"):
        place.fleet.check()


def test_a_generator_that_stalls_is_killed_and_its_work_starts_again_elsewhere():
    place = Place(limit=100.0)
    place.start(0, FIRST)
    place.start(1, SECOND)
    place.start(2, THIRD)
    place.pass_time(20, at_work=(0, 1))
    ((ticket, news),) = place.pass_time(110, at_work=(1,))
    assert place.killed == [0]
    assert (ticket.kind, type(news)) == ("generator", GeneratorLost)
    assert "generator 0 stalled and was replaced; 2 pieces of work start again" in news.reason
    assert "resources.stall_seconds" in news.reason
    assert 110 <= news.cost.wall_seconds <= 130
    assert [call for call in place.made[2].calls if call[0] == "generate"] == [
        ("generate", FIRST, 0),
        ("generate", THIRD, 0),
    ]
    assert not place.at(0)


def test_a_newcomer_is_not_watched_while_it_starts():
    place = Place(limit=100.0)
    place.start(0, FIRST)
    die(place)
    place.silent.add(2)
    assert place.pass_time(START_TIMEOUT_S - 1) == []
    place.newcomers_are_there()
    assert len(place.pass_time(110)) == 1
    assert place.killed == [2]


def test_a_generator_without_work_never_stalls():
    place = Place(limit=100.0)
    place.start(0, FIRST)
    place.fleet.finished(place.at(0)[0], place.get)
    assert place.pass_time(1000) == []


def test_work_at_which_generator_after_generator_stalls_ends_the_run_by_name():
    place = Place(limit=900.0)
    place.start(0, FIRST)
    for _ in range(MOST_LOSSES):
        assert len(place.pass_time(930)) == 1
        place.newcomers_are_there()
    with pytest.raises(WorkerLost, match=r"4 generators were lost at the wave.*the last because it stalled: no token"):
        place.pass_time(930)
