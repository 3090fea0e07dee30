"""From a policy and some rows to the log-probs of their tokens. One module, so that it can be sharded as a whole.

On a GPU the rows of all buckets run end to end as one, without padding (see `packed`); elsewhere bucket by bucket.

Letters in shapes: P prompts, S prompt tokens, N rows, T response tokens, D width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.algorithm.logprobs import token_logprobs
from trainer.models.base import Policy, PromptCache
from trainer.models.packed import PackedRows


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows that run together: `owner` [N] is the place of each row's prompt among those that run, `tokens` [N, T]
    (T is 2 at least) of which `lengths` [N] are not padding, `trained` [N, T]."""

    owner: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tokens: Tensor
    trained: Tensor

    @property
    def run(self) -> NDArray[np.int64]:
        """Tokens [N] of each row that another follows, whose state makes that one. Of a row of one token that one runs:
        no row is empty."""
        return np.maximum(self.lengths - 1, 1)

    @property
    def runs(self) -> Tensor:
        """[N, T]: which tokens those are."""
        inside = np.arange(self.tokens.shape[1]) < self.run[:, None]
        return torch.from_numpy(inside).to(self.tokens.device)


class ResponseLogprobs(nn.Module):
    """Log-probs of response tokens under a policy, at the sampling temperature, and their entropy.

    `packs`: the rows of all buckets run end to end; the policy's keys must have a kernel for that.
    """

    def __init__(self, policy: Policy, temperature: float, precision: str, packs: bool = False):
        super().__init__()
        self.policy = policy
        self._temperature, self._precision, self._packs = temperature, precision, packs

    def forward(self, prompts: Tensor, mask: Tensor | None, buckets: Sequence[Bucket]) -> list[tuple[Tensor, Tensor]]:
        """Log-probs and entropy [N, T] of each bucket, 0 where a token is not trained on.

        The prompts [P, S] run once; their last state makes the first token of each response, and their keys and
        values serve the others. The head sees trained tokens only.
        """
        last_hidden, cache = self.policy.prefill(prompts, mask)
        if self._packs:
            return self._packed(buckets, last_hidden, cache)
        return [self._bucket(bucket, last_hidden, cache) for bucket in buckets]

    def _bucket(self, bucket: Bucket, last_hidden: Tensor, cache: PromptCache) -> tuple[Tensor, Tensor]:
        owner = torch.from_numpy(bucket.owner).to(bucket.tokens.device)
        first = last_hidden.index_select(0, owner)[:, None]
        rest = self.policy.respond(bucket.tokens[:, :-1], cache.rows(owner))
        hidden = torch.cat([first, rest], dim=1)[bucket.trained]
        logprobs, entropy = self._head(hidden, bucket.tokens[bucket.trained])
        return _spread(logprobs, bucket.trained), _spread(entropy, bucket.trained)

    def _packed(
        self, buckets: Sequence[Bucket], last_hidden: Tensor, cache: PromptCache
    ) -> list[tuple[Tensor, Tensor]]:
        rows = PackedRows(*(np.concatenate(each) for each in zip(*((b.owner, b.run) for b in buckets), strict=True)))
        tokens = torch.cat([bucket.tokens[bucket.runs] for bucket in buckets])
        states = torch.cat([last_hidden, self.policy.respond_packed(tokens, rows, cache)])
        starts = np.split(rows.starts + len(last_hidden), np.cumsum([len(bucket.owner) for bucket in buckets])[:-1])
        sources = [_sources(*each)[each[0].trained] for each in zip(buckets, starts, strict=True)]
        targets = torch.cat([bucket.tokens[bucket.trained] for bucket in buckets])
        found = self._head(states.index_select(0, torch.cat(sources)), targets)
        of_buckets = zip(*(torch.split(values, [len(source) for source in sources]) for values in found), strict=True)
        return [
            (_spread(logprobs, bucket.trained), _spread(entropy, bucket.trained))
            for bucket, (logprobs, entropy) in zip(buckets, of_buckets, strict=True)
        ]

    def _head(self, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return token_logprobs(hidden, self.policy.head_weight, targets, self._temperature, self._precision)


def _sources(bucket: Bucket, starts: NDArray[np.int64]) -> Tensor:
    """[N, T]: where the state is that makes each token. Of a row's first token it is its prompt's, else that of the
    token before it, which lie from `starts` [N] on."""
    sources = starts[:, None] - 1 + np.arange(bucket.tokens.shape[1])
    sources[:, 0] = bucket.owner
    return torch.from_numpy(sources).to(bucket.tokens.device)


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
