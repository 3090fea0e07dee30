"""Log-probabilities of chosen tokens straight from hidden states, without ever holding [tokens, vocabulary] at once.

The head's logits are made for a chunk of tokens, reduced to three numbers a token (the chosen token's log-prob, the
entropy and the log of the normaliser), and dropped; the backward pass makes them again, chunk by chunk. The peak is
one chunk of logits, whatever the number of tokens.

Letters in shapes: N tokens, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trainer.models.products import factor, halves, product, sums_wide

CHUNK_ELEMENTS = {"cpu": 1 << 24, "cuda": 1 << 27}
"""Logits held at once: 64 MiB in float32 on a CPU, 512 MiB on a GPU. Enough to keep a matrix product busy."""


def token_logprobs(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    temperature: float = 1.0,
    precision: str = "fp32",
    chunk_elements: int | None = None,
) -> tuple[Tensor, Tensor]:
    """log softmax(hidden @ weight.T / temperature) at `targets`, and that distribution's entropy; both float32 [N].

    `precision` is that of the head's product (section 3.2, A.19): `fp32`, or `bf16` with the result taken to float32.
    Softmax and sums are float32 in either case. The gradient reaches `hidden` and `weight` through the log-probs;
    the entropy is a figure to report and has none.
    """
    if precision not in ("fp32", "bf16"):
        raise ValueError(f"precision is {precision!r}; it is one of fp32, bf16")
    elements = chunk_elements or CHUNK_ELEMENTS.get(hidden_ND.device.type, CHUNK_ELEMENTS["cpu"])
    rows = max(1, elements // weight_VD.shape[0])
    dtype = torch.float32 if precision == "fp32" else torch.bfloat16
    logprobs, entropy = _TokenLogprobs.apply(hidden_ND, weight_VD, targets_N, temperature, dtype, rows)  # type: ignore[no-untyped-call]
    return logprobs, entropy


class _TokenLogprobs(torch.autograd.Function):
    """See `token_logprobs`."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        targets: Tensor,
        temperature: float,
        dtype: torch.dtype,
        rows: int,
    ) -> tuple[Tensor, Tensor]:
        head = factor(weight, hidden, dtype)
        logprobs, entropy, normalisers = (hidden.new_empty(len(targets), dtype=torch.float32) for _ in range(3))
        for at in _chunks(len(targets), rows):
            logits = _logits(hidden[at], head, temperature, dtype)
            logprobs[at], entropy[at], normalisers[at] = _reduced(logits, targets[at])
        ctx.save_for_backward(hidden, weight, targets, normalisers)
        ctx.settings = temperature, dtype, rows
        ctx.mark_non_differentiable(entropy)
        return logprobs, entropy

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, targets, normalisers = ctx.saved_tensors
        temperature, dtype, rows = ctx.settings
        need_hidden, need_weight = ctx.needs_input_grad[:2]
        head = factor(weight, hidden, dtype)
        to_hidden = torch.empty_like(hidden) if need_hidden else None
        to_weight = torch.zeros_like(weight, dtype=torch.float32) if need_weight else None
        for at in _chunks(len(targets), rows):
            logits, states = _logits(hidden[at], head, temperature, dtype), hidden[at]
            to_product = _to_product(logits, normalisers[at], targets[at], gradients[0][at] / temperature)
            if dtype == torch.float32 and sums_wide(head, states):
                to_product, states = halves(to_product), states.repeat(2, 1)
            to_product = to_product.to(head.dtype)
            if to_hidden is not None:
                to_hidden[at] = _folded(product(to_product, head, dtype), like=to_hidden[at])
            if to_weight is not None:
                _add_product(to_weight, to_product, states, dtype)
        return to_hidden, None if to_weight is None else to_weight.to(weight.dtype), None, None, None, None


def _chunks(length: int, rows: int) -> list[slice]:
    return [slice(start, min(length, start + rows)) for start in range(0, length, rows)]


def _logits(hidden: Tensor, head: Tensor, temperature: float, dtype: torch.dtype) -> Tensor:
    """Float32 logits of a chunk, divided by the temperature."""
    logits = product(hidden, head.T, dtype)
    return logits if temperature == 1.0 else logits.div_(temperature)


def _reduced(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-prob of each target, entropy and log normaliser, in few passes over the logits, which are used up. One more
    chunk of memory, no more."""
    largest = logits.amax(-1, keepdim=True)
    logits.sub_(largest)
    weights = logits.exp()
    total = weights.sum(-1)
    logarithm, chosen = total.log(), logits.gather(-1, targets[:, None])[:, 0]
    # A vanishing share of an infinitely unlikely token is nothing, not NaN.
    expected = weights.mul_(logits).nansum(-1) / total
    return chosen - logarithm, logarithm - expected, logarithm + largest[:, 0]


def _to_product(logits: Tensor, normalisers: Tensor, targets: Tensor, gradient: Tensor) -> Tensor:
    """Gradient of the chosen log-probs to the head's product, g (one-hot - softmax), in the logits' memory."""
    shares = logits.sub_(normalisers[:, None]).exp_()
    shares.scatter_add_(1, targets[:, None], shares.new_full((len(targets), 1), -1.0))
    return shares.mul_(-gradient[:, None])


def _folded(gradient: Tensor, like: Tensor) -> Tensor:
    """The gradient of these states, of which there may be two parts, one under the other."""
    rows = len(like)
    return (gradient if len(gradient) == rows else gradient[:rows] + gradient[rows:]).to(like.dtype)


def _add_product(total: Tensor, left: Tensor, right: Tensor, dtype: torch.dtype) -> None:
    """total += left.T @ right, summed in float32 over chunks."""
    if left.dtype == total.dtype:
        total.addmm_(left.T, right.to(dtype))
    else:
        total.add_(product(left.T, right, dtype))
