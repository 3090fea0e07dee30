"""How a run is judged, kept and paid for: `evaluation`, `checkpoint`, `budget`, `resources`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, ComputeUnit

from .base import Conflict, Section, Steps

SECONDS_PER_UNIT: dict[str, float] = {
    "GPU-hours": 3600.0,
    "CPU-hours": 3600.0,
    "GPU-seconds": 1.0,
    "CPU-seconds": 1.0,
}
"""Device-seconds in one unit of compute. `steps` has none: it counts optimiser steps."""


MOST_STEPS = 100_000
"""Optimiser steps of a run that says no other number."""


class Evaluation(Section):
    """The held-out pass rate that the curve is fitted to: a fixed set of prompts, never trained on (§2.1)."""

    every_steps: Steps = Field(
        10, ge=1, description="Cadence in optimiser steps; step 0 is always evaluated. 100 in the paper (§2.1)."
    )
    prompts: int = Field(256, ge=16, le=65536, description="Held-out prompts; 1,000 in the paper (§2.1).")
    samples: int = Field(
        4,
        ge=1,
        le=64,
        description="Generations per prompt, 16 in the paper (§2.1); 2 or more give a noise estimate per evaluation.",
    )


class CheckpointPolicy(Section):
    """When the run's state is written, and what is kept. Not of the paper."""

    every_steps: Steps = Field(50, ge=1, description="Cadence in optimiser steps; the last step is always written.")
    keep_last: int = Field(2, ge=1, description="How many of the newest are kept.")
    keep_every: Steps | None = Field(
        None, ge=1, description="Checkpoints of steps that are multiples of this are kept for good; null: none."
    )


class Budget(Section):
    """What the run may spend. It ends at whichever limit comes first."""

    compute: float = Field(
        60.0,
        ge=LEAST_COMPUTE,
        le=MOST_COMPUTE,
        description="Compute budget, in `unit`. The paper counts GB200 GPU-hours (§2).",
    )
    unit: ComputeUnit = Field("CPU-seconds", description="Unit of every compute figure of the run.")
    max_steps: Steps = Field(MOST_STEPS, ge=1, description="Optimiser steps after which the run ends in any case.")

    @property
    def last_step(self) -> int:
        """The step at which the run ends if compute does not end it first."""
        return min(self.max_steps, math.ceil(self.compute)) if self.unit == "steps" else self.max_steps


class Resources(Section):
    """What one run reserves on the cluster, all at once. The paper's runs: 64 generator and 16 trainer GPUs (A.3)."""

    cpus: float = Field(1.0, gt=0, description="CPU cores of the run, in equal parts for its actors.")
    gpus: float = Field(
        0.0,
        ge=0,
        description="GPUs of the run, in equal parts for its actors: whole ones each, or a half, a third and so on.",
    )
    generators: int = Field(1, ge=1, le=64, description="Generator actors.")
    learners: int = Field(1, ge=1, le=1024, description="Ranks of the learner (FSDP2).")
    weight_transfer: Literal["store", "collective"] = Field(
        "store",
        description="How generators get weights: store: pulled by version from the object store, so that they may "
        "come and go. collective: broadcast by the learner (NCCL between GPUs, gloo between CPUs and for vLLM); the "
        "store serves newcomers and whatever fails.",
    )
    stall_seconds: float = Field(
        900.0,
        ge=1,
        description="A generator that for so long makes no token, verdict or weight swap is killed and replaced; a "
        "learner that for so long does not answer ends the attempt. The longest that the trainer's own limits let "
        "one of these take is 600 s. Not of the paper.",
    )

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        actors = self.generators + self.learners
        if self.gpus <= 1 or (self.gpus / actors).is_integer() or _is_whole(actors / self.gpus):
            return
        # Ray gives whole GPUs beyond one, and no part of a GPU that lies on two.
        each, parts = self.gpus / actors, actors / self.gpus
        whole = (actors * math.floor(each), actors * math.ceil(each))
        less, more = whole if each > 1 else (actors / math.ceil(parts), actors / math.floor(parts))
        message = (
            f"each of the {actors} actors would have {each:.3g}, neither whole GPUs nor a half, a third "
            f"and so on; take {less:g} or {more:g}, or another number of generators or learners"
        )
        yield Conflict("gpus", self.gpus, message)


def _is_whole(amount: float) -> bool:
    """As far as a fraction that was written in decimals can be."""
    return math.isclose(amount, round(amount), abs_tol=1e-4) and amount > 0.5
