"""Rows end to end, each after its own prompt: what each sees, and gradients, by the formula and by a GPU's kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.trainer.models.packing import by_the_formula, one_row
from trainer.models import packed
from trainer.models.base import PromptCache
from trainer.models.packed import PackedRows, after_prompts_packed, kernel_takes

HEADS, WIDTH = 4, 64
PROMPTS = [5, 1, 17]
ROWS = PackedRows(owner=np.array([2, 0, 0, 1, 2, 2]), lengths=np.array([33, 1, 7, 20, 1, 40]))
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grouped", [False, True])
def test_each_row_looks_at_its_prompt_and_at_what_came_before_in_it(grouped, device, monkeypatch):
    keys = HEADS // 2 if grouped else HEADS
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    if device == "cpu":
        monkeypatch.setattr(packed, "attention", by_the_formula)
    generator, total, longest = torch.Generator().manual_seed(0), int(ROWS.lengths.sum()), max(PROMPTS)

    def drawn(*shape):
        return torch.randn(*shape, WIDTH, generator=generator).to(device, dtype).requires_grad_()

    q, k, v = drawn(1, HEADS, total), drawn(1, keys, total), drawn(1, keys, total)
    prompts = drawn(len(PROMPTS), keys, longest), drawn(len(PROMPTS), keys, longest)
    cache = PromptCache((prompts,), torch.tensor(PROMPTS, device=device))
    pull = torch.randn(1, HEADS, total, WIDTH, generator=generator).to(device)
    found, wanted = after_prompts_packed(cache, ROWS)[0](q, k, v), row_by_row(q, k, v, prompts)
    near = {"rtol": 0.05, "atol": 0.05} if device == "cuda" else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(found.float(), wanted, **near)
    slopes, expected = (torch.autograd.grad((y * pull).sum(), (q, k, v, *prompts)) for y in (found.float(), wanted))
    for slope, one in zip(slopes, expected, strict=True):
        torch.testing.assert_close(slope, one, **near)


def row_by_row(q, k, v, prompts):
    """As the words say it, from each row's own part and its prompt without the padding."""
    made, groups = [], q.shape[1] // k.shape[1]
    for owner, start, length in zip(ROWS.owner, ROWS.starts, ROWS.lengths, strict=True):
        own = slice(start, start + length)
        pairs = zip(prompts, (k, v), strict=True)
        seen = (torch.cat([before[owner, :, -PROMPTS[owner] :], x[0, :, own]], dim=1).float() for before, x in pairs)
        made.append(one_row(q[0, :, own].float(), *(x.repeat_interleave(groups, 0) for x in seen)))
    return torch.cat(made).transpose(0, 1)[None]


def test_only_a_gpu_has_the_kernel():
    keys = torch.zeros(1, 2, 3, 64, dtype=torch.bfloat16)
    assert not kernel_takes(keys, keys)
