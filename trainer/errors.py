"""Errors of the trainer. Each says what happened, to which value, and the way out."""

from __future__ import annotations


class StopAsked(Exception):
    """Somebody wants the run to stop before it has begun; its text is their reason."""


class TrainerError(Exception):
    """A run that cannot go on; its text is the reason that the run reports."""


class ConfigurationError(TrainerError):
    """The recipe is valid as data, but this trainer on this machine cannot run it. Exit code 2."""


class NotFinite(TrainerError):
    """A loss, a gradient or a log-probability stopped being a number."""


class NothingToLearn(TrainerError):
    """No answer was right in many batches: there is no gradient, and none will come."""


class OutOfMemory(TrainerError):
    """The learner's batch does not fit into memory."""


class WorkerLost(TrainerError):
    """The learner died or no longer answers, or generators are lost faster than they may be replaced. A new attempt
    resumes from the newest checkpoint."""


class HopelessWork(WorkerLost):
    """The same piece of work ended one worker after the other: it would end those of another attempt too."""


class CheckpointError(TrainerError):
    """A checkpoint could not be written, or does not belong to this recipe."""
