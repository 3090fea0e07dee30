"""Who may start generating, and which groups make the next batch: the bound on staleness lives here.

Batch b is made of ordinals b*P ... b*P + P-1, in that order and no other (first in, first out by admission), so
short answers cannot jump the queue. The learner trains on batch b with weights of version b. A group of batch b
may therefore start generating only on a generator that holds version b - k or newer: then no token that is
trained on is ever older than k versions, exactly, however long anything takes.

Apart from the bound, generators do not run further ahead than `queue_batches` beyond the batch that the learner is at:
a queue that is longer than what keeps everybody busy only makes tokens old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from trainer.types import Group, Wave


class GroupBuffer:
    """Admission and order of groups. `published` is the newest weight version offered to generators."""

    def __init__(
        self,
        prompts_per_step: int,
        max_staleness: int,
        queue_batches: int = 2,
        wave_size: int | None = None,
        prompt_of: Callable[[int], int] = lambda ordinal: ordinal,
    ):
        self._per_step = prompts_per_step
        self._max_staleness = max_staleness
        self._queue_batches = queue_batches
        self._wave_size = wave_size or prompts_per_step
        self._prompt_of = prompt_of
        self._complete: dict[int, Group] = {}
        self._cursor = 0
        self._batch = 0

    @property
    def batches_taken(self) -> int:
        """Batches that the learner has had."""
        return self._batch

    @property
    def outstanding(self) -> int:
        """Groups admitted and not yet trained on."""
        return self._cursor - self._batch * self._per_step

    @property
    def complete(self) -> list[Group]:
        """Finished groups that wait for their batch, by ordinal."""
        return [self._complete[ordinal] for ordinal in sorted(self._complete)]

    def admit(self, published: int) -> Wave | None:
        """The next groups that may start now; None while the bound or a full queue forbids it."""
        while self._cursor in self._complete:
            self._cursor += 1
        batch = self._cursor // self._per_step
        minimum = batch - self._max_staleness
        if published < minimum or batch >= self._batch + self._queue_batches:
            return None
        end = min((batch + 1) * self._per_step, self._cursor + self._wave_size)
        ordinals = [ordinal for ordinal in range(self._cursor, end) if ordinal not in self._complete]
        self._cursor = end
        return Wave(tuple((ordinal, self._prompt_of(ordinal)) for ordinal in ordinals), max(0, minimum))

    def add(self, groups: Iterable[Group]) -> None:
        """Finished groups, in any order."""
        for group in groups:
            assert group.ordinal not in self._complete, f"group {group.ordinal} came back twice"
            self._complete[group.ordinal] = group

    def take(self) -> list[Group] | None:
        """The next batch, in order, once all of it is there."""
        ordinals = range(self._batch * self._per_step, (self._batch + 1) * self._per_step)
        if any(ordinal not in self._complete for ordinal in ordinals):
            return None
        groups = [self._complete.pop(ordinal) for ordinal in ordinals]
        oldest = min(group.oldest_version for group in groups)
        assert self._batch - oldest <= self._max_staleness, (self._batch, oldest, self._max_staleness)
        self._batch += 1
        return groups

    def restore(self, batches_taken: int, complete: Iterable[Group]) -> None:
        """Go on after `batches_taken` batches with these finished groups; what was in flight is generated again."""
        self._batch = batches_taken
        self._cursor = batches_taken * self._per_step
        self._complete = {group.ordinal: group for group in complete}
