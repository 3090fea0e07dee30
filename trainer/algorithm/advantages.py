"""From rewards to advantages, and which prompts are worth training on. Pure numpy, by prompt: P rows of G rewards."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SMALLEST_STD = 1e-8
"""Below this, rewards count as equal and are not divided by their spread."""


def group_centre(rewards_PG: NDArray[np.float64]) -> NDArray[np.float64]:
    """A_i = r_i - mean of the group (section 4)."""
    means: NDArray[np.float64] = rewards_PG.mean(axis=1, keepdims=True)
    return rewards_PG - means


def has_variance(rewards_PG: NDArray[np.float64]) -> NDArray[np.bool_]:
    """[P]: True where not all G rewards are equal, so that the prompt has something to teach."""
    spread: NDArray[np.float64] = np.ptp(rewards_PG, axis=1)
    return spread > SMALLEST_STD


def scaled(centred_PG: NDArray[np.float64], scale: str) -> NDArray[np.float64]:
    """Divide centred advantages by their standard deviation (population).

    `batch`: over all completions given, which are those kept by the filter (ScaleRL). `prompt`: over each prompt's
    own (GRPO). `none`: not at all. Where the spread is nothing the advantages are nothing, and stay as they are.
    """
    if scale == "none":
        return centred_PG
    std = centred_PG.std() if scale == "batch" else centred_PG.std(axis=1, keepdims=True)
    return centred_PG / np.where(std < SMALLEST_STD, 1.0, std)
