"""The learner: from groups to the next version of the weights."""

from .learner import Learner
from .ranks import Ranks, join, leave

__all__ = ["Learner", "Ranks", "join", "leave"]
