"""Policy losses, as pure functions of token log-probs.

Shapes: every argument is [N, T] (N responses, T tokens) or broadcasts to it. `weights` already holds the whole
averaging (see `token_weights`), taken over the full optimiser batch, so a loss is a plain weighted sum: it does not
change when the batch is cut into micro-batches, dealt out to ranks or padded differently. A token that is not trained
on (padding, a forced phrase, a generator log-prob that is not finite) has weight 0; its log-probs must be finite.
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


def sequence_ratio(logprobs: Tensor, generator_logprobs: Tensor, weights: Tensor) -> Tensor:
    """s = exp(mean of log rho over the tokens of the response that have a weight), [N, 1] (GSPO, section 3.2)."""
    counts = (weights > 0).sum(1, keepdim=True).clamp(min=1)
    log_ratio = torch.where(weights > 0, logprobs - generator_logprobs, 0.0)
    return (log_ratio.sum(1, keepdim=True) / counts).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO).exp()


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
    return -(weights * _clipped(ratio, advantages, clip_low, clip_high)).sum()


def grpo_loss(logprobs: Tensor, generator_logprobs: Tensor, advantages: Tensor, weights: Tensor, clip: float) -> Tensor:
    """PPO's surrogate with GRPO's symmetric clip, 1 - clip <= rho <= 1 + clip (section 2, A.16)."""
    return dapo_loss(logprobs, generator_logprobs, advantages, weights, clip, clip)


def gspo_loss(
    logprobs: Tensor,
    generator_logprobs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    clip_low: float,
    clip_high: float,
) -> Tensor:
    """- sum W * min(s * A, clip(s, 1 - low, 1 + high) * A) over sequences: GSPO (section 3.2).

    s is the sequence's ratio, W the sum of its tokens' weights (1 / (P * G) with `sample`, as in GSPO itself). The
    gradient spreads evenly over the tokens; a clipped sequence has none.
    """
    ratio = sequence_ratio(logprobs, generator_logprobs, weights)
    of_sequence = weights.sum(1, keepdim=True)
    return -(of_sequence * _clipped(ratio, advantages, clip_low, clip_high)).sum()


def reference_kl(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """KL(policy || reference) of each token, estimated by k3: exp(d) - d - 1, d = log ref - log pi. Never below 0."""
    difference = (reference_logprobs - logprobs).clamp(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    return difference.exp() - difference - 1


def token_weights(tokens_PG: NDArray[np.int64], aggregation: str) -> NDArray[np.float64]:
    """Weight of every trained token of a response, [P, G], from how many it has; over the batch they sum to 1.

    `prompt`: 1 / (P * tokens of the prompt's G responses) (ScaleRL). `sample`: 1 / (P * G * tokens of the response)
    (GRPO). `token`: 1 / (tokens of the batch) (DAPO). A response or prompt without any trained token has weight 0
    and counts in no denominator.
    """
    counts = tokens_PG.astype(np.float64)
    if aggregation == "prompt":
        of_prompt = counts.sum(axis=1, keepdims=True)
        return np.where(counts > 0, _inverse(np.count_nonzero(of_prompt) * of_prompt), 0.0)
    if aggregation == "sample":
        return _inverse(np.count_nonzero(counts) * counts)
    if aggregation == "token":
        return np.where(counts > 0, _inverse(counts.sum()), 0.0)
    raise ValueError(f"aggregation is {aggregation!r}; it is one of prompt, sample, token")


def _clipped(ratio: Tensor, advantages: Tensor, clip_low: float, clip_high: float) -> Tensor:
    clipped = ratio.clamp(1 - clip_low, 1 + clip_high)
    return torch.minimum(ratio * advantages, clipped * advantages)


def _inverse(values: NDArray[np.float64] | np.float64) -> NDArray[np.float64]:
    """1 / values, and 0 where there is nothing to divide by."""
    values = np.asarray(values, dtype=np.float64)
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
