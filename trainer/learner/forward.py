"""From a policy and some rows to the log-probs of their tokens. One module, so that it can be sharded as a whole.

Letters in shapes: P prompts, S prompt tokens, N rows, T response tokens, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.algorithm.logprobs import token_logprobs
from trainer.models.base import Policy, PromptCache


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows that run together: `owner` [N] is the place of each row's prompt among those that run, `tokens` [N, T]
    (T is 2 at least), `trained` [N, T]."""

    owner: Tensor
    tokens: Tensor
    trained: Tensor


class ResponseLogprobs(nn.Module):
    """Log-probs of response tokens under a policy, at the sampling temperature, and their entropy."""

    def __init__(self, policy: Policy, temperature: float, precision: str):
        super().__init__()
        self.policy = policy
        self._temperature, self._precision = temperature, precision

    def forward(self, prompts: Tensor, mask: Tensor | None, buckets: Sequence[Bucket]) -> list[tuple[Tensor, Tensor]]:
        """Log-probs and entropy [N, T] of each bucket, 0 where a token is not trained on.

        The prompts [P, S] run once; their last state makes the first token of each response, and their keys and
        values serve the others. The head sees trained tokens only.
        """
        last_hidden, cache = self.policy.prefill(prompts, mask)
        return [self._bucket(bucket, last_hidden, cache) for bucket in buckets]

    def _bucket(self, bucket: Bucket, last_hidden: Tensor, cache: PromptCache) -> tuple[Tensor, Tensor]:
        first = last_hidden.index_select(0, bucket.owner)[:, None]
        rest = self.policy.respond(bucket.tokens[:, :-1], cache.rows(bucket.owner))
        hidden = torch.cat([first, rest], dim=1)[bucket.trained]
        targets = bucket.tokens[bucket.trained]
        logprobs, entropy = token_logprobs(hidden, self.policy.head_weight, targets, self._temperature, self._precision)
        return _spread(logprobs, bucket.trained), _spread(entropy, bucket.trained)


def checkpoint_layers(policy: nn.Module) -> None:
    """Drop every layer's activations after its forward pass and make them again in the backward pass."""
    for layer in layers_of(policy):
        layer.forward = _recomputed(layer.forward)


def layers_of(policy: nn.Module) -> list[nn.Module]:
    """The policy's transformer layers: its outermost list of modules."""
    return list(next(module for module in policy.modules() if isinstance(module, nn.ModuleList)))


def _recomputed(forward: Any) -> Any:
    def run(*arguments: Any, **keywords: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, preserve_rng_state=False, **keywords)

    return run


def _spread(values: Tensor, where: Tensor) -> Tensor:
    """Values of the True places, in a rectangle of zeros."""
    return torch.zeros(where.shape, dtype=values.dtype, device=values.device).masked_scatter(where, values)
