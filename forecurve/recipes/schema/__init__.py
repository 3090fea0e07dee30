"""The schema of a recipe: everything a trainer needs to know, and nothing that only a cluster knows.

Unknown keys fail, values are frozen after validation, and the digest of the resolved recipe names it. Section,
equation and figure numbers in the descriptions are those of the ScaleRL paper (arXiv 2510.13786).
"""

from .algorithm import Algorithm, Rewards
from .base import CONFLICT, Conflict, NoNumber, Section
from .models import HuggingFaceModel, Model, TinyModel
from .names import Name
from .optimizer import LearningRateMilestone, Optimizer
from .recipe import Recipe
from .running import (
    SECONDS_PER_UNIT,
    Budget,
    CheckpointPolicy,
    Evaluation,
    Resources,
)
from .sampling import Batch, Generation, Interruption, LengthControl, LengthPenalty, NoLengthControl
from .tasks import VERIFIERS, Dataset, Task, Torus

__all__ = [
    "CONFLICT",
    "SECONDS_PER_UNIT",
    "VERIFIERS",
    "Algorithm",
    "Batch",
    "Budget",
    "CheckpointPolicy",
    "Conflict",
    "Dataset",
    "Evaluation",
    "Generation",
    "HuggingFaceModel",
    "Interruption",
    "LearningRateMilestone",
    "LengthControl",
    "LengthPenalty",
    "Model",
    "Name",
    "NoLengthControl",
    "NoNumber",
    "Optimizer",
    "Recipe",
    "Resources",
    "Rewards",
    "Section",
    "Task",
    "TinyModel",
    "Torus",
]
