"""From what the verifier said to what is trained on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from forecurve.recipes.schema import LengthPenalty
from trainer.types import Responses


def rewards(recipe: Recipe, passed: NDArray[np.bool_], responses: Responses) -> NDArray[np.float64]:
    """Reward [G] of each response: the recipe's for right or wrong, and the length penalty on right ones."""
    given = np.where(passed, recipe.rewards.correct, recipe.rewards.wrong)
    if isinstance(recipe.length_control, LengthPenalty):
        given = given + np.where(passed, length_penalty(responses.lengths, recipe.length_control), 0.0)
    return given


def length_penalty(lengths: NDArray[np.int64], control: LengthPenalty) -> NDArray[np.float64]:
    """clip((L_max - length) / L_cache - 1, -1, 0): nothing up to L_max - L_cache tokens, -1 from L_max on (A.10)."""
    penalty: NDArray[np.float64] = np.clip((control.longest - lengths) / control.cushion - 1.0, -1.0, 0.0)
    return penalty
