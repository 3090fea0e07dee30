"""Ways for queries to look at keys, as `Attend` functions (see `base`).

On a GPU, in bfloat16, no mask is ever made where a kernel knows the shape by itself: of long responses it would take
more memory than all else. Small masks are kept for the next call, which may be one that needs gradients: they are made
outside of inference mode, whose tensors autograd refuses.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.models.base import Attend, PromptCache

MASK_ELEMENTS = 1 << 24
"""Elements of the largest mask that rows of padded prompts share a call by; above it each padding has its own call."""
MASK_ELEMENTS_OVER_A_KERNEL = 1 << 20
"""The same on a GPU in bfloat16, where a call without a mask has a kernel of its own."""
KEPT_ELEMENTS = 1 << 14
"""Elements of the largest mask that is kept: making a larger one is little beside what it is used for."""

Paddings = tuple[tuple[tuple[int, Tensor], ...], Tensor]
"""Rows whose prompts have so much padding, padding by padding, and the places that take them back to their order."""


def causal(mask: Tensor | None = None) -> Attend:
    """Each place looks at itself and what came before; never at padding (`mask` [P, S] False)."""
    if mask is None:
        return lambda q, k, v: _attention(q, k, v, None)
    # A padded place looks at itself, so that no row of the softmax is empty; nobody looks at it.
    itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    allowed = (mask[:, None, :] & _lower(mask.shape[1], 0, mask.device)) | itself
    return lambda q, k, v: _attention(q, k, v, allowed[:, None])


def after_prompts(cache: PromptCache, length: int) -> list[Attend]:
    """One way of attending per layer, for responses of `length` tokens that each follow their own row of `cache`.

    Each place looks at the whole prompt and, causally, at the response.
    """
    mask = cache.mask
    if mask is None:
        return [_after_whole(*layer) for layer in cache.layers]
    if len(mask) * length * (mask.shape[1] + length) <= _largest_mask(cache.layers[0][0]):
        on_response = _lower(length, 0, mask.device).expand(len(mask), -1, -1)
        allowed = torch.cat([mask[:, None, :].expand(-1, length, -1), on_response], dim=2)[:, None]
        return [_after_masked(*layer, allowed) for layer in cache.layers]
    paddings = _paddings(mask)
    return [_after_each_padding(*layer, paddings) for layer in cache.layers]


def _after_whole(prompt_keys: Tensor, prompt_values: Tensor) -> Attend:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return _lower_right(q, torch.cat([prompt_keys, k], dim=2), torch.cat([prompt_values, v], dim=2))

    return attend


def _after_masked(prompt_keys: Tensor, prompt_values: Tensor, allowed: Tensor) -> Attend:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return _attention(q, torch.cat([prompt_keys, k], dim=2), torch.cat([prompt_values, v], dim=2), allowed)

    return attend


def _after_each_padding(prompt_keys: Tensor, prompt_values: Tensor, paddings: Paddings) -> Attend:
    groups, places = paddings

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        found = []
        for padding, rows in groups:
            prompt = (x.index_select(0, rows)[:, :, padding:] for x in (prompt_keys, prompt_values))
            q_of, k_of, v_of = (x.index_select(0, rows) for x in (q, k, v))
            found.append(_after_whole(*prompt)(q_of, k_of, v_of))
        return torch.cat(found).index_select(0, places)

    return attend


def _paddings(mask: Tensor) -> Paddings:
    of_rows = (~mask).sum(1)
    found = sorted(set(of_rows.tolist()))
    groups = tuple((padding, (of_rows == padding).nonzero()[:, 0]) for padding in found)
    return groups, torch.cat([rows for _, rows in groups]).argsort()


def _largest_mask(x: Tensor) -> int:
    return MASK_ELEMENTS_OVER_A_KERNEL if _has_kernel(x) else MASK_ELEMENTS


def _has_kernel(x: Tensor) -> bool:
    """Whether attention without a mask has a kernel of its own for these."""
    return x.is_cuda and x.dtype == torch.bfloat16


def _lower_right(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each of the last places looks at itself and at all that came before: [.., T, K] at [.., S + T, K]."""
    length, total = q.shape[2], k.shape[2]
    if _has_kernel(q):
        from torch.nn.attention.bias import causal_lower_right

        grouped = q.shape[1] != k.shape[1]
        return F.scaled_dot_product_attention(q, k, v, causal_lower_right(length, total), enable_gqa=grouped)
    return _attention(q, k, v, _additive(length, total - length, q.device, q.dtype))


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Under a mask; causal without one."""
    groups = q.shape[1] // k.shape[1]
    if groups > 1 and q.is_cuda and (mask is not None or q.dtype == torch.float32):
        # The GPU's kernel for these takes no groups, and without a kernel all scores would lie in memory.
        k, v, groups = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1), 1
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=groups > 1)


def _lower(length: int, past: int, device: torch.device) -> Tensor:
    """[T, past + T]: True where a place may look."""
    return (_kept_lower if _is_small(length, past) else _made_lower)(length, past, device)


def _additive(length: int, past: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """[T, past + T]: 0 where a place may look, -inf where it may not (the CPU kernel's fastest form)."""
    return (_kept_additive if _is_small(length, past) else _made_additive)(length, past, device, dtype)


def _is_small(length: int, past: int) -> bool:
    return length * (past + length) <= KEPT_ELEMENTS


@torch.inference_mode(False)
def _made_lower(length: int, past: int, device: torch.device) -> Tensor:
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)


@torch.inference_mode(False)
def _made_additive(length: int, past: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    lower = _made_lower(length, past, device)
    return torch.zeros(lower.shape, dtype=dtype, device=device).masked_fill(~lower, float("-inf"))


_kept_lower, _kept_additive = lru_cache(maxsize=256)(_made_lower), lru_cache(maxsize=256)(_made_additive)
