"""Tokens from log-probs and noise that belongs to a request, not to a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainer.types import Request

NOISE_BLOCK = 256
"""Response places whose noise is drawn at once: a long budget is not paid for before it is used."""


def sample(logprobs: Tensor, noise: Tensor, stems: Tensor | None = None) -> Tensor:
    """Inverse-transform sampling: log-probs [M, V] and uniform noise [N] in [0, 1) -> tokens [N].

    `stems` [N] says which of the M distributions each is drawn from; without it N is M. The noise is a request's own,
    so a row's tokens do not depend on what else is in the batch.
    """
    cumulative = logprobs.exp().cumsum(-1)
    if stems is not None:
        cumulative = cumulative.index_select(0, stems)
    below = cumulative <= noise[:, None] * cumulative[:, -1:]
    return below.sum(-1).clamp(max=logprobs.shape[-1] - 1)


def noise_block(request: Request, max_tokens: int, block: int) -> NDArray[np.float32]:
    """Uniform noise [samples, places] of the request's places from `block * NOISE_BLOCK` on."""
    places = min(max_tokens, NOISE_BLOCK)
    seed = request.seed if block == 0 else (*request.seed, block)
    return np.random.default_rng(seed).random((request.samples, places), dtype=np.float32)
