"""RMS norms with their backward pass written out.

Transformers writes the norm as six operations, which autograd takes back in about ten, each a pass over memory. Here
fewer do, and only the input, the weight and one number a row are kept for them.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn


class _RMSNorm(torch.autograd.Function):
    """x * w / sqrt(mean(x^2) + eps) over the last dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        scale = _scale(x, epsilon)
        ctx.save_for_backward(x, weight, scale)
        return (x * scale).mul_(weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normed, gradient = x * scale, gradients[0]
        product = gradient * normed
        to_weight = product.flatten(0, -2).sum(0) if ctx.needs_input_grad[1] else None
        along = torch.mv(product.flatten(0, -2), weight).view_as(scale) / x.shape[-1]
        to_x = torch.addcmul(gradient * weight, normed, along, value=-1).mul_(scale)
        return to_x, to_weight, None


def write_out_norms(model: nn.Module) -> None:
    """Give the model's float32 RMS norms of the usual form (`weight`, `variance_epsilon`) this forward.

    Whoever calls this compares the model with its own forward afterwards: a norm that only looks like one is found.
    """
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon"):
            parameters = dict(module.named_parameters())
            if list(parameters) == ["weight"] and parameters["weight"].dtype == torch.float32:
                module.forward = MethodType(_forward, module)


def _forward(module: Any, x: Tensor) -> Tensor:
    if torch.is_grad_enabled():
        normed: Tensor = _RMSNorm.apply(x, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]
        return normed
    plain: Tensor = (x * _scale(x, module.variance_epsilon)).mul_(module.weight)
    return plain


def _scale(x: Tensor, epsilon: float) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
