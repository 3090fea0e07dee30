"""The recipe's objective on some rows, and sums over their tokens of what is worth knowing about a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from forecurve.recipes.schema import Algorithm
from trainer.algorithm.losses import (
    cispo_loss,
    dapo_loss,
    grpo_loss,
    gspo_loss,
    importance_ratio,
    reference_kl,
    sequence_ratio,
)

SUMS = (
    "loss", "entropy", "ratio", "ratio_squared", "ratio_cut", "capped", "advantage", "logprob_diff", "mismatch_kl",
    "reference_kl",
)  # fmt: skip
"""What `token_sums` adds up, in this order."""
LARGEST = ("ratio", "minus_ratio", "advantage")
"""What it takes the largest of, after the sums."""


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
    """[len(SUMS) + len(LARGEST)]: the sums over trained tokens, then the largest of them; -inf of none."""
    ratio = importance_ratio(tokens.logprobs, tokens.generator_logprobs)
    difference = tokens.logprobs - tokens.generator_logprobs
    advantage = tokens.advantages.abs().expand_as(ratio)
    kl = None if tokens.reference is None else reference_kl(tokens.logprobs, tokens.reference)
    of_tokens = (
        tokens.entropy,
        ratio,
        ratio.square(),
        _cut(algorithm, tokens, ratio),
        _capped(algorithm, tokens, ratio).float(),
        advantage,
        difference.abs(),
        ratio - 1 - difference,
        torch.zeros_like(ratio) if kl is None else kl,
    )
    sums = [(values * tokens.trained).sum() for values in of_tokens]
    largest = [_largest(values, tokens.trained) for values in (ratio, -ratio, advantage)]
    return torch.stack([loss, *sums, *largest])


def nothing_summed(device: torch.device) -> Tensor:
    """What `token_sums` says of no tokens."""
    return torch.tensor([0.0] * len(SUMS) + [-torch.inf] * len(LARGEST), device=device)


def combined(one: Tensor, other: Tensor) -> Tensor:
    """`token_sums` of the tokens of both."""
    count = len(SUMS)
    return torch.cat([one[:count] + other[:count], torch.maximum(one[count:], other[count:])])


def _largest(values: Tensor, trained: Tensor) -> Tensor:
    return values.masked_fill(trained == 0, -torch.inf).max()


def means(sums: Tensor, tokens: int, with_kl: bool) -> dict[str, float]:
    """Metrics of a step from `token_sums` over all its trained tokens; the KL only where there is a reference."""
    found = dict(zip((*SUMS, *(f"largest_{name}" for name in LARGEST)), sums.tolist(), strict=True))
    entropy, mismatch = found["entropy"] / tokens, found["mismatch_kl"] / tokens
    metrics = {
        "train/loss": found["loss"],
        "train/entropy": entropy,
        "train/advantage_mean": found["advantage"] / tokens,
        "train/advantage_max": found["largest_advantage"],
        "policy/ratio_mean": found["ratio"] / tokens,
        "policy/ratio_cut_mean": found["ratio_cut"] / tokens,
        "policy/ratio_min": -found["largest_minus_ratio"],
        "policy/ratio_max": found["largest_ratio"],
        "policy/ratio_capped_share": found["capped"] / tokens,
        "policy/logprob_diff_mean": found["logprob_diff"] / tokens,
        "policy/mismatch_kl": mismatch,
        "policy/mismatch_kl_per_entropy": mismatch / entropy if entropy > 0 else 0.0,
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


def _cut(algorithm: Algorithm, tokens: Tokens, ratio: Tensor) -> Tensor:
    """Ratios, of sequences with gspo, within the bounds of the loss."""
    if algorithm.loss == "cispo":
        return ratio.clamp(max=algorithm.is_weight_cap)
    if algorithm.loss == "gspo":
        ratio = sequence_ratio(tokens.logprobs, tokens.generator_logprobs, tokens.weights).expand_as(ratio)
    high = algorithm.clip_low if algorithm.loss == "grpo" else algorithm.clip_high
    return ratio.clamp(1 - algorithm.clip_low, 1 + high)


def _capped(algorithm: Algorithm, tokens: Tokens, ratio: Tensor) -> Tensor:
    """Tokens whose ratio, or whose sequence's, the loss cuts: CISPO for either sign of the advantage, the others where
    the ratio has gone the way that the advantage drives it, so that the token has no gradient."""
    if algorithm.loss == "cispo":
        return ratio > algorithm.is_weight_cap
    if algorithm.loss == "gspo":
        ratio = sequence_ratio(tokens.logprobs, tokens.generator_logprobs, tokens.weights).expand_as(ratio)
    high = algorithm.clip_low if algorithm.loss == "grpo" else algorithm.clip_high
    risen, fallen = ratio > 1 + high, ratio < 1 - algorithm.clip_low
    return (risen & (tokens.advantages > 0)) | (fallen & (tokens.advantages < 0))
