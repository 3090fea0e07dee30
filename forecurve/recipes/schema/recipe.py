"""The Recipe: a full RL training configuration, as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .agreement import conflicts_between_sections
from .algorithm import Algorithm, Rewards
from .base import Conflict, Section, Steps
from .models import Model, TinyModel
from .names import Name
from .optimizer import Optimizer
from .running import Budget, CheckpointPolicy, Evaluation, Resources
from .sampling import Batch, Generation, LengthControl, NoLengthControl
from .tasks import Task, Torus


def _kind_or(default: str) -> BeforeValidator:
    """A union's section without a `kind` is of the default one."""
    return BeforeValidator(lambda value: {"kind": default} | value if isinstance(value, dict) else value)


class Recipe(Section):
    """A full training configuration. Two recipes with equal `digest` train the same way."""

    name: Annotated[Name, Field(max_length=120, description="For people; not part of the digest.")] = "scalerl-testbed"
    task: Annotated[Task, Field(discriminator="kind"), _kind_or("torus")] = Torus()
    model: Annotated[Model, Field(discriminator="kind"), _kind_or("tiny")] = TinyModel()
    algorithm: Algorithm = Algorithm()
    rewards: Rewards = Rewards()
    length_control: Annotated[LengthControl, Field(discriminator="kind"), _kind_or("none")] = NoLengthControl()
    curriculum: Literal["none", "easy-first"] = Field(
        "none", description="Order of the first epoch: shuffled, or by the difficulty that the task or row states."
    )
    batch: Batch = Batch()
    generation: Generation = Generation()
    optimizer: Optimizer = Optimizer()
    evaluation: Evaluation = Evaluation()
    checkpoint: CheckpointPolicy = CheckpointPolicy()
    budget: Budget = Budget()
    resources: Resources = Resources()
    log_rollouts_every: Steps = Field(
        0, ge=0, description="Steps between samples of rollouts kept as JSONL for reading; 0: never."
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="Decides every random draw of the run.")

    def conflicts(self) -> Iterator[Conflict]:
        """See `Section`."""
        yield from conflicts_between_sections(self)

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
