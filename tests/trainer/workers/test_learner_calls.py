"""The learner's ranks as the controller calls them: steps in order, each done when all ranks are."""

from __future__ import annotations

import pytest

from trainer.types import Cost, Memory, StepResult, WeightVersion
from trainer.workers import learners
from trainer.workers.learners import LearnerRanks
from trainer.workers.stalls import StallWatch


class Method:
    def __init__(self, name, calls):
        self._name, self._calls = name, calls

    def remote(self, *arguments):
        self._calls.append((self._name, arguments))
        return (id(self._calls), len(self._calls))


class Actor:
    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return Method(name, self.calls)


@pytest.fixture
def ranks(monkeypatch):
    monkeypatch.setattr(learners.ray, "put", lambda value: value)
    return LearnerRanks(lambda rank: Actor(), 2, StallWatch(10.0))


def result(version, cpu, wall, peak=0):
    return StepResult(version, {}, WeightVersion(version, None), True, False, Cost(cpu, wall), Memory(peak, 80))


def test_two_steps_in_flight_come_back_one_by_one_each_when_both_ranks_are_done(ranks):
    ranks.start_step(["first"])
    ranks.start_step(["second"])
    a1, b1 = ranks.references  # the second is not waited for, however early it is known to be done
    assert ranks.finished(a1, lambda reference: result(1, 2.0, 3.0, peak=30)) is None
    assert ranks.references == [b1]
    first = ranks.finished(b1, lambda reference: result(1, 4.0, 5.0, peak=20))
    assert (first.version, first.cost, first.memory) == (1, Cost(6.0, 5.0), Memory(30, 80))
    a2, b2 = ranks.references
    assert ranks.finished(a2, lambda reference: result(2, 1.0, 1.0)) is None
    assert ranks.finished(b2, lambda reference: result(2, 1.0, 2.0)).version == 2
    assert [name for name, _ in ranks.actors[0].calls] == ["step", "step"]
