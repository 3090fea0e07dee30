"""One token of many rows through decoder layers of the usual form, in the fewest operations.

Transformers runs a layer as some twenty modules, each of which costs more in calls than in arithmetic where a few
hundred rows of a small model make one token. Here projections that read the same input are one product, and norms
and rotations are loops over rows that lie innermost, as they do in the cache. Only layers whose every parameter is
accounted for get this, and the policy compares its first token with the model's own.

Letters in shapes: N rows, D width, H' query heads, H key heads, K width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from trainer.compiled import compiled, plain
from trainer.models.norms import is_written_out
from trainer.models.rotary import turns_in_one_pass

REQUIRED = {"input_layernorm", "post_attention_layernorm"}
REQUIRED |= {f"self_attn.{name}_proj" for name in "qkvo"} | {f"mlp.{name}_proj" for name in ("gate", "up", "down")}
ALLOWED = REQUIRED | {"self_attn.q_norm", "self_attn.k_norm"}
"""Modules of a usual layer that have parameters."""
AROUND = {"embed_tokens", "norm"}


@dataclass(frozen=True, slots=True)
class Turn:
    """What becomes of a head's projection before attention: a norm where `norms` (weights [K] of queries and keys,
    epsilon) says so, then a rotation by angles whose cos and sin are [K, N], both halves of K alike."""

    cos: Tensor
    sin: Tensor
    norms: tuple[Tensor, Tensor, float] | None


@runtime_checkable
class AttendProjected(Protocol):
    """An `Attend` that also takes projections as they are."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """See `Attend`."""

    def projected(self, qkv: Tensor, key_heads: int, turn: Turn) -> Tensor:
        """Projections [(H' + 2 H) K, N], queries first, then keys, then values -> [H' K, N]."""


class OneToken:
    """The layers of a transformers backbone that `usual` has accepted."""

    def __init__(self, backbone: Any):
        self._embed, self._norm, self._rotary = backbone.embed_tokens, backbone.norm, backbone.rotary_emb
        self._layers = [_Layer(layer) for layer in backbone.layers]

    def __call__(self, tokens: Tensor, positions: Tensor, attends: Sequence[AttendProjected]) -> Tensor:
        """Tokens [N] at positions [N] -> hidden states [N, D] after the last norm."""
        embedded: Tensor = self._embed(tokens)
        cos, sin = (angle[:, 0].t().contiguous() for angle in self._rotary(embedded[:, None], positions[:, None]))
        x = embedded.t().contiguous()
        for layer, attend in zip(self._layers, attends, strict=True):
            x = layer(x, cos, sin, attend)
        return _normed(x, self._norm).t()


def usual(backbone: nn.Module) -> OneToken | None:
    """The backbone for one token at a time; None where it has anything that is not accounted for."""
    layers = getattr(backbone, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not all(_is_usual(layer) for layer in layers):
        return None
    around = {_owner(name) for name, _ in backbone.named_parameters() if not name.startswith("layers.")}
    return OneToken(backbone) if around == AROUND and is_written_out(backbone.norm) else None  # type: ignore[arg-type]


class _Layer:
    """x += attention(norm(x)), then x += mlp(norm(x))."""

    def __init__(self, layer: Any):
        self._layer, attention, mlp = layer, layer.self_attn, layer.mlp
        self._qkv = _Merged(attention.q_proj, attention.k_proj, attention.v_proj)
        self._gate_up = _Merged(mlp.gate_proj, mlp.up_proj)
        self._key_heads = attention.k_proj.out_features // attention.head_dim

    def __call__(self, x: Tensor, cos: Tensor, sin: Tensor, attend: AttendProjected) -> Tensor:
        """[D, N] -> [D, N]"""
        attention, mlp = self._layer.self_attn, self._layer.mlp
        turn = Turn(cos, sin, self._head_norms())
        attended = attend.projected(self._qkv(_normed(x, self._layer.input_layernorm)), self._key_heads, turn)
        x = _projected(attended, attention.o_proj, onto=x)
        gate, up = self._gate_up(_normed(x, self._layer.post_attention_layernorm)).chunk(2)
        return _projected(mlp.act_fn(gate).mul_(up), mlp.down_proj, onto=x)

    def _head_norms(self) -> tuple[Tensor, Tensor, float] | None:
        attention = self._layer.self_attn
        if not hasattr(attention, "q_norm"):
            return None
        return attention.q_norm.weight, attention.k_norm.weight, attention.q_norm.variance_epsilon


class _Merged:
    """Linear layers that read the same input, as one product. The copy of their weights follows every change."""

    def __init__(self, *parts: nn.Linear):
        self._parts = parts
        self._seen: tuple[tuple[int, int], ...] = ()
        self._weight = torch.empty(0)
        self._bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """[D, N] -> [outputs of all, N]"""
        given = [value for part in self._parts for value in part.parameters()]
        seen = tuple((value.data_ptr(), value._version) for value in given)
        if seen != self._seen:
            self._weight = torch.cat(tuple(part.weight for part in self._parts))
            biases = tuple(part.bias for part in self._parts if part.bias is not None)
            self._bias, self._seen = torch.cat(biases)[:, None] if biases else None, seen
        return self._weight @ x if self._bias is None else torch.addmm(self._bias, self._weight, x)


def _projected(x: Tensor, linear: nn.Linear, onto: Tensor) -> Tensor:
    """onto [D, N] + the layer's output for x [inputs, N]"""
    added = torch.addmm(onto, linear.weight, x)
    return added if linear.bias is None else added.add_(linear.bias[:, None])


def _normed(x: Tensor, norm: Any) -> Tensor:
    """The RMS norm of each column of x [D, N]."""
    normed = torch.empty_like(x)
    compiled(_norm_columns)(plain(x), plain(norm.weight), np.float32(norm.variance_epsilon), plain(normed))
    return normed


def _is_usual(layer: nn.Module) -> bool:
    owners = {_owner(name) for name, _ in layer.named_parameters()}
    if not REQUIRED <= owners <= ALLOWED or not turns_in_one_pass(layer.self_attn):
        return False
    attention: Any = layer.self_attn
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    if hasattr(attention, "q_norm"):
        norms += [attention.q_norm, attention.k_norm]
        if len(attention.q_norm.weight) != attention.head_dim:
            return False
    same_bias = len({getattr(attention, f"{name}_proj").bias is None for name in "qkv"}) == 1
    return same_bias and all(is_written_out(norm) for norm in norms)  # type: ignore[arg-type]


def _owner(parameter: str) -> str:
    return parameter.rpartition(".")[0]


# --- a loop: plain enough for numba ---


def _norm_columns(x: Any, weight: Any, epsilon: Any, normed: Any) -> None:
    width, count = x.shape
    scale = np.zeros(count, np.float32)
    for d in range(width):
        for n in range(count):
            scale[n] += x[d, n] * x[d, n]
    for n in range(count):
        scale[n] = np.float32(1) / np.sqrt(scale[n] / np.float32(width) + epsilon)
    for d in range(width):
        for n in range(count):
            normed[d, n] = x[d, n] * scale[n] * weight[d]
