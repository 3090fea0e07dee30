"""The streams of random numbers: every use has a first seed word of its own, so that no two draw the same numbers.

What follows the word (the run's seed, an ordinal, a step) says which draw of that use it is. The words of the held-out
set, the pool and the warm start are part of what they are: another word makes other prompts, other base weights.
"""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class Stream(IntEnum):
    """First words of seeds."""

    TRAINING_NOISE = 1
    """Tokens of training responses: seed, ordinal."""
    TORUS_WALKS = 2
    """Held-out set and pool of the torus."""
    DEMONSTRATIONS = 3
    """Supervised steps of the warm start."""
    WARM_START_SKILL = 4
    """Walks on which a warm start is judged."""
    PROMPT_ORDER = 5
    """Permutation of an epoch: seed, part of the mixture, epoch."""
    DIFFICULTY_TIES = 6
    """Order of equally difficult prompts: seed, part of the mixture."""
    ENDLESS_PROMPTS = 7
    """The prompts of a task without a pool: seed, ordinal."""
    INTERRUPTIONS = 8
    """Places of interruption phrases: the words of the request's noise."""
    EVALUATION_NOISE = 9
    """Tokens of answers to held-out prompts: seed, step, place."""
    DOWNSTREAM_NOISE = 10
    """The same of further sets: seed, step, set, place."""
    SELF_CHECK_NOISE = 11
    """Tokens on which engine and learner are compared: seed, place."""
