"""Responses end to end, without padding, each after its own prompt.

A GPU has a kernel that attends in rows of unlike length. So all rows of a micro-batch run as one, whatever their
lengths and those of their prompts.

Letters in shapes: P prompts, S prompt tokens (padded on the left), N rows, M tokens of all rows, H heads, K width of a
head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.models.base import Attend, PromptCache

WIDEST_HEAD = 256
"""The kernel's limit."""


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows that lie end to end: `owner` [N], the place of each one's prompt, `lengths` [N], its tokens, 1 or more."""

    owner: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """[N] of each row's first token among all."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def places(self) -> NDArray[np.int64]:
        """[M] of each token in its row, from 0."""
        return _counted(self.lengths)


@dataclass(frozen=True, slots=True)
class Edges:
    """Where rows begin and end [N + 1], int32 on the device, and the longest row."""

    at: Tensor
    longest: int


def kernel_takes(keys: Tensor, values: Tensor) -> bool:
    """Whether there is a kernel for keys and values like these [.., K]."""
    width = keys.shape[-1]
    usual = keys.is_cuda and keys.dtype == torch.bfloat16 and values.shape == keys.shape
    return usual and width % 8 == 0 and width <= WIDEST_HEAD


def positions(cache: PromptCache, rows: PackedRows) -> Tensor:
    """[M] of each token after its row's prompt, whose tokens count."""
    return torch.from_numpy(np.repeat(_before(cache, rows), rows.lengths) + rows.places).to(cache.lengths.device)


def after_prompts_packed(cache: PromptCache, rows: PackedRows) -> list[Attend]:
    """One way of attending per layer, for queries, keys and values of all rows end to end, as one row [1, .., M, K].

    Each place looks at the whole prompt of its row and, causally, at the row.
    """
    device = cache.lengths.device
    before, order = _before(cache, rows), _order(cache, rows)
    queries, keys = _edges(rows.lengths, device), _edges(before + rows.lengths, device)

    def after(prompt_keys: Tensor, prompt_values: Tensor) -> Attend:
        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            seen, worth = _joined(prompt_keys, k, order), _joined(prompt_values, v, order)
            return attention(_flat(q), seen, worth, queries, keys).transpose(0, 1)[None]

        return attend

    return [after(*layer) for layer in cache.layers]


def attention(q: Tensor, k: Tensor, v: Tensor, queries: Edges, keys: Edges) -> Tensor:
    """Rows [M, H', K] at keys and values [.., H, K], of which each row has some more before its own: causal."""
    from torch.nn.attention.varlen import varlen_attn

    attended = varlen_attn(
        q, k, v, queries.at, keys.at, queries.longest, keys.longest,
        window_size=(-1, 0), enable_gqa=q.shape[1] != k.shape[1],
    )  # fmt: skip
    assert isinstance(attended, Tensor)
    return attended


@dataclass(frozen=True, slots=True)
class _Order:
    """Where keys lie once each row's prompt comes before its own: those of prompts at `shared`, from `sources` among
    all of [P S]; those of rows at `own` [M]."""

    shared: Tensor
    sources: Tensor
    own: Tensor


def _joined(prompts: Tensor, own: Tensor, order: _Order) -> Tensor:
    joined: Tensor = _Joined.apply(prompts, own, order.shared, order.sources, order.own)  # type: ignore[no-untyped-call]
    return joined


class _Joined(torch.autograd.Function):
    """Keys (or values) of prompts [P, H, S, K] and of all rows [1, H, M, K] in this order: [.., H, K].

    A prompt's gradient is the sum over its rows, in float32. Those of rows are only moved.
    """

    @staticmethod
    def forward(ctx: Any, prompts: Tensor, own: Tensor, *order: Tensor) -> Tensor:
        shared, sources, places = order
        ctx.save_for_backward(*order)
        ctx.shapes = prompts.shape, own.shape
        joined = own.new_empty(len(shared) + len(places), own.shape[1], own.shape[3])
        joined.index_copy_(0, shared, _flat(prompts).index_select(0, sources))
        return joined.index_copy_(0, places, _flat(own))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (shared, sources, places), (gradient,) = ctx.saved_tensors, gradients
        (count, heads, length, width), own = ctx.shapes
        total = gradient.new_zeros(count * length, heads, width, dtype=torch.float32)
        total.index_add_(0, sources, gradient.index_select(0, shared).float())
        to_prompts = total.to(gradient.dtype).view(count, length, heads, width).transpose(1, 2)
        return to_prompts, gradient.index_select(0, places).transpose(0, 1).view(own), None, None, None


def _before(cache: PromptCache, rows: PackedRows) -> NDArray[np.int64]:
    """[N] tokens of each row's prompt."""
    lengths: NDArray[np.int64] = cache.lengths.cpu().numpy()
    return lengths[rows.owner]


def _flat(x: Tensor) -> Tensor:
    """[P, H, S, K] as [P S, H, K]."""
    return x.transpose(1, 2).flatten(0, 1)


def _order(cache: PromptCache, rows: PackedRows) -> _Order:
    length, before = cache.layers[0][0].shape[2], _before(cache, rows)
    first = np.cumsum(before + rows.lengths) - before - rows.lengths  # key of each row
    places, of_row = _counted(before), np.repeat(np.arange(len(before)), before)
    shared = first[of_row] + places
    sources = (rows.owner[of_row] + 1) * length - before[of_row] + places  # prompts end where their padded row ends
    own = np.repeat(first + before, rows.lengths) + rows.places
    return _Order(*(torch.from_numpy(each).to(cache.lengths.device) for each in (shared, sources, own)))


def _counted(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, .. within each of so many."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _edges(lengths: NDArray[np.int64], device: torch.device) -> Edges:
    at = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return Edges(torch.from_numpy(at).to(device), int(lengths.max()))
