"""The Recipe: a full RL training configuration, as data.

Everything a trainer needs to know is in here, and nothing that only a cluster knows (addresses, tokens,
paths). Unknown keys fail, values are frozen after validation, and the digest of the resolved recipe names it.

Section and equation numbers are those of the ScaleRL paper (arXiv 2510.13786).
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

ComputeUnit = Literal["GPU-hours", "CPU-hours", "GPU-seconds", "CPU-seconds", "steps"]

SECONDS_PER_UNIT: dict[str, float] = {
    "GPU-hours": 3600.0,
    "CPU-hours": 3600.0,
    "GPU-seconds": 1.0,
    "CPU-seconds": 1.0,
}
"""Device-seconds in one unit of compute. `steps` has none: it counts optimiser steps."""


class Section(BaseModel):
    """Base of every part of a recipe: unknown keys fail, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Task(Section):
    """What the model is asked to do: walk on a torus, state the last cell (the testbed).

    The generation budget sets an exact ceiling on this task: a chain of k moves needs 2k + 6 tokens with
    `echo_start` (2k + 4 without), and k is uniform in [min_moves, max_moves].
    """

    kind: Literal["torus"] = "torus"
    min_moves: int = Field(3, ge=1, le=12, description="Fewest moves in a prompt.")
    max_moves: int = Field(12, ge=1, le=12, description="Most moves in a prompt.")
    echo_start: bool = Field(
        True, description="The response begins with the start cell; without it the curve has two phases."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_moves > self.max_moves:
            raise ValueError(f"min_moves is {self.min_moves} but max_moves is {self.max_moves}; it must not be larger")
        return self


class Model(Section):
    """The policy: a small decoder, started from a warmed-up base checkpoint."""

    kind: Literal["tiny"] = "tiny"
    width: int = Field(64, ge=16, le=512, description="Residual width; a multiple of `heads`.")
    layers: int = Field(2, ge=1, le=12)
    heads: int = Field(4, ge=1, le=16)
    base: Literal["warm-start"] = Field(
        "warm-start", description="Weights the run starts from: the supervised warm start."
    )

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self


class Algorithm(Section):
    """How a batch of rewards becomes a gradient (§4)."""

    loss: Literal["cispo", "dapo"] = Field(
        "cispo",
        description="cispo: truncated importance-sampling REINFORCE, gradient through log-prob only (§3.2). "
        "dapo: the asymmetric PPO clip of DAPO.",
    )
    is_weight_cap: float = Field(
        4.0, gt=0, description="CISPO's epsilon_max, absolute: the weight is min(ratio, cap). §3.2 finds 4, 5, 8 alike."
    )
    clip_low: float = Field(0.2, gt=0, lt=1, description="DAPO: lower clip, ratio >= 1 - clip_low.")
    clip_high: float = Field(0.26, gt=0, description="DAPO: upper clip, ratio <= 1 + clip_high (A.16).")
    aggregation: Literal["prompt", "sample", "token"] = Field(
        "prompt",
        description="How token losses are averaged: per prompt (ScaleRL), per sample (GRPO) or over all tokens (§3.2).",
    )
    advantage_scale: Literal["batch", "prompt", "none"] = Field(
        "batch",
        description="Centred advantages are divided by their std over the batch (ScaleRL), "
        "the prompt (GRPO) or not at all (§3.2).",
    )
    zero_variance_filter: Literal["shrink", "off"] = Field(
        "shrink", description="Prompts whose rewards are all equal are dropped from the batch, not replaced (§3.2)."
    )
    logits_precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="Precision of the language-model head in the generator and the learner alike (§3.2, A.19)."
    )
    max_staleness: int = Field(
        8,
        ge=0,
        le=64,
        description="k of PipelineRL-k: the learner is at most k weight versions ahead of "
        "the oldest token it trains on (§3.1).",
    )
    queue_batches: int = Field(
        2,
        ge=1,
        le=64,
        description="How many batches beyond the one being learned from may be generated ahead. 2 keeps generators "
        "busy and tokens fresh; max_staleness bounds the age of tokens in any case.",
    )

    @field_validator("zero_variance_filter", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: object) -> object:
        """YAML 1.1 reads a bare `off` as false."""
        return "off" if value is False else value


class Batch(Section):
    """How much is sampled for one optimiser step."""

    prompts_per_step: int = Field(32, ge=1, le=4096)
    generations_per_prompt: int = Field(
        16, ge=2, le=256, description="G of the paper; two at least, or no advantage exists."
    )


class Generation(Section):
    """How responses are sampled. Ratios need the full distribution, so there is no top-p or top-k here."""

    max_tokens: int = Field(
        24, ge=4, le=64, description="Response budget in tokens; longer responses are cut and earn nothing."
    )
    temperature: float = Field(1.0, gt=0, le=4)


class LearningRateMilestone(Section):
    """From optimiser step `step` on, the learning rate is `factor` times `optimizer.learning_rate`."""

    step: int = Field(ge=1)
    factor: float = Field(gt=0, le=1e4)


class Optimizer(Section):
    """AdamW with linear warm-up and a piecewise-constant schedule (A.3: constant after warm-up)."""

    learning_rate: float = Field(3e-4, gt=0, le=1)
    warmup_steps: int = Field(20, ge=0)
    milestones: tuple[LearningRateMilestone, ...] = Field(
        (), description="Changes of the learning rate, by rising step."
    )
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.95, ge=0, lt=1)
    epsilon: float = Field(1e-15, gt=0, description="A.3 uses 1e-15.")
    weight_decay: float = Field(0.01, ge=0, lt=1)
    max_grad_norm: float = Field(1.0, gt=0)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        steps = [m.step for m in self.milestones]
        if steps != sorted(set(steps)):
            raise ValueError(f"milestones must have strictly rising steps, got {steps}")
        return self


class Evaluation(Section):
    """The held-out pass rate that the curve is fitted to: a fixed set of prompts, never trained on."""

    every_steps: int = Field(10, ge=1, description="Cadence in optimiser steps; step 0 is always evaluated.")
    prompts: int = Field(256, ge=16, le=65536)
    samples: int = Field(
        4, ge=1, le=64, description="Generations per prompt; 2 or more give a noise estimate per evaluation."
    )


class CheckpointPolicy(Section):
    every_steps: int = Field(50, ge=1)
    keep_last: int = Field(2, ge=1)


class Budget(Section):
    """What the run may spend. It ends at whichever limit comes first."""

    compute: float = Field(60.0, gt=0, description="Compute budget, in `unit`.")
    unit: ComputeUnit = Field("CPU-seconds", description="Unit of every compute figure of the run.")
    max_steps: int = Field(100_000, ge=1)


class Resources(Section):
    """What one run reserves on the cluster."""

    cpus: float = Field(1.0, gt=0)
    gpus: float = Field(0.0, ge=0)
    generators: int = Field(1, ge=1, le=64, description="Generator actors.")


class Recipe(Section):
    """A full training configuration. Two recipes with equal `digest` train the same way."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = "scalerl-testbed"
    task: Task = Task()
    model: Model = Model()
    algorithm: Algorithm = Algorithm()
    batch: Batch = Batch()
    generation: Generation = Generation()
    optimizer: Optimizer = Optimizer()
    evaluation: Evaluation = Evaluation()
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    budget: Budget = Budget()
    resources: Resources = Resources()
    seed: int = Field(0, ge=0, le=2**31 - 1)

    def to_dict(self) -> dict[str, Any]:
        """The resolved recipe: every field, defaults included, as JSON types."""
        return self.model_dump(mode="json")

    @property
    def digest(self) -> str:
        """sha256 of the resolved recipe without its name: 64 hex digits."""
        body = self.to_dict()
        body.pop("name")
        canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
