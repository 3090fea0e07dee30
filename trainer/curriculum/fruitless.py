"""What taught a run nothing, and when it is enough: steps that are skipped or empty, prompts without variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forecurve.recipes import Recipe
from trainer.algorithm.advantages import has_variance
from trainer.errors import NotFinite, NothingToLearn
from trainer.types import Group, StepResult

MAX_NOT_FINITE = 5
"""Steps in a row whose loss or gradient is not finite, after which the run fails."""

BARREN_BATCHES = 50
"""Batches' worth of groups in a row without variance in their rewards, after which there is nothing left to learn."""


class Fruitless:
    """Counts of one run, over all of its attempts."""

    def __init__(self, recipe: Recipe):
        self._batch = recipe.batch
        self._counters = dict.fromkeys(("skipped", "empty", "not_finite_in_a_row", "barren", "barren_passed"), 0)

    def state(self) -> dict[str, int]:
        """What a checkpoint keeps."""
        return dict(self._counters)

    def load_state(self, state: Mapping[str, int]) -> None:
        """Go on from a checkpoint's."""
        self._counters = {name: state[name] for name in self._counters}

    def count_step(self, result: StepResult) -> None:
        """Raises NotFinite where it is one too many."""
        self._counters["skipped"] += result.not_finite
        self._counters["empty"] += not result.applied and not result.not_finite
        self._counters["not_finite_in_a_row"] = self._counters["not_finite_in_a_row"] + 1 if result.not_finite else 0
        if self._counters["not_finite_in_a_row"] >= MAX_NOT_FINITE:
            raise NotFinite(
                f"loss or gradient was not finite in {MAX_NOT_FINITE} steps in a row, the last being step "
                f"{result.version}; the weights are those before them. Lower the learning rate or resume from a "
                "checkpoint"
            )

    def count_groups(self, groups: Sequence[Group]) -> None:
        """Groups in a row without variance."""
        for group in groups:
            barren = not has_variance(group.rewards[None])[0]
            self._counters["barren"] = self._counters["barren"] + 1 if barren else 0
            self._counters["barren_passed"] = self._counters["barren_passed"] + int(group.passed.sum()) if barren else 0

    def verdict(self) -> str | None:
        """Why nothing is left to learn; None while something is. Raises NothingToLearn when no answer was right."""
        count, passed = self._counters["barren"], self._counters["barren_passed"]
        if count < BARREN_BATCHES * self._batch.prompts_per_step:
            return None
        if not passed:
            raise NothingToLearn(
                f"not one answer was right in the last {count} prompts ({BARREN_BATCHES} batches); take easier "
                "prompts, a better base model, or more generations a prompt"
            )
        return (
            f"nothing left to learn: in the last {count} prompts ({BARREN_BATCHES} batches) all answers to a prompt "
            f"earned the same; {passed / (count * self._batch.generations_per_prompt):.0%} of them were right"
        )

    def metrics(self) -> dict[str, float]:
        """Steps so far."""
        return {
            "train/skipped_steps": float(self._counters["skipped"]),
            "train/empty_steps": float(self._counters["empty"]),
        }
