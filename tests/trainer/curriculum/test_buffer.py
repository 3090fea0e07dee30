"""Admission, order and staleness at the buffer's own door: small cases by hand, and a random walk through all of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trainer.curriculum.buffer import BufferState, GroupBuffer
from trainer.types import Group, Prompt, Responses, Wave

PROMPT = Prompt("a prompt", "its answer", np.ones(3, dtype=np.int64))


def made(ordinal: int, versions: list[int], varied: bool = True) -> Group:
    """A group of two responses whose tokens were made by `versions`."""
    shape = (2, len(versions))
    inside = np.ones(shape, dtype=bool)
    responses = Responses(
        key=ordinal,
        tokens=np.ones(shape, dtype=np.int64),
        logprobs=np.zeros(shape, dtype=np.float32),
        versions=np.array([versions, versions], dtype=np.int32),
        lengths=np.full(2, len(versions)),
        finished=np.ones(2, dtype=bool),
        sampled=inside,
        interrupted=np.zeros(2, dtype=bool),
    )
    rewards = np.array([1.0, -1.0 if varied else 1.0])
    return Group(ordinal, PROMPT, responses, rewards, rewards > 0)


def ordinals(groups: list[Group]) -> list[int]:
    return [group.ordinal for group in groups]


def waves(buffer: GroupBuffer, published: int) -> list[tuple[int, ...]]:
    found = []
    while (wave := buffer.admit(published)) is not None:
        found.append(wave.ordinals)
    return found


def test_a_generator_may_run_ahead_to_the_bound_and_no_further():
    buffer = GroupBuffer(prompts_per_step=2, max_staleness=3, queue_batches=64)
    assert waves(buffer, published=0) == [(0, 1), (2, 3), (4, 5), (6, 7)]  # (k + 1) * P groups
    assert buffer.admit(published=1).minimum_version == 1


def test_a_full_queue_keeps_generators_from_making_tokens_old():
    assert waves(GroupBuffer(prompts_per_step=2, max_staleness=30, queue_batches=2), 0) == [(0, 1), (2, 3)]


def test_on_policy_training_generates_a_batch_only_with_the_newest_weights():
    buffer = GroupBuffer(prompts_per_step=2, max_staleness=0, scheme="on-policy")
    assert waves(buffer, published=0) == [(0, 1)]
    buffer.add([made(0, [0]), made(1, [0])])
    assert ordinals(buffer.take().groups) == [0, 1]
    assert buffer.admit(published=0) is None  # the learner is still at it
    assert buffer.admit(published=1).minimum_version == 1


def test_a_round_of_ppo_is_generated_whole_by_one_version_and_consumed_in_as_many_steps():
    buffer = GroupBuffer(prompts_per_step=2, max_staleness=3, scheme="ppo")
    assert waves(buffer, published=0) == [(0, 1), (2, 3), (4, 5)]
    buffer.add([made(o, [0]) for o in range(5)])
    assert buffer.take() is None  # two batches are whole, but the round is not
    buffer.add([made(5, [0])])
    for batch in range(3):
        assert waves(buffer, published=batch) == []
        assert ordinals(buffer.take().groups) == [2 * batch, 2 * batch + 1]
    assert waves(buffer, published=2) == []
    assert buffer.admit(published=3).minimum_version == 3


def test_refill_drops_groups_without_variance_and_the_next_ones_move_up():
    buffer = GroupBuffer(prompts_per_step=3, max_staleness=4, refill=True)
    buffer.admit(0)
    assert ordinals(buffer.add([made(0, [0]), made(1, [0], varied=False), made(2, [0])])) == [1]
    assert buffer.take() is None
    assert buffer.admit(0).ordinals == (3,)  # the free slot first, and no group of the batch after it
    assert buffer.admit(0).ordinals == (4, 5, 6)
    buffer.add([made(o, [0]) for o in (4, 5, 6)])
    assert buffer.take() is None  # 3 is earlier, though later ones are done
    buffer.add([made(3, [0])])
    batch = buffer.take()
    assert (ordinals(batch.groups), ordinals(batch.dropped), ordinals(batch.all)) == ([0, 2, 3], [1], [0, 1, 2, 3])


def test_several_generators_share_a_batch_and_a_wave_never_spans_two():
    buffer = GroupBuffer(prompts_per_step=5, max_staleness=9, queue_batches=9, wave_size=2)
    assert [buffer.admit(0).ordinals for _ in range(4)] == [(0, 1), (2, 3), (4,), (5, 6)]


def test_a_batch_waits_for_its_slowest_group_however_many_later_ones_are_done():
    buffer = GroupBuffer(prompts_per_step=2, max_staleness=2)
    waves(buffer, 0)
    buffer.add([made(ordinal, [0]) for ordinal in (1, 2, 3)])
    assert buffer.take() is None
    buffer.add([made(0, [0])])
    assert ordinals(buffer.take().groups) == [0, 1]


def test_every_ordinal_asks_for_its_prompt_once_and_in_order():
    asked: list[int] = []
    buffer = GroupBuffer(2, 2, prompt_of=lambda ordinal: asked.append(ordinal) or 100 + ordinal)
    assert buffer.admit(0).items == ((0, 100), (1, 101))
    buffer.admit(0)
    assert asked == [0, 1, 2, 3]


def test_a_restored_buffer_generates_again_what_was_under_way_with_the_same_prompts():
    buffer = GroupBuffer(2, 2, prompt_of=lambda ordinal: 7 * ordinal)
    buffer.restore(BufferState(5, 14, [made(12, [5]), made(13, [5])], [], [Wave(((10, 3), (11, 9)), 3)]))
    assert buffer.admit(5) == Wave(((10, 3), (11, 9)), 3)
    assert buffer.admit(5) is None  # batches 5 and 6 are the queue
    buffer.add([made(10, [5]), made(11, [5])])
    assert ordinals(buffer.take().groups) == [10, 11]
    assert buffer.admit(6).items == ((14, 98), (15, 105))


def test_a_token_older_than_the_bound_is_never_handed_over():
    buffer = GroupBuffer(prompts_per_step=1, max_staleness=1)
    buffer.restore(BufferState(4, 5, [made(4, [2])], [], []))
    with pytest.raises(AssertionError):
        buffer.take()


class AnyOrder(RuleBasedStateMachine):
    """Generators and a learner that take any time they like, over every scheme, with kills and resumes in between."""

    @initialize(
        scheme=st.sampled_from(["pipeline", "ppo", "on-policy"]),
        refill=st.booleans(),
        bound=st.integers(0, 5),
        per_step=st.integers(1, 4),
        queue=st.integers(1, 5),
        wave=st.integers(1, 4),
    )
    def begin(self, scheme, refill, bound, per_step, queue, wave):
        self.scheme, self.refill, self.per_step = scheme, refill, per_step
        self.bound = 0 if scheme == "on-policy" else max(1, bound) if scheme == "ppo" else bound
        self.settings = {"queue_batches": queue, "wave_size": wave, "scheme": scheme, "refill": refill}
        self.buffer = GroupBuffer(per_step, self.bound, **self.settings)
        self.published, self.learning = 0, None
        self.under_way: list[Wave] = []
        self.trained: list[int] = []
        self.paid: list[int] = []
        self.barren: set[int] = set()
        self.admitted: list[int] = []

    @rule()
    def admit(self):
        wave = self.buffer.admit(self.published)
        if wave is None:
            return
        assert wave.minimum_version <= self.published
        self.under_way.append(wave)
        self.admitted += [ordinal for ordinal in wave.ordinals if ordinal not in self.admitted]

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def finish_any_wave(self, data):
        wave = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        groups = [self.sampled(ordinal, wave.minimum_version, data) for ordinal in wave.ordinals]
        dropped = self.buffer.add(data.draw(st.permutations(groups)))
        assert bool(dropped) <= self.refill
        self.barren |= set(ordinals(dropped))

    def sampled(self, ordinal, oldest, data):
        """Tokens by any versions that a generator may hold meanwhile, the oldest allowed one above all."""
        held = sorted(data.draw(st.lists(st.integers(oldest, self.published), min_size=1, max_size=3)))
        return made(ordinal, held, data.draw(st.sampled_from([True, True, False])))

    @precondition(lambda self: self.learning is None)
    @rule()
    def take(self):
        batch = self.buffer.take()
        if batch is None:
            return
        self.learning = batch
        oldest = min(group.oldest_version for group in batch.groups)
        assert batch.number == self.published  # trained on by the weights of that number
        assert batch.number - oldest <= (self.bound if self.scheme == "pipeline" else max(0, self.bound - 1))
        if self.scheme != "pipeline":
            start = batch.number // max(1, self.bound) * max(1, self.bound)
            assert {int(v) for g in batch.groups for v in g.responses.versions.flat} == {start}
        self.trained += ordinals(batch.groups)
        self.paid += ordinals(batch.all)

    @precondition(lambda self: self.learning is not None)
    @rule()
    def publish(self):
        self.learning, self.published = None, self.published + 1

    @precondition(lambda self: self.learning is None)
    @rule()
    def kill_and_resume(self):
        state = self.buffer.state()
        assert all(wave in state.waves for wave in self.under_way)
        self.buffer = GroupBuffer(self.per_step, self.bound, **self.settings)
        self.buffer.restore(state)
        self.under_way = []

    @invariant()
    def first_in_first_out(self):
        """What is trained on are the first ordinals that count, each once; what is paid for leaves no gap."""
        trained = getattr(self, "trained", [])
        assert trained == sorted(set(trained))
        gaps = set(range(trained[-1] + 1)) - set(trained) if trained else set()
        assert gaps <= getattr(self, "barren", set())
        paid = getattr(self, "paid", [])
        assert sorted(paid) == list(range(len(paid)))

    @invariant()
    def somebody_can_go_on(self):
        """No deadlock: with all work done, either a batch is whole or more may be generated."""
        if not hasattr(self, "buffer") or self.under_way or self.learning is not None:
            return
        again = GroupBuffer(self.per_step, self.bound, **self.settings)
        again.restore(self.buffer.state())
        assert again.admit(self.published) is not None or again.take() is not None


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
