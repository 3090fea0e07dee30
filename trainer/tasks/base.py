"""What a task must offer: prompts by ordinal, a held-out set, and a reward that checks an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trainer.types import Prompt


class Task(Protocol):
    """Prompts and their verifier. Everything is a pure function of its arguments: nothing to checkpoint."""

    vocabulary_size: int
    prompt_length: int
    """Tokens of every prompt (all equal: prompts are padded on the inside)."""
    end_token: int

    def training_prompt(self, seed: int, ordinal: int) -> Prompt:
        """The prompt at place `ordinal` of the order named by `seed`; never one of the held-out share."""

    def held_out_prompts(self, count: int) -> list[Prompt]:
        """The first `count` prompts of the fixed held-out set, the same for every seed and recipe."""

    def rewards(self, prompt: Prompt, tokens: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.float64]:
        """Reward of each response: `tokens` [G, T] cut at `lengths` [G] -> [G]."""
