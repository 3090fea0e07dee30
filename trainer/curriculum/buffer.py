"""Who may start generating, and which groups make the next batch: the bound on staleness lives here.

Groups are numbered by admission (their ordinal), and a batch is the first P groups by ordinal that count, so short
answers cannot jump the queue. The learner trains on batch b with weights of version b. `refill` drops a group without
variance on arrival: it leaves its slot, later ones move up, and never back. The batch that a group is in when it is
admitted is therefore the latest it can be in, and the bound that is kept at admission holds at the end.

    scheme      may start when generators hold at least       runs ahead to                learner starts on
    pipeline    version b - k (§3.1, PipelineRL-k)            queue_batches                a whole batch
    ppo         version of the round's first batch            the round's k batches        a whole round
    on-policy   version b                                     that batch                   a whole batch

A round of `ppo` (PPO-off-policy-k, §3.1) is generated whole before its first step, so one version makes all its tokens;
`on-policy` is a round of one. Where the prompts run out, the round ends with the whole batches that there are. So no
token that is trained on is ever older than k versions (k - 1 with `ppo`), exactly, however long anything takes.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.algorithm.advantages import has_variance
from trainer.types import Group, Wave

Scheme = Literal["pipeline", "ppo", "on-policy"]


@dataclass(frozen=True, slots=True)
class Batch:
    """What one optimiser step consumes: `groups` [P] to train on, and those that `refill` `dropped` on the way."""

    number: int
    groups: list[Group]
    dropped: list[Group]

    @property
    def all(self) -> list[Group]:
        """Both, by ordinal: what the step cost."""
        return sorted([*self.groups, *self.dropped], key=lambda group: group.ordinal)


@dataclass(frozen=True, slots=True)
class BufferState:
    """For a checkpoint: finished groups with all their arrays, and the waves under way, to be generated again."""

    batches_taken: int
    next_ordinal: int
    groups: Sequence[Group]
    dropped: Sequence[Group]
    waves: Sequence[Wave]


class GroupBuffer:
    """Admission and order of groups.

    Args:
        prompts_per_step: P.
        max_staleness: k.
        queue_batches: batches that `pipeline` generates ahead of the one being learned from.
        wave_size: most groups that start together; None for P.
        scheme: see the module.
        refill: drop groups without variance on arrival and take others in their place.
        prompt_of: index of the prompt for an ordinal, asked once for each, in order.
    """

    def __init__(
        self,
        prompts_per_step: int,
        max_staleness: int,
        queue_batches: int = 2,
        wave_size: int | None = None,
        *,
        scheme: Scheme = "pipeline",
        refill: bool = False,
        prompt_of: Callable[[int], int] = lambda ordinal: ordinal,
    ):
        self._per_step = prompts_per_step
        self._max_staleness = max_staleness
        self._queue_batches = queue_batches
        self._wave_size = wave_size or prompts_per_step
        self._round = None if scheme == "pipeline" else 1 if scheme == "on-policy" else max(1, max_staleness)
        self._refill = refill
        self._prompt_of = prompt_of
        self._batch = 0
        self._next = 0
        self._slots: list[int] = []  # ordinals admitted, neither dropped nor taken, rising
        self._complete: dict[int, Group] = {}
        self._dropped: list[Group] = []  # by ordinal; those that no batch has paid for yet
        self._under_way: list[Wave] = []
        self._again: deque[Wave] = deque()  # restored, to be issued before any new one

    @property
    def batches_taken(self) -> int:
        """Batches that the learner has had."""
        return self._batch

    @property
    def complete(self) -> list[Group]:
        """Finished groups that wait for their batch, by ordinal."""
        return [self._complete[ordinal] for ordinal in sorted(self._complete)]

    @property
    def dropped(self) -> list[Group]:
        """Groups dropped since the last batch, by ordinal."""
        return list(self._dropped)

    def admit(self, published: int) -> Wave | None:
        """The next groups that may start now; None while the bound or a full queue forbids it.

        `published` is the newest weight version that generators have been offered.
        """
        if self._again:
            return self._started(self._again.popleft())
        place = len(self._slots)
        batch = self._batch + place // self._per_step
        if published < self._minimum_version(batch) or batch >= self._horizon(published):
            return None
        size = min(self._per_step - place % self._per_step, self._wave_size)
        ordinals = range(self._next, self._next + size)
        items = tuple((ordinal, self._prompt_of(ordinal)) for ordinal in ordinals)
        self._next += size
        self._slots += ordinals
        return self._started(Wave(items, max(0, self._minimum_version(batch))))

    def add(self, groups: Iterable[Group]) -> list[Group]:
        """Finished groups of a wave, in any order; those that were dropped come back."""
        groups = list(groups)
        arrived = {group.ordinal for group in groups}
        self._under_way = [wave for wave in self._under_way if not arrived.issuperset(wave.ordinals)]
        dropped = [group for group in groups if self._refill and not has_variance(group.rewards[None])[0]]
        for group in groups:
            assert group.ordinal not in self._complete, f"group {group.ordinal} came back twice"
            self._complete[group.ordinal] = group
        for group in dropped:
            del self._complete[group.ordinal]
            self._slots.remove(group.ordinal)
            insort(self._dropped, group, key=lambda other: other.ordinal)
        return dropped

    def take(self, last: bool = False) -> Batch | None:
        """The next batch, in order, once all that its scheme waits for is there. `last`: nothing more will come."""
        needed = (self._round_end() - self._batch if self._round and not last else 1) * self._per_step
        first = self._slots[:needed]
        if len(first) < needed or any(ordinal not in self._complete for ordinal in first):
            return None
        ordinals, self._slots = self._slots[: self._per_step], self._slots[self._per_step :]
        groups = [self._complete.pop(ordinal) for ordinal in ordinals]
        oldest = min(group.oldest_version for group in groups)
        assert self._batch - oldest <= self._max_staleness, (self._batch, oldest, self._max_staleness)
        paid = [group for group in self._dropped if group.ordinal < ordinals[-1]]
        self._dropped = self._dropped[len(paid) :]
        self._batch += 1
        return Batch(self._batch - 1, groups, paid)

    def state(self) -> BufferState:
        """Where admission stands."""
        waves = [*self._under_way, *self._again]
        return BufferState(self._batch, self._next, self.complete, self.dropped, waves)

    def restore(self, state: BufferState) -> None:
        """Go on from `state`. What was under way is generated again: same ordinals, same prompts, same waves."""
        self._batch, self._next = state.batches_taken, state.next_ordinal
        self._complete = {group.ordinal: group for group in state.groups}
        self._dropped = list(state.dropped)
        self._under_way, self._again = [], deque(state.waves)
        waiting = [ordinal for wave in state.waves for ordinal in wave.ordinals]
        self._slots = sorted([*self._complete, *waiting])

    def _started(self, wave: Wave) -> Wave:
        self._under_way.append(wave)
        return wave

    def _minimum_version(self, batch: int) -> int:
        return batch - self._max_staleness if self._round is None else batch // self._round * self._round

    def _horizon(self, published: int) -> int:
        """First batch that may not be generated yet. One that waits at the learner is still in the queue."""
        ahead_of = min(self._batch, published + 1)
        return ahead_of + self._queue_batches if self._round is None else self._round_end()

    def _round_end(self) -> int:
        """First batch of the next round."""
        assert self._round
        return (self._batch // self._round + 1) * self._round
