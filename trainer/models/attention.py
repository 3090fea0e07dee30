"""Ways for queries to look at keys, as `Attend` functions (see `base`).

Masks are kept for the next call, which may be one that needs gradients: they are made outside of inference mode, whose
tensors autograd refuses.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from trainer.models.base import Attend


def causal(mask: Tensor | None = None) -> Attend:
    """Each place looks at itself and what came before; never at padding (`mask` [P, S] False)."""
    if mask is None:
        return lambda q, k, v: _attention(q, k, v, None)
    # A padded place looks at itself, so that no row of the softmax is empty; nobody looks at it.
    itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
    allowed = (mask[:, None, :] & _lower(mask.shape[1], 0, mask.device)) | itself
    return lambda q, k, v: _attention(q, k, v, allowed[:, None])


def with_prompt(prompt_keys: Tensor, prompt_values: Tensor, mask: Tensor | None = None) -> Attend:
    """Each place looks at the whole prompt ([N, H, S, K], `mask` [N, S]) and, causally, at the response."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = torch.cat([prompt_keys, k], dim=2), torch.cat([prompt_values, v], dim=2)
        length, prompt_length = q.shape[2], prompt_keys.shape[2]
        if mask is None:
            return _attention(q, keys, values, _additive(length, prompt_length, q.device, q.dtype))
        on_prompt = mask[:, None, :].expand(-1, length, -1)
        on_response = _lower(length, 0, q.device).expand(len(mask), -1, -1)
        return _attention(q, keys, values, torch.cat([on_prompt, on_response], dim=2)[:, None])

    return attend


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=grouped)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def _lower(length: int, past: int, device: torch.device) -> Tensor:
    """[T, past + T]: True where a place may look."""
    return torch.ones(length, past + length, dtype=torch.bool, device=device).tril(past)


@lru_cache(maxsize=256)
@torch.inference_mode(False)
def _additive(length: int, past: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """[T, past + T]: 0 where a place may look, -inf where it may not (the CPU kernel's fastest form)."""
    lower = _lower(length, past, device)
    return torch.zeros(lower.shape, dtype=dtype, device=device).masked_fill(~lower, float("-inf"))
