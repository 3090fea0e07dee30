"""The recipe's objective on some rows, and sums over their tokens of what is worth knowing about a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from forecurve.recipes.schema import Algorithm
from trainer.losses import (
    cispo_loss,
    dapo_loss,
    grpo_loss,
    gspo_loss,
    importance_ratio,
    reference_kl,
    sequence_ratio,
)

SUMS = ("loss", "entropy", "ratio", "ratio_squared", "capped", "logprob_diff", "mismatch_kl", "reference_kl")
"""What `token_sums` adds up, in this order."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Rows under the loss, all [N, T] but `advantages` [N, 1]; see `TrainingBatch`. `reference`: log-probs under the
    starting weights, None without a KL term."""

    logprobs: Tensor
    generator_logprobs: Tensor
    advantages: Tensor
    weights: Tensor
    trained: Tensor
    entropy: Tensor
    reference: Tensor | None = None


def objective(algorithm: Algorithm, tokens: Tokens) -> Tensor:
    """Share of these rows in the loss of the whole batch: the policy loss and, with a coefficient, the KL term."""
    loss = _policy_loss(algorithm, tokens)
    if tokens.reference is None:
        return loss
    kl = reference_kl(tokens.logprobs, tokens.reference)
    return loss + algorithm.kl_coefficient * (tokens.weights * kl).sum()


@torch.no_grad()
def token_sums(algorithm: Algorithm, tokens: Tokens, loss: Tensor) -> Tensor:
    """[len(SUMS) + 1]: the sums over trained tokens, and last the largest ratio."""
    ratio = importance_ratio(tokens.logprobs, tokens.generator_logprobs)
    difference = tokens.logprobs - tokens.generator_logprobs
    kl = None if tokens.reference is None else reference_kl(tokens.logprobs, tokens.reference)
    of_tokens = (
        tokens.entropy,
        ratio,
        ratio.square(),
        _capped(algorithm, tokens, ratio).float(),
        difference.abs(),
        ratio - 1 - difference,
        torch.zeros_like(ratio) if kl is None else kl,
    )
    sums = [(values * tokens.trained).sum() for values in of_tokens]
    return torch.stack([loss, *sums, (ratio * tokens.trained).max()])


def means(sums: Tensor, tokens: int, with_kl: bool) -> dict[str, float]:
    """Metrics of a step from `token_sums` over all its trained tokens; the KL only where there is a reference."""
    found = dict(zip((*SUMS, "ratio_max"), sums.tolist(), strict=True))
    metrics = {
        "train/loss": found["loss"],
        "train/entropy": found["entropy"] / tokens,
        "policy/ratio_mean": found["ratio"] / tokens,
        "policy/ratio_max": found["ratio_max"],
        "policy/ratio_capped_share": found["capped"] / tokens,
        "policy/logprob_diff_mean": found["logprob_diff"] / tokens,
        "policy/mismatch_kl": found["mismatch_kl"] / tokens,
        "policy/effective_sample_share": found["ratio"] ** 2 / (tokens * found["ratio_squared"]),
    }
    return metrics | ({"policy/reference_kl": found["reference_kl"] / tokens} if with_kl else {})


def _policy_loss(algorithm: Algorithm, tokens: Tokens) -> Tensor:
    given = tokens.logprobs, tokens.generator_logprobs, tokens.advantages, tokens.weights
    match algorithm.loss:
        case "cispo":
            return cispo_loss(*given, algorithm.is_weight_cap)
        case "gspo":
            return gspo_loss(*given, algorithm.clip_low, algorithm.clip_high)
        case "dapo":
            return dapo_loss(*given, algorithm.clip_low, algorithm.clip_high)
        case "grpo":
            return grpo_loss(*given, algorithm.clip_low)


def _capped(algorithm: Algorithm, tokens: Tokens, ratio: Tensor) -> Tensor:
    """Tokens whose ratio, or whose sequence's, the loss cuts, for either sign of the advantage."""
    if algorithm.loss == "cispo":
        return ratio > algorithm.is_weight_cap
    if algorithm.loss == "gspo":
        ratio = sequence_ratio(tokens.logprobs, tokens.generator_logprobs, tokens.weights).expand_as(ratio)
    high = algorithm.clip_low if algorithm.loss == "grpo" else algorithm.clip_high
    return (ratio > 1 + high) | (ratio < 1 - algorithm.clip_low)
