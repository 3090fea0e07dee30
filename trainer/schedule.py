"""The learning rate: linear warm-up, then constant, with milestones."""

from __future__ import annotations

from forecurve.recipes.schema import Optimizer


def learning_rate(optimizer: Optimizer, step: int) -> float:
    """Learning rate of optimiser step `step`, counted from 1.

    Rises linearly over `warmup_steps`, then stays; from a milestone's step on it is that milestone's factor times
    the base rate (factors do not multiply up).
    """
    warm = min(1.0, step / optimizer.warmup_steps) if optimizer.warmup_steps else 1.0
    factor = 1.0
    for milestone in optimizer.milestones:
        if step >= milestone.step:
            factor = milestone.factor
    return optimizer.learning_rate * warm * factor
