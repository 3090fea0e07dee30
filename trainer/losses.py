"""Policy losses, as pure functions of token log-probs.

Shapes: every argument is [N, T] (N responses, T tokens) or broadcasts to it. `weights` already holds the whole
averaging (see `token_weights`), taken over the full optimiser batch, so a loss is a plain weighted sum: it does not
change when the batch is cut into micro-batches or padded differently, and padding has weight 0.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LARGEST_LOG_RATIO = 20.0
"""Log-ratios are clamped to this before exp, so that one absurd token cannot become inf."""


def importance_ratio(logprobs: Tensor, generator_logprobs: Tensor) -> Tensor:
    """rho = pi_train / pi_gen of each sampled token: the only ratio there is (section 3.2)."""
    return (logprobs - generator_logprobs).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp()


def cispo_loss(
    logprobs: Tensor, generator_logprobs: Tensor, advantages: Tensor, weights: Tensor, is_weight_cap: float
) -> Tensor:
    """- sum w * sg(min(rho, cap)) * A * log pi: REINFORCE with a truncated importance weight (section 4).

    The gradient flows through log pi only, and no token is ever clipped away.
    """
    ratio = importance_ratio(logprobs, generator_logprobs).detach().clamp(max=is_weight_cap)
    return -(weights * ratio * advantages * logprobs).sum()


def dapo_loss(
    logprobs: Tensor,
    generator_logprobs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    clip_low: float,
    clip_high: float,
) -> Tensor:
    """- sum w * min(rho * A, clip(rho, 1 - low, 1 + high) * A): PPO's surrogate with DAPO's asymmetric clip (A.16).

    The gradient flows through rho; a clipped token has none.
    """
    ratio = importance_ratio(logprobs, generator_logprobs)
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    return -(weights * torch.minimum(ratio * advantages, clipped * advantages)).sum()


def token_weights(lengths_PG: NDArray[np.int64], aggregation: str) -> NDArray[np.float64]:
    """Weight of every token of a response, [P, G]; over all tokens of the batch the weights sum to 1.

    `prompt`: 1 / (P * tokens of the prompt's G responses) (ScaleRL). `sample`: 1 / (P * G * tokens of the response)
    (GRPO). `token`: 1 / (tokens of the batch) (DAPO).
    """
    lengths = lengths_PG.astype(np.float64)
    if aggregation == "prompt":
        return np.broadcast_to(1.0 / (len(lengths) * lengths.sum(axis=1, keepdims=True)), lengths.shape)
    if aggregation == "sample":
        return 1.0 / (lengths.size * lengths)
    if aggregation == "token":
        return np.full(lengths.shape, 1.0 / lengths.sum())
    raise ValueError(f"aggregation is {aggregation!r}; it is one of prompt, sample, token")
