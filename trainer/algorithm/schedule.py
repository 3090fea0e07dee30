"""The learning rate: linear warm-up, then constant, linear or cosine decay, with milestones."""

from __future__ import annotations

import math

from forecurve.recipes.schema import Optimizer


def learning_rate(optimizer: Optimizer, step: int, last_step: int) -> float:
    """Learning rate of optimiser step `step`, counted from 1.

    Rises linearly over `warmup_steps`. After that `constant` stays (A.3), `linear` and `cosine` fall to nothing
    at `last_step` (the recipe's `budget.max_steps`). From a milestone's step on, its factor multiplies all of that
    (factors do not multiply up).
    """
    warm = min(1.0, step / optimizer.warmup_steps) if optimizer.warmup_steps else 1.0
    factor = 1.0
    for milestone in optimizer.milestones:
        if step >= milestone.step:
            factor = milestone.factor
    return optimizer.learning_rate * warm * factor * _decay(optimizer, step, last_step)


def _decay(optimizer: Optimizer, step: int, last_step: int) -> float:
    """1 up to the end of the warm-up, then as the schedule says; the last step still moves."""
    if optimizer.schedule == "constant" or step <= optimizer.warmup_steps:
        return 1.0
    falling_steps = max(1, last_step - optimizer.warmup_steps)
    done = min(1.0, (step - optimizer.warmup_steps - 1) / falling_steps)
    return 1.0 - done if optimizer.schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
