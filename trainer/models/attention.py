"""Ways for queries to look at keys. Shapes: q, k, v are [N, H, T, K]; scale is 1/sqrt(K)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Each place looks at itself and what came before."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def with_prompt(prompt_keys: Tensor, prompt_values: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Each place looks at the whole prompt ([N, H, S, K]) and, causally, at the response."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = torch.cat([prompt_keys, k], dim=2), torch.cat([prompt_values, v], dim=2)
        mask = _mask(q.shape[2], prompt_keys.shape[2], q.device)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

    return attend


@lru_cache(maxsize=256)
def _mask(length: int, prompt_length: int, device: torch.device) -> Tensor:
    """Additive mask [T, S + T]: 0 where a place may look, -inf where it may not."""
    allowed = torch.ones(length, prompt_length + length, dtype=torch.bool).tril(prompt_length)
    return torch.zeros(allowed.shape).masked_fill(~allowed, float("-inf")).to(device)
