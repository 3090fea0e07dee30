"""What a fit sets apart at the beginning of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cutoff:
    """An early regime that the sigmoid does not describe.

    Attributes:
        compute: of the first evaluation after it.
        evaluations: that belong to it.
        probability: that there is one.
    """

    compute: float
    evaluations: int
    probability: float
