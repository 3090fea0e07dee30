"""A tiny decoder for the testbed: pre-norm, ReLU MLP of four times the width, untied head, learned positions.

Two things make the torus task learnable in minutes: positions begin again at 0 at the prompt's last token
(`=`), so that response and prompt line up; and a segment vector tells prompt from response.

Letters in shapes: N rows, S prompt tokens, T response tokens, D width, H heads, K width of a head, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trainer.models.attention import after_prompts, causal
from trainer.models.base import Attend, Policy, PromptCache
from trainer.models.packed import PackedRows, after_prompts_packed


@dataclass(frozen=True, slots=True)
class TinyConfig:
    """Sizes of the decoder. `max_response` bounds the positions, not the parameters that matter."""

    width: int = 64
    layers: int = 2
    heads: int = 4
    vocabulary: int = 24
    prompt_length: int = 28
    max_response: int = 64


class Block(nn.Module):
    """Attention and MLP, each behind a layer norm, each added to the residual."""

    def __init__(self, config: TinyConfig):
        super().__init__()
        self.heads = config.heads
        self.norm_attention = nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.project = nn.Linear(config.width, config.width)
        self.norm_mlp = nn.LayerNorm(config.width)
        self.expand = nn.Linear(config.width, 4 * config.width)
        self.contract = nn.Linear(4 * config.width, config.width)

    def forward(self, x_NTD: Tensor, attend: Attend) -> Tensor:
        """Residual stream in, residual stream out."""
        rows, length, width = x_NTD.shape
        qkv = self.qkv(self.norm_attention(x_NTD)).view(rows, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = attend(q, k, v).transpose(1, 2).reshape(rows, length, width)
        x_NTD = x_NTD + self.project(attended)
        # Not in place: the product is a view of two dimensions, of which autograd would make a copy.
        added: Tensor = self.contract(F.relu(self.expand(self.norm_mlp(x_NTD))))
        return x_NTD + added


class TinyDecoder(Policy):
    """See `Policy`."""

    def __init__(self, config: TinyConfig):
        super().__init__()
        self.config = config
        self.shortest_prompt = config.prompt_length  # and the longest
        places = max(config.prompt_length, config.max_response + 1)
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Parameter(sinusoids(places, config.width))
        self.segments = nn.Parameter(torch.zeros(2, config.width))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.embedding.weight, std=0.3)
        nn.init.normal_(self.segments, std=0.3)
        nn.init.normal_(self.head.weight, std=0.02)

    def embed_prompt(self, tokens_NS: Tensor) -> Tensor:
        """[N, S] -> [N, S, D]. The last token already counts as place 0 of the response."""
        body = self.config.prompt_length - 1
        places = torch.arange(self.config.prompt_length, device=tokens_NS.device)
        where = self.positions[torch.where(places < body, places, 0)] + self.segments[(places >= body).long()]
        tokens: Tensor = self.embedding(tokens_NS)
        return tokens + where

    def embed_response(self, tokens_NT: Tensor) -> Tensor:
        """[N, T] response tokens from the first on -> [N, T, D]."""
        tokens: Tensor = self.embedding(tokens_NT)
        return tokens + self.positions[1 : 1 + tokens_NT.shape[1]] + self.segments[1]

    def run(self, x_NTD: Tensor, attend: Sequence[Attend]) -> Tensor:
        """All blocks with one way of attending per layer, then the last norm: [N, T, D] -> [N, T, D]."""
        for block, attend_layer in zip(self.blocks, attend, strict=True):
            x_NTD = block(x_NTD, attend_layer)
        normed: Tensor = self.norm(x_NTD)
        return normed

    def prefill(self, prompts: Tensor, mask: Tensor | None = None) -> tuple[Tensor, PromptCache]:
        """See `Policy`. Prompts have the configured length; the task pads them on the inside."""
        if mask is not None:
            raise ValueError("a tiny decoder takes prompts of one length, without padding")
        layers: list[tuple[Tensor, Tensor]] = []
        attend = causal()

        def remember(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            layers.append((k, v))
            return attend(q, k, v)

        hidden = self.run(self.embed_prompt(prompts), [remember] * self.config.layers)
        lengths = torch.full((len(prompts),), prompts.shape[1], device=prompts.device)
        return hidden[:, -1], PromptCache(tuple(layers), lengths)

    def respond(self, tokens: Tensor, cache: PromptCache) -> Tensor:
        """See `Policy`."""
        return self.run(self.embed_response(tokens), after_prompts(cache, tokens.shape[1]))

    def respond_packed(self, tokens: Tensor, rows: PackedRows, cache: PromptCache) -> Tensor:
        """See `Policy`."""
        places = torch.from_numpy(rows.places).to(tokens.device)
        embedded = self.embedding(tokens) + self.positions[places + 1] + self.segments[1]
        return self.run(embedded[None], after_prompts_packed(cache, rows))[0]

    def decode(self, tokens: Tensor, places: Tensor, prompt_lengths: Tensor, attends: Sequence[Attend]) -> Tensor:
        """See `Policy`."""
        embedded = self.embedding(tokens) + self.positions[places + 1] + self.segments[1]
        return self.run(embedded[:, None], attends)[:, 0]

    def full(self, prompts_NS: Tensor, tokens_NT: Tensor) -> Tensor:
        """The plain forward without any cache, for warm start and tests: hidden [N, 1 + T, D] from the `=` on."""
        x = torch.cat([self.embed_prompt(prompts_NS), self.embed_response(tokens_NT)], dim=1)
        return self.run(x, [causal()] * self.config.layers)[:, self.config.prompt_length - 1 :]

    @property
    def head_weight(self) -> Tensor:
        """See `Policy`."""
        return self.head.weight


def sinusoids(places: int, width: int) -> Tensor:
    """Sine and cosine features of each place, [places, width]: the start of the learned positions."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(places)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(places, -1)[:, :width].contiguous()
