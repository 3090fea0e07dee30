"""How a batch of rewards becomes a gradient: `algorithm` and `rewards`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from .base import Conflict, Section

WIDEST_SEQUENCE_CLIP = 0.1
"""A sequence's ratio is a geometric mean over tokens and hardly leaves 1: a wider clip would never act."""

LARGEST_REWARD = 1e6
"""Far beyond it the spread of a batch is no number any more, or a length penalty vanishes beside the reward."""


class Algorithm(Section):
    """Loss, advantages, filters and the off-policy scheme (§3, §4)."""

    loss: Literal["cispo", "gspo", "dapo", "grpo"] = Field(
        "cispo",
        description="cispo: truncated importance-sampling REINFORCE, gradient through log-prob only (§3.2, §4). "
        "gspo: one ratio a sequence, clipped (§3.2). dapo: the asymmetric PPO clip of DAPO (§3.2, A.16). "
        "grpo: the symmetric PPO clip of GRPO (§2, A.16).",
    )
    is_weight_cap: float = Field(
        4.0,
        gt=0,
        description="CISPO's epsilon_max, absolute: the weight is min(ratio, cap), with no lower bound. §3.2 finds "
        "4, 5 and 8 alike; which one the ScaleRL runs use is not stated.",
    )
    clip_low: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="dapo, gspo: ratio >= 1 - clip_low; grpo: on both sides. 0.2 in the paper's GRPO and DAPO (A.16). "
        "GSPO's ratio is a sequence's and hardly leaves 1: of the order of 1e-3 (§3.2).",
    )
    clip_high: float = Field(
        0.26,
        gt=0,
        description="dapo, gspo: ratio <= 1 + clip_high. DAPO 0.26 (A.16); GSPO 4e-3 or 5e-3, and 1e-4 is bad (§3.2).",
    )
    aggregation: Literal["prompt", "sample", "token"] = Field(
        "prompt",
        description="How token losses are averaged: over a prompt's tokens, then over prompts (ScaleRL, §4), over "
        "each sample's (GRPO), or over all tokens of the batch (§3.2).",
    )
    advantage_scale: Literal["batch", "prompt", "none"] = Field(
        "batch",
        description="Centred advantages are divided by their std over the batch (ScaleRL, §4), over the prompt (GRPO) "
        "or not at all (Dr. GRPO); §3.2 finds them about equal. Whether the batch's std counts dropped prompts is not "
        "stated; here it is that of the kept ones.",
    )
    zero_variance_filter: Literal["shrink", "refill", "off"] = Field(
        "shrink",
        description="Prompts whose rewards are all equal: shrink drops them from the batch (ScaleRL, §3.2), refill "
        "samples others in their place (DAPO's dynamic sampling), off keeps them.",
    )
    logits_precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="Precision of the language-model head in the generator and the learner alike (§3.2, A.19)."
    )
    off_policy: Literal["pipeline", "ppo", "on-policy"] = Field(
        "pipeline",
        description="pipeline: PipelineRL-k, weights swapped in flight, caches kept (§3.1). ppo: PPO-off-policy-k, "
        "rounds of k batches by one version (§3.1). on-policy: rounds of one.",
    )
    max_staleness: int = Field(
        8,
        ge=0,
        le=64,
        description="k: the learner is at most k weight versions ahead of the oldest token it trains on (§3.1, "
        "8 kept, 4 alike). 0 with on-policy and only there.",
    )
    queue_batches: int = Field(
        2,
        ge=1,
        le=64,
        description="pipeline: how many batches beyond the one being learned from may be generated ahead. 2 keeps "
        "generators busy and tokens fresh; max_staleness bounds the age of tokens in any case. Not of the paper.",
    )
    kl_coefficient: float = Field(
        0.0, ge=0, le=10, description="Weight of the KL to the starting weights (k3 estimator); 0 is off, as in §4."
    )
    no_positive_resampling: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Prompts whose pass rate over their whole history reaches this are left out of later epochs "
        "(§3.2: 0.9). Needs a pool or a dataset; null is off.",
    )
    min_active_prompts: int = Field(
        32,
        ge=0,
        description="no_positive_resampling never leaves fewer prompts than this (in a mixture, of each task); with 0 "
        "the run ends by name when none is left. Not of the paper.",
    )

    @field_validator("zero_variance_filter", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: object) -> object:
        """YAML 1.1 reads a bare `off` as false."""
        return "off" if value is False else value

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.off_policy == "on-policy" and self.max_staleness:
            message = "on-policy allows no staleness; set it to 0, or take pipeline or ppo"
            yield Conflict("max_staleness", self.max_staleness, message)
        if self.off_policy != "on-policy" and not self.max_staleness:
            message = f"{self.off_policy} needs some staleness; set 1 or more, or algorithm.off_policy: on-policy"
            yield Conflict("max_staleness", self.max_staleness, message)
        if self.loss == "gspo":
            yield from self._gspo_conflicts()

    def _gspo_conflicts(self) -> Iterator[Conflict]:
        if self.aggregation == "token":
            message = "gspo has one ratio a sequence, and no token weighs by itself; take sample or prompt"
            yield Conflict("aggregation", self.aggregation, message)
        for name in ("clip_low", "clip_high"):
            value = getattr(self, name)
            if value > WIDEST_SEQUENCE_CLIP:
                message = (
                    f"gspo clips the ratio of whole sequences, and wider than {WIDEST_SEQUENCE_CLIP} would never act; "
                    "§3.2 uses 4e-3"
                )
                yield Conflict(name, value, message)


class Rewards(Section):
    """What an answer earns before any length penalty. Pass rates count right answers, whatever these are."""

    correct: float = Field(
        1.0, ge=-LARGEST_REWARD, le=LARGEST_REWARD, description="Reward of a right answer: +1 in the paper (§2)."
    )
    wrong: float = Field(
        -1.0,
        ge=-LARGEST_REWARD,
        le=LARGEST_REWARD,
        description="Reward of a wrong or unfinished answer: -1 in the paper (§2).",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        if self.correct <= self.wrong:
            yield Conflict("correct", self.correct, f"must be more than rewards.wrong, {self.wrong:g}")
