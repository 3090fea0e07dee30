"""Which prompt comes at which place of the run's order, and which prompts never come again.

An endless task gives a new prompt to every ordinal. A pool or a dataset is gone through in epochs: seeded
permutations of the prompts that are still active. No-Positive-Resampling (ScaleRL §3.2) looks at a prompt's whole
history: when an epoch ends, prompts that were solved in at least `threshold` of all their completions so far are
left out of every later epoch. With a mixture each task has its own epochs and its share of every batch. A task that has
no prompt left when its epoch ends is dropped, for good like the prompts.

The order is asked by ordinal and gives the same prompt for the same ordinal ever after, so that groups that were in
flight at a checkpoint are generated again from the same prompts. Its state is the history and what follows from
the moments at which epochs ended; everything else is drawn again from the seed. It is the state of one set of prompts
and one mixture of them: a fork with others starts its order anew. One with another seed begins a new epoch, for the
rest of its parent's would have prompts again that had come, and lack others. So does one that turns
No-Positive-Resampling off where its parent has left prompts out: they come again.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forecurve.recipes import Recipe
from forecurve.recipes.schema import Dataset
from trainer.curriculum.mixture import Mixture
from trainer.errors import ConfigurationError, TrainerError
from trainer.streams import Stream
from trainer.tasks import Task


class PromptsExhausted(TrainerError):
    """No-Positive-Resampling has left no prompt: the policy solves them all. The run is at its end."""


class Epochs:
    """The epochs of one set of prompts. Positions count from 0 through all epochs.

    Args:
        indices: the set, as indices of the task's training prompts.
        seed: words that decide the permutations.
        threshold: pass rate from which a prompt is left out of later epochs; None keeps all.
        floor: prompts that stay in any case, those with the lowest pass rates.
        first: order of the first epoch; None for a permutation like the others.
    """

    def __init__(
        self,
        indices: Sequence[int],
        seed: tuple[int, ...],
        threshold: float | None,
        floor: int,
        first: Sequence[int] | None = None,
    ):
        self._indices, self._seed, self._threshold, self._floor, self._first = indices, seed, threshold, floor, first
        self._passed: dict[int, int] = {}
        self._tried: dict[int, int] = {}
        self._left_out: dict[int, int] = {}  # index to the first epoch without it
        self._starts = [0]
        self._orders: dict[int, list[int]] = {}

    @property
    def epoch(self) -> int:
        """The newest epoch begun, counted from 0."""
        return len(self._starts) - 1

    @property
    def active(self) -> int:
        """Prompts of the newest epoch."""
        return len(self._order(self.epoch))

    def at(self, position: int) -> int:
        """The prompt at `position`; ends epochs on the way there. PromptsExhausted when none is left."""
        while position >= self._starts[-1] + self.active:
            self._end_epoch()
        epoch = self.epoch_of(position)
        return self._order(epoch)[position - self._starts[epoch]]

    def epoch_of(self, position: int) -> int:
        """The epoch, of those begun, that `position` is in or beyond."""
        return bisect_right(self._starts, position) - 1

    def observe(self, index: int, passed: int, samples: int) -> None:
        """`passed` of `samples` completions of a prompt were right."""
        self._passed[index] = self._passed.get(index, 0) + passed
        self._tried[index] = self._tried.get(index, 0) + samples

    def state(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "starts": list(self._starts),
            "left_out": [[index, epoch] for index, epoch in self._left_out.items()],
            "history": [[index, self._passed[index], tried] for index, tried in self._tried.items()],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to `state`."""
        self._starts = list(state["starts"])
        self._left_out = dict(state["left_out"])
        self._passed = {index: passed for index, passed, _ in state["history"]}
        self._tried = {index: tried for index, _, tried in state["history"]}
        self._orders = {}

    def take_all(self) -> bool:
        """Without a threshold: take back what another run has left out. Whether there was any, so that the order of
        the epochs begun is lost."""
        if self._threshold is not None or not self._left_out:
            return False
        self._left_out = {}
        return True

    def begin_epoch_at(self, position: int) -> None:
        """Begin a new epoch there, unless one does; those begun beyond it, for prompts that come anew, are undone. A
        set that is all solved stays in its last epoch."""
        while len(self._starts) > 1 and self._starts[-2] >= position:
            self._starts.pop()
        self._orders = {}
        if self._starts[-1] >= position:
            self._starts[-1] = position
            return
        try:
            self._end_epoch(position)
        except PromptsExhausted:
            return

    def _end_epoch(self, at: int | None = None) -> None:
        """At its last prompt, or before position `at`."""
        following = self.epoch + 1
        solved = self._solved(self._active_in(self.epoch))
        if self.active == len(solved):
            raise PromptsExhausted(
                f"every prompt of epoch {following} was solved in at least {self._threshold:g} of its completions, so "
                "none is left to train on; take harder prompts, raise algorithm.no_positive_resampling, or set "
                "algorithm.min_active_prompts"
            )
        self._starts.append(self._starts[-1] + self.active if at is None else at)
        self._left_out |= dict.fromkeys(solved, following)

    def _solved(self, active: Sequence[int]) -> list[int]:
        """Prompts of `active` to leave out, the best solved first, down to the floor."""
        if self._threshold is None:
            return []
        rates = {index: self._passed[index] / self._tried[index] for index in active if self._tried.get(index)}
        solved = [index for index, rate in rates.items() if rate >= self._threshold]
        room = max(0, len(active) - self._floor)
        return sorted(solved, key=lambda index: (-rates[index], index))[:room]

    def _active_in(self, epoch: int) -> list[int]:
        return [index for index in self._indices if self._left_out.get(index, epoch + 1) > epoch]

    def _order(self, epoch: int) -> list[int]:
        if epoch not in self._orders:
            self._orders = {known: order for known, order in self._orders.items() if known >= epoch - 1}
            self._orders[epoch] = self._drawn_order(epoch)
        return self._orders[epoch]

    def _drawn_order(self, epoch: int) -> list[int]:
        if epoch == 0 and self._first is not None:
            return list(self._first)
        rng = np.random.default_rng((Stream.PROMPT_ORDER, *self._seed, epoch))
        return [int(index) for index in rng.permutation(self._active_in(epoch))]


class PromptOrder:
    """Ordinal to prompt for a whole run; see the module.

    Args:
        count: distinct training prompts; None for an endless task, whose order is 0, 1, 2...
        seed: the run's.
        threshold: of No-Positive-Resampling; None turns it off.
        floor: prompts of each task of the mixture that stay active in any case.
        names: task of each prompt, [count]; needed with `weights` only.
        weights: share of each task; {} for one order over all prompts, as the data come.
        difficulties: [count], larger is harder: the first epoch goes from easy to hard (stable for ties after the
            seeded permutation); () for no such order.
        digest: of the set of prompts; see `Task.training_digest`.

    Raises:
        ConfigurationError: the settings need a finite set of prompts, or name tasks that the prompts do not have.
    """

    def __init__(
        self,
        count: int | None,
        seed: int,
        *,
        threshold: float | None = None,
        floor: int = 0,
        names: Sequence[str] = (),
        weights: Mapping[str, float] | None = None,
        difficulties: Sequence[float] = (),
        digest: str = "",
    ):
        self._digest, self._seed, self._threshold, self._first_epoch = digest, seed, threshold, ""
        self._endless = count is None
        if count is None:
            _refuse_endless(threshold, weights, difficulties)
            return
        if count < 1:
            raise ConfigurationError("the training set has no prompts")
        parts = _parts(count, names, weights or {})
        self._part_of = {index: part for part, indices in parts.items() for index in indices}
        self._weights = {name: weight for name, weight in (weights or {}).items() if weight > 0}
        self._mixture = Mixture(self._weights or {"": 1.0})
        first = {
            part: _easy_first(indices, (seed, place), difficulties)
            for place, (part, indices) in enumerate(parts.items())
        }
        if len(difficulties):
            self._first_epoch = hashlib.sha256(json.dumps(first).encode()).hexdigest()
        self._epochs = {
            part: Epochs(indices, (seed, place), threshold, floor, first[part])
            for place, (part, indices) in enumerate(parts.items())
        }

    def next(self, ordinal: int) -> int:
        """Index of the prompt at `ordinal`. The same for the same ordinal whenever it is asked again.

        Raises:
            PromptsExhausted: No-Positive-Resampling has left none.
        """
        while not self._endless:
            part, position = self._mixture.at(ordinal)
            try:
                return self._epochs[part].at(position)
            except PromptsExhausted:
                if len(self._mixture.names) == 1:
                    raise
                self._mixture.drop(part, ordinal)
        return ordinal

    def observe(self, index: int, passed: int, samples: int) -> None:
        """`passed` of `samples` completions of the prompt `index` were right: once for every group, kept or dropped."""
        if not self._endless:
            self._epochs[self._part_of[index]].observe(index, passed, samples)

    def state(self) -> dict[str, Any]:
        """For the checkpoint, as JSON."""
        if self._endless:
            return {}
        return {
            "prompts": self._digest,
            "weights": self._weights,
            "seed": self._seed,
            "first_epoch": self._first_epoch,
            "mixture": self._mixture.state(),
            "epochs": {part: epochs.state() for part, epochs in self._epochs.items()},
        }

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Whether `state` speaks of these prompts in this mixture. An endless task has no history to mistake."""
        return self._endless or (state.get("prompts"), state.get("weights")) == (self._digest, self._weights)

    def continues(self, state: Mapping[str, Any]) -> bool:
        """Whether `state` `fits` and goes through its first epoch in this order: a row's difficulty can have changed
        where its prompt has not."""
        return self._endless or (self.fits(state) and self._begins_alike(state))

    def _begins_alike(self, state: Mapping[str, Any]) -> bool:
        return bool(state["first_epoch"] == self._first_epoch)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Back to `state`, which `continues`, or `fits` and is forked."""
        if self._endless:
            return
        self._mixture.load_state(state["mixture"])
        for part, epochs in self._epochs.items():
            epochs.load_state(state["epochs"][part])

    def fork(self, state: Mapping[str, Any], ordinal: int) -> None:
        """Go on at `ordinal` from another run's `state`, which `fits`. Without No-Positive-Resampling all that it has
        left out comes again."""
        if self._endless:
            return
        self.load_state(state)
        if self._threshold is None:
            self._mixture.take_all(ordinal)
        came = self._mixture.came_before(ordinal)
        for part in self._mixture.names:
            epochs, position = self._epochs[part], came[part]
            first_differs = epochs.epoch_of(position) == 0 and not self._begins_alike(state)
            if epochs.take_all() or state["seed"] != self._seed or first_differs:
                epochs.begin_epoch_at(position)

    def metrics(self) -> dict[str, float]:
        """Epoch (of the task that is furthest behind), active and left-out prompts; nothing for an endless task. A task
        that is dropped is behind no more, and all its prompts are left out."""
        if self._endless:
            return {}
        parts = [self._epochs[part] for part in self._mixture.names]
        active = sum(epochs.active for epochs in parts)
        return {
            "prompts/epoch": float(min(epochs.epoch for epochs in parts)),
            "prompts/active": float(active),
            "prompts/left_out": float(len(self._part_of) - active),
        }


def build_order(recipe: Recipe, task: Task) -> PromptOrder:
    """The order that a recipe names, over its task's training prompts; ConfigurationError when they do not fit."""
    weights = recipe.task.mixture if isinstance(recipe.task, Dataset) else {}
    easy_first = recipe.curriculum == "easy-first"
    prompts = (
        [task.training_prompt(index) for index in range(task.training_count or 1)] if weights or easy_first else []
    )
    return PromptOrder(
        task.training_count,
        recipe.seed,
        threshold=recipe.algorithm.no_positive_resampling,
        floor=recipe.algorithm.min_active_prompts,
        names=[prompt.task for prompt in prompts],
        weights=weights,
        difficulties=[prompt.difficulty for prompt in prompts] if easy_first else (),
        digest=task.training_digest,
    )


def _refuse_endless(
    threshold: float | None, weights: Mapping[str, float] | None, difficulties: Sequence[float]
) -> None:
    settings = {
        "algorithm.no_positive_resampling": threshold is not None,
        "task.mixture": bool(weights),
        "curriculum easy-first": bool(len(difficulties)),
    }
    for setting, given in settings.items():
        if given:
            raise ConfigurationError(
                f"{setting} needs prompts that can come again, and this task draws new ones for ever; "
                "give task.pool a number, or turn it off"
            )


def _parts(count: int, names: Sequence[str], weights: Mapping[str, float]) -> dict[str, list[int]]:
    """Indices of each part of the mixture that has a weight; one part named "" without a mixture."""
    if not weights:
        return {"": list(range(count))}
    found = set(names)
    for name in sorted(found ^ set(weights)):
        lacking = "no training prompt has that task" if name in weights else "the data have that task too"
        raise ConfigurationError(
            f"task.mixture and the data disagree about {name!r}: {lacking}; the data have {', '.join(sorted(found))} "
            "(a weight of 0 leaves a task out)"
        )
    if not any(weight > 0 for weight in weights.values()):
        raise ConfigurationError("task.mixture leaves every task out; give one a weight above 0")
    parts: dict[str, list[int]] = {name: [] for name, weight in weights.items() if weight > 0}
    for index, name in enumerate(names):
        if name in parts:
            parts[name].append(index)
    return parts


def _easy_first(indices: Sequence[int], seed: tuple[int, ...], difficulties: Sequence[float]) -> list[int] | None:
    if not len(difficulties):
        return None
    shuffled = np.random.default_rng((Stream.DIFFICULTY_TIES, *seed)).permutation(indices)
    return sorted((int(index) for index in shuffled), key=lambda index: difficulties[index])
