"""What a task must offer: training prompts by index, held-out prompts, and a verifier of responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trainer.types import Prompt


class Task(Protocol):
    """Prompts and their verifier. Which prompt comes when is the curriculum's affair; there is nothing here to
    checkpoint."""

    vocabulary_size: int
    end_tokens: tuple[int, ...]
    """A response ends with the first of these."""
    training_count: int | None
    """Distinct training prompts; None when every index is a new one."""

    longest_prompt: int
    """Tokens of the longest prompt of all sets."""
    training_digest: str
    """Names the set of training prompts: another set, or another order of them, has another."""

    def training_prompt(self, index: int) -> Prompt:
        """The training prompt `index`, below `training_count`; never one of the held-out share."""

    def held_out_prompts(self, count: int) -> list[Prompt]:
        """The first `count` prompts of the fixed held-out set, the same for every seed; fewer where there are fewer."""

    def downstream_prompts(self) -> dict[str, list[Prompt]]:
        """Further held-out sets by name, evaluated apart; never trained on."""

    def start(self) -> None:
        """Start the verifiers now instead of at the first response; ConfigurationError when one cannot work."""

    def passed(self, prompt: Prompt, tokens: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.bool_]:
        """Which responses are right: `tokens` [G, T] cut at `lengths` [G] -> [G]. Never raises for what they say."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text that is put into a response, without any that begin or end one."""

    def texts(self, tokens: NDArray[np.int64], lengths: Sequence[int]) -> list[str]:
        """Readable text of each row of `tokens` [N, T], cut at `lengths` [N]."""

    def metrics(self) -> dict[str, float]:
        """Counts since the start, `verifier/...`: what went wrong in verifiers."""

    def cpu_seconds(self) -> float:
        """CPU time that verifiers took so far in processes of their own, in seconds: part of what answers cost."""

    def close(self) -> None:
        """End helpers that the verifiers started."""
