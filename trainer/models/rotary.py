"""Attention layers of the usual form with the rotary embedding in one pass, and only its angles kept for the gradient.

Transformers turns queries and keys by ten operations, each of which autograd takes back. A layer gets this forward
only after it was seen to make the same queries, keys, values and output as its own, with weights drawn for that
comparison, so that nothing rests on a class's name.

Letters in shapes: N rows, T tokens, D width, H heads, K width of a head.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from trainer.compiled import compiled, plain, serve
from trainer.models.base import Attend

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
ROWS, TOKENS = 2, 5
"""Size of the comparison."""
TOLERANCE = 1e-4
"""Largest difference between the two, where values are of order 1; another kind of rotation makes one of order 1."""


class _Rotate(torch.autograd.Function):
    """See `_rotated`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _rotated(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        cos, sin = ctx.saved_tensors
        return _rotated(gradients[0], cos, sin, sign=-1.0), None, None


def rotate_in_one_pass(backbone: nn.Module) -> None:
    """Give every attention layer that can have it this forward."""
    rotary = getattr(backbone, "rotary_emb", None)
    first = next(backbone.parameters())
    if rotary is None or not serve(first):
        return
    for module in backbone.modules():
        if _looks_usual(module) and _is_the_same(module, rotary):
            module.forward = MethodType(_forward, module)


def turns_in_one_pass(layer: Any) -> bool:
    """Whether this attention layer has our forward."""
    return getattr(layer.forward, "__func__", None) is _forward


def _forward(
    module: Any, hidden_states: Tensor, position_embeddings: tuple[Tensor, Tensor], attends: Any = None, **others: Any
) -> tuple[Tensor, None]:
    if attends is None or not serve(hidden_states):
        own: tuple[Tensor, None] = type(module).forward(
            module, hidden_states, position_embeddings=position_embeddings, attends=attends, **others
        )
        return own
    shape = (*hidden_states.shape[:-1], -1, module.head_dim)
    q, k, v = (project(hidden_states).view(shape) for project in (module.q_proj, module.k_proj, module.v_proj))
    if hasattr(module, "q_norm"):
        q, k = module.q_norm(q), module.k_norm(k)
    cos, sin = (angle.expand(*shape[:-2], -1) for angle in position_embeddings)
    q, k, v = (x.transpose(1, 2) for x in (_turned(q, cos, sin), _turned(k, cos, sin), v))
    attended = attends[module.layer_idx](q, k, v).transpose(1, 2).reshape(*shape[:-2], -1)
    return module.o_proj(attended), None


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        return _rotated(x, cos, sin)
    turned: Tensor = _Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return turned


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, sign: float = 1.0) -> Tensor:
    """x [N, T, H, K] turned by angles whose cos and sin are [N, T, K], both halves of K alike.

    `sign` -1 turns back, which is the gradient.
    """
    x, shape = x.contiguous(), (-1, *x.shape[-2:])
    turned = torch.empty_like(x)
    angles = (plain(angle.contiguous(), -1, shape[-1]) for angle in (cos, sin))
    compiled(_rotate_rows)(plain(x, *shape), *angles, np.float32(sign), plain(turned, *shape))
    return turned


def _looks_usual(module: nn.Module) -> bool:
    linear = all(isinstance(getattr(module, name, None), nn.Linear) for name in PROJECTIONS)
    return linear and isinstance(getattr(module, "head_dim", None), int) and hasattr(module, "layer_idx")


def _is_the_same(module: nn.Module, rotary: nn.Module) -> bool:
    """Whether both forwards agree on drawn weights and states: in what attention is asked, and in what comes out.

    Another kind of layer may refuse either, or be turned by angles that are made otherwise: it is not the same then.
    """
    try:
        return _agree(module, rotary)
    except Exception:  # noqa: BLE001 - in whatever way
        return False


def _agree(module: nn.Module, rotary: nn.Module) -> bool:
    generator = torch.Generator().manual_seed(0)
    drawn = {f"layer.{name}": _drawn(value, generator) for name, value in module.named_parameters()}
    width: int = module.q_proj.in_features  # type: ignore[union-attr, assignment]
    hidden = torch.randn(ROWS, TOKENS, width, generator=generator)
    angles = rotary(hidden, torch.arange(TOKENS).expand(ROWS, -1))
    own, ours = (functional_call(_Probe(module, f), drawn, (hidden, angles)) for f in (type(module).forward, _forward))
    return all(a.shape == b.shape and float((a - b).abs().max()) <= TOLERANCE for a, b in zip(own, ours, strict=True))


def _drawn(weight: Tensor, generator: torch.Generator) -> Tensor:
    """Weights that keep values of order 1: of a product, of a norm, of a bias."""
    values = torch.randn(weight.shape, generator=generator)
    return values / weight.shape[-1] ** 0.5 if weight.dim() > 1 else 1 + values / 2


class _Probe(nn.Module):
    """A layer under one of its forwards: the queries, keys and values that attention is asked with, and the output."""

    def __init__(self, layer: nn.Module, layer_forward: Callable[..., tuple[Tensor, None]]):
        super().__init__()
        self.layer, self._forward_of = layer, layer_forward

    def forward(self, hidden: Tensor, angles: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Attention itself is left out: each query's answer is the query."""
        asked: list[Tensor] = []

        def answer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            asked.extend((q, k, v))
            return q

        attends: defaultdict[int, Attend] = defaultdict(lambda: answer)
        output, _ = self._forward_of(
            self.layer, hidden, position_embeddings=angles, attention_mask=None, attends=attends
        )
        return (*asked, output)


# --- a loop: plain enough for numba ---


def _rotate_rows(x: Any, cos: Any, sin: Any, sign: Any, turned: Any) -> None:
    rows, heads, width = x.shape
    half = width // 2
    for i in range(rows):
        for h in range(heads):
            for j in range(half):
                first, second = x[i, h, j], x[i, h, half + j]
                c, s = cos[i, j], sin[i, j] * sign
                turned[i, h, j] = first * c - second * s
                turned[i, h, half + j] = second * c + first * s
