"""The optimiser: `optimizer`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from .base import Conflict, Section, Steps


class LearningRateMilestone(Section):
    """From optimiser step `step` on, the learning rate is `factor` times `optimizer.learning_rate`."""

    step: Steps = Field(ge=1, description="First optimiser step of the change.")
    factor: float = Field(gt=0, le=1e4, description="Of the scheduled rate from then on.")


class Optimizer(Section):
    """AdamW with linear warm-up and a schedule (A.3: constant after 100 steps of warm-up)."""

    learning_rate: float = Field(3e-4, gt=0, le=1, description="Peak rate; 5e-7 in the paper (A.3).")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="After the warm-up: constant (A.3), or falling to 0 at the last step of the budget."
    )
    warmup_steps: Steps = Field(20, ge=0, description="Linear warm-up from 0; 100 steps in the paper (A.3).")
    milestones: tuple[LearningRateMilestone, ...] = Field(
        (), description="Changes of the learning rate, by rising step; factors do not multiply up. Not of the paper."
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="Not stated in the paper.")
    beta2: float = Field(0.95, ge=0, lt=1, description="Not stated in the paper.")
    epsilon: float = Field(1e-15, gt=0, description="1e-15 in the paper (A.3).")
    weight_decay: float = Field(0.01, ge=0, lt=1, description="0.01 in the paper (A.3).")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are clipped to this norm. Not stated in the paper.")

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        steps = [milestone.step for milestone in self.milestones]
        if steps != sorted(set(steps)):
            yield Conflict("milestones", steps, f"must have strictly rising steps, got {steps}")
