"""When a worker that lives counts as stalled: the rule, with a clock and answers under our hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from ray.exceptions import RayActorError

from trainer.generation.generator import Generator
from trainer.tasks import build_task
from trainer.types import Wave
from trainer.workers.stalls import ASK_S, StallWatch

LIMIT = 900.0


class Actor:
    """Answers `signs` with what it did, unless it is mute or dead."""

    def __init__(self):
        self.did, self.mute, self.dead, self.asked = 0, False, False, 0
        self.signs = self

    def remote(self):
        self.asked += 1
        return self


class Scene:
    def __init__(self):
        self.now = 0.0
        self.watch = StallWatch(LIMIT, lambda: self.now, self._ended, self._get)

    def _ended(self, questions):
        return [actor for actor in questions if not actor.mute]

    def _get(self, actor):
        if actor.dead:
            raise RayActorError()
        return actor.did

    def until_stalled(self, working, most, every=1.0, meanwhile=lambda: None):
        """Seconds until one of them has stalled, and who; None when none does in `most` seconds."""
        began = self.now
        while self.now - began < most:
            self.now += every
            meanwhile()
            if stalled := self.watch.stalled(working):
                return self.now - began, stalled
        return None


@pytest.mark.parametrize("mute", [True, False], ids=["it no longer answers", "it answers that it did nothing"])
def test_who_stands_still_has_stalled_after_the_limit_and_not_before(mute):
    scene, well, other = Scene(), Actor(), Actor()

    def work():
        well.did += 1

    working = {0: well, 1: other}
    scene.until_stalled(working, 5 * ASK_S, meanwhile=work)
    other.did += 1
    other.mute = mute
    seconds, stalled = scene.until_stalled(working, 2 * LIMIT, meanwhile=work)
    assert stalled == [1]
    assert LIMIT - 5 * ASK_S < seconds <= LIMIT + 2 * ASK_S


def test_one_sign_well_before_the_limit_is_enough_again_and_again():
    scene, slow = Scene(), Actor()
    for _ in range(20):
        assert scene.until_stalled({0: slow}, LIMIT - 3 * ASK_S) is None
        slow.did += 1
    assert scene.until_stalled({0: slow}, 2 * LIMIT) is not None


def test_time_in_which_nobody_looked_is_no_silence():
    scene, actor = Scene(), Actor()
    for _ in range(8):
        assert scene.until_stalled({0: actor}, 60.0) is None
        scene.now += 3 * LIMIT  # the controller writes a checkpoint, or the machine sleeps
    seconds, _ = scene.until_stalled({0: actor}, 2 * LIMIT)
    assert seconds > LIMIT / 3


def test_who_has_nothing_to_do_is_not_watched_and_starts_anew():
    scene, idle, busy = Scene(), Actor(), Actor()

    def work():
        busy.did += 1

    assert scene.until_stalled({0: idle, 1: busy}, LIMIT / 2, meanwhile=work) is None
    assert scene.until_stalled({1: busy}, 5 * LIMIT, meanwhile=work) is None
    assert scene.until_stalled({0: idle}, LIMIT - 2 * ASK_S) is None


def test_the_successor_does_not_inherit_the_silence():
    scene, first, second = Scene(), Actor(), Actor()
    assert scene.until_stalled({0: first}, LIMIT - 3 * ASK_S) is None
    assert scene.until_stalled({0: second}, LIMIT - 3 * ASK_S) is None


def test_the_dead_are_left_to_those_who_wait_for_their_work():
    scene, actor = Scene(), Actor()
    actor.dead = True
    assert scene.until_stalled({0: actor}, LIMIT / 2) is None


def test_one_question_at_a_time_and_no_more_often_than_needed():
    scene, well, mute = Scene(), Actor(), Actor()
    mute.mute = True
    scene.until_stalled({0: well, 1: mute}, 100.0, every=0.5)
    assert 100.0 / (2 * ASK_S) <= well.asked <= 1 + 100.0 / ASK_S
    assert mute.asked == 1


def test_a_generator_shows_life_with_every_token_every_swap_and_every_verdict(recipe, model, base, monkeypatch):
    small = recipe({"generation.max_tokens": 20})
    task = build_task(small)
    judged, passed = [], task.passed

    def judge(*arguments):
        judged.append(1)
        return passed(*arguments)

    monkeypatch.setattr(task, "passed", judge)
    monkeypatch.setattr(task, "metrics", lambda: {"verifier/judged": 1000.0 * len(judged)})
    generator, seen = Generator(small, task, lambda: model(small)), []

    def newest(held):
        seen.append(generator.signs)
        return (1, base) if held == 0 and len(seen) == 5 else None

    groups = generator.generate(Wave(((0, 0), (1, 1)), 0), newest).groups
    steps = [after - before for before, after in pairwise(seen[1:])]
    assert steps == [1.0] * 3 + [2.0] + [1.0] * (len(steps) - 4)  # a step each, and the weights once
    longest = max(int(group.responses.lengths.max()) for group in groups)
    assert len(seen) == 1 + longest
    assert generator.signs - seen[-1] == 2000.0
