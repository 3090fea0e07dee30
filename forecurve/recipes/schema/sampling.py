"""What is sampled and how: `batch`, `generation` and `length_control` (a union by `kind`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from .base import Conflict, Section


class Batch(Section):
    """How much is sampled for one optimiser step."""

    prompts_per_step: int = Field(32, ge=1, le=4096, description="Prompts a step; 48 in the paper (A.3).")
    generations_per_prompt: int = Field(
        16, ge=2, le=256, description="G of §4, 16 in the paper; two at least, or no advantage exists."
    )
    micro_tokens: int | None = Field(
        None,
        ge=1,
        description="Most tokens the learner runs at once; null: it decides. Changes memory and time, never the loss.",
    )


class Generation(Section):
    """How responses are sampled."""

    max_tokens: int = Field(
        24,
        ge=4,
        le=131_072,
        description="Response budget in tokens, any interruption phrase and answer included; longer responses are cut "
        "and count as wrong. The paper has 12,288 for thinking and 2,048 for the answer (A.3).",
    )
    temperature: float = Field(1.0, gt=0, le=4, description="Sampling temperature. Not stated in the paper.")
    top_p: float = Field(
        1.0, gt=0, le=1, description="Must be 1: importance ratios need the full distribution. Not stated in the paper."
    )
    engine: Literal["torch", "vllm"] = Field("torch", description="What generates.")
    self_check_threshold: float = Field(
        0.05,
        gt=0,
        description="Largest mean |log-prob difference| of engine and learner on the same weights, above which the "
        "run stops before its first step. Not of the paper.",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.top_p < 1:
            message = (
                "must be 1: the generator's log-probs would be those of a cut distribution, and every importance "
                "ratio with them; sharpen with generation.temperature instead"
            )
            yield Conflict("top_p", self.top_p, message)


class NoLengthControl(Section):
    """Responses run until they end or the budget does."""

    kind: Literal["none"] = "none"


class Interruption(Section):
    """Forced interruption (§3.2, A.10): at a random length a phrase ends the thinking and the answer must follow.

    The paper interrupts uniformly in [10k, 12k] tokens with "Okay, time is up. Let me stop thinking and formulate a
    final answer now. </think>" and leaves 2,048 tokens for the answer. Tokens of the phrase are not trained on; the
    paper does not say so.
    """

    kind: Literal["interruption"] = "interruption"
    after_low: int = Field(18, ge=1, le=131_072, description="Fewest tokens before the phrase (A.10: 10k).")
    after_high: int = Field(20, ge=1, le=131_072, description="Most tokens before the phrase (A.10: 12k).")
    phrase: str = Field(">", min_length=1, max_length=2000, description="Text that ends the thinking (A.10).")
    answer_tokens: int = Field(
        3,
        ge=1,
        le=131_072,
        description="Most tokens after the phrase (A.3: 2,048); 3 on the torus: a cell, the end.",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.after_low > self.after_high:
            yield Conflict("after_low", self.after_low, f"must not be larger than after_high, {self.after_high}")


class LengthPenalty(Section):
    """Length penalty (A.10): clip((longest - length) / cushion - 1, -1, 0), added to right answers only."""

    kind: Literal["penalty"] = "penalty"
    longest: int = Field(24, ge=2, le=131_072, description="L_max: where the penalty reaches -1 (A.10: 14k).")
    cushion: int = Field(
        4, ge=1, le=131_072, description="L_cache: over how many tokens before L_max it grows (A.10: 2k)."
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.cushion >= self.longest:
            yield Conflict("cushion", self.cushion, f"must be less than longest, {self.longest}")


LengthControl = NoLengthControl | Interruption | LengthPenalty
