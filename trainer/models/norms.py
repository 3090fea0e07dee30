"""RMS norms with their backward pass written out, or in torch's one kernel on a GPU.

Transformers writes the norm as six operations, which autograd takes back in about ten, each a pass over memory. Here
fewer do (one, where compiled loops serve, and on a GPU), and only the input, the weight and one number a row are kept
for them.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from trainer.compiled import compiled, plain, serve

ROWS_PER_SUM = 64
"""Rows whose share in the weight's gradient is summed in float32 before it is added to the float64 total."""
NEAR = {torch.float32: 1e-4, torch.bfloat16: 2**-6}
"""Largest difference between a norm of the usual form and its formula, as a share: what rounding makes, twice in
bfloat16. Another kind of norm makes one of order 1."""


class _RMSNorm(torch.autograd.Function):
    """x * w / sqrt(mean(x^2) + eps) over the last dimension."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        normed, scale = _norm(x, weight, epsilon)
        ctx.save_for_backward(x, weight, scale)
        return normed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        backward = _backward_in_one_pass if serve(x) else _backward
        to_x, to_weight = backward(x, weight, scale, gradients[0])
        return to_x, to_weight if ctx.needs_input_grad[1] else None, None


def write_out_norms(model: nn.Module) -> None:
    """Give the model's RMS norms of the usual form (`weight`, `variance_epsilon`) this forward.

    A norm gets it only after it was seen to follow the formula, with a weight drawn for that.
    """
    usual: dict[type, bool] = {}
    for module in model.modules():
        kind = type(module)
        if not (kind.__name__.endswith("RMSNorm") and hasattr(module, "variance_epsilon")):
            continue
        parameters = dict(module.named_parameters())
        if list(parameters) != ["weight"] or parameters["weight"].dtype not in NEAR:
            continue
        if kind not in usual:
            usual[kind] = _follows_the_formula(module)
        if usual[kind]:
            module.forward = MethodType(_forward, module)


@torch.no_grad()
def _follows_the_formula(module: Any) -> bool:
    generator = torch.Generator().manual_seed(0)
    weight = (1 + torch.randn(module.weight.shape, generator=generator, device="cpu") / 2).to(module.weight.device)
    x = torch.randn(4, *weight.shape, generator=generator, device="cpu").to(module.weight)
    try:
        own = functional_call(module, {"weight": weight.to(x.dtype)}, (x,))
    except Exception:  # noqa: BLE001 - one that cannot be asked like this is not of the usual form
        return False
    wanted = F.rms_norm(x.float(), weight.shape, weight, module.variance_epsilon)
    return torch.allclose(own.float(), wanted, rtol=NEAR[x.dtype], atol=NEAR[x.dtype])


def is_written_out(module: nn.Module) -> bool:
    """Whether this norm has our forward."""
    return getattr(module.forward, "__func__", None) is _forward


def _forward(module: Any, x: Tensor) -> Tensor:
    if x.is_cuda:
        return F.rms_norm(x, module.weight.shape, module.weight, module.variance_epsilon)
    if module.weight.dtype != torch.float32:
        own: Tensor = type(module).forward(module, x)
        return own
    if torch.is_grad_enabled():
        normed: Tensor = _RMSNorm.apply(x, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]
        return normed
    return _norm(x, module.weight, module.variance_epsilon)[0]


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The normed x [..., D], and the factor of each row [...] that it was made with."""
    if serve(x):
        x, width = x.contiguous(), x.shape[-1]
        normed, scale = torch.empty_like(x), x.new_empty(x.shape[:-1])
        rows = plain(x, -1, width), _copied(weight), np.float32(epsilon)
        compiled(_norm_rows)(*rows, plain(normed, -1, width), plain(scale, -1))
        return normed, scale
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    factor = norm.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
    return (x * factor).mul_(weight), factor[..., 0]


def _backward(x: Tensor, weight: Tensor, scale: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    factor = scale[..., None]
    normed = x * factor
    product = gradient * normed
    along = torch.mv(product.flatten(0, -2), weight).view_as(factor) / x.shape[-1]
    to_x = torch.addcmul(gradient * weight, normed, along, value=-1).mul_(factor)
    return to_x, product.flatten(0, -2).sum(0)


def _backward_in_one_pass(x: Tensor, weight: Tensor, scale: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    x, gradient, width = x.contiguous(), gradient.contiguous(), x.shape[-1]
    to_x, to_weight = torch.empty_like(x), np.zeros(width)
    given = plain(x, -1, width), _copied(weight), plain(scale, -1), plain(gradient, -1, width)
    compiled(_backward_rows)(*given, plain(to_x, -1, width), to_weight)
    return to_x, torch.from_numpy(to_weight).to(weight.dtype)


def _copied(weight: Tensor) -> Any:
    """A sharded learner frees and refills its weights' memory, which torch refuses once numpy has seen it."""
    return plain(weight.detach().clone())


# --- loops: plain enough for numba ---


def _norm_rows(x: Any, weight: Any, epsilon: Any, normed: Any, scale: Any) -> None:
    rows, width = x.shape
    for i in range(rows):
        total = np.float32(0)
        for j in range(width):
            total += x[i, j] * x[i, j]
        factor = np.float32(1) / np.sqrt(total / np.float32(width) + epsilon)
        scale[i] = factor
        for j in range(width):
            normed[i, j] = x[i, j] * factor * weight[j]


def _backward_rows(x: Any, weight: Any, scale: Any, gradient: Any, to_x: Any, to_weight: Any) -> None:
    rows, width = x.shape
    part = np.zeros(width, np.float32)
    for i in range(rows):
        factor, along = scale[i], np.float32(0)
        for j in range(width):
            along += gradient[i, j] * weight[j] * x[i, j]
        along *= factor * factor / np.float32(width)
        for j in range(width):
            part[j] += gradient[i, j] * x[i, j] * factor
            to_x[i, j] = (gradient[i, j] * weight[j] - x[i, j] * along) * factor
        if i % ROWS_PER_SUM == ROWS_PER_SUM - 1 or i == rows - 1:
            for j in range(width):
                to_weight[j] += part[j]
                part[j] = np.float32(0)
