"""Attention in rows of unlike length by its formula, for devices that have no kernel for it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trainer.learner import learner
from trainer.models import packed
from trainer.models.packed import Edges


def pack_anywhere(patched: pytest.MonkeyPatch) -> None:
    """Let learners run rows end to end on whatever device they are on."""
    patched.setattr(learner, "kernel_takes", lambda keys, values: True)
    patched.setattr(packed, "attention", by_the_formula)


def by_the_formula(q: Tensor, k: Tensor, v: Tensor, queries: Edges, keys: Edges) -> Tensor:
    """See `packed.attention`: softmax(q k' / sqrt K) v of one row after another, in float32."""
    groups = q.shape[1] // k.shape[1]
    rows = zip(queries.at.diff().tolist(), keys.at.diff().tolist(), strict=True)
    lengths, seen = zip(*rows, strict=True)
    assert (max(lengths), max(seen)) == (queries.longest, keys.longest)
    parts = (q.split(lengths), *(x.repeat_interleave(groups, 1).split(seen) for x in (k, v)))
    return torch.cat([one_row(*(x.float().transpose(0, 1) for x in row)) for row in zip(*parts, strict=True)]).to(q)


def one_row(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """[T, H, K] of queries [H, T, K], the last places of keys and values [H, S + T, K]."""
    length, total = q.shape[1], k.shape[1]
    visible = torch.ones(length, total, dtype=torch.bool, device=q.device).tril(total - length)
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~visible, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(0, 1)
