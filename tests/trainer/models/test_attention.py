"""Attention of responses after their prompts, against the formula written out, on the CPU and on a GPU."""

from __future__ import annotations

import pytest
import torch

from trainer.models import attention
from trainer.models.attention import after_prompts
from trainer.models.base import PromptCache

ROWS, HEADS, LENGTH, PAST, WIDTH = 6, 4, 33, 17, 64
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("most", [1 << 24, 0], ids=["one mask for all", "padding by padding"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_response_looks_at_its_prompt_and_at_what_came_before(dtype, padded, grouped, most, device, monkeypatch):
    for name in ("MASK_ELEMENTS", "MASK_ELEMENTS_OVER_A_KERNEL"):
        monkeypatch.setattr(attention, name, most)
    keys = HEADS // 2 if grouped else HEADS
    generator = torch.Generator().manual_seed(0)

    def drawn(count, size):
        return torch.randn(ROWS, count, size, WIDTH, generator=generator).to(device, dtype).requires_grad_()

    q, k, v = drawn(HEADS, LENGTH), drawn(keys, LENGTH), drawn(keys, LENGTH)
    prompt = drawn(keys, PAST), drawn(keys, PAST)
    padding = torch.tensor([0, 3, 3, 0, 9, 3], device=device)
    mask = torch.arange(PAST, device=device) >= padding[:, None] if padded else None
    cache = PromptCache((prompt,), torch.full((ROWS,), PAST, device=device), mask)
    pull = torch.randn(ROWS, HEADS, LENGTH, WIDTH, generator=generator).to(device)
    found, wanted = after_prompts(cache, LENGTH)[0](q, k, v), plainly(q, k, v, prompt, mask)
    near = {"rtol": 0.05, "atol": 0.05} if dtype == torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(found.float(), wanted, **near)
    slopes, expected = (torch.autograd.grad((y * pull).sum(), (q, k, v, *prompt)) for y in (found.float(), wanted))
    for slope, one in zip(slopes, expected, strict=True):
        torch.testing.assert_close(slope, one, **near)


def plainly(q, k, v, prompt, mask):
    """softmax(q k' / sqrt K) v in float32, as the words say it."""
    keys, values = (torch.cat(pair, 2).float() for pair in zip(prompt, (k, v), strict=True))
    groups, past, length = q.shape[1] // keys.shape[1], prompt[0].shape[2], q.shape[2]
    scores = q.float() @ keys.repeat_interleave(groups, 1).transpose(-1, -2) / q.shape[-1] ** 0.5
    seen = torch.ones(length, past + length, dtype=torch.bool, device=q.device).tril(past).expand(len(q), 1, -1, -1)
    if mask is not None:
        seen = seen.clone()
        seen[..., :past] &= mask[:, None, None]
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ values.repeat_interleave(groups, 1)


def test_masks_of_many_long_lengths_are_not_kept():
    """A mask is as large as a response is long, squared: those of a run's many lengths would fill the memory."""
    kept = attention._kept_additive
    kept.cache_clear()
    for length in (20, 400, 401):
        q = torch.zeros(1, 1, length, 8)
        cache = PromptCache(((torch.zeros(1, 1, 4, 8),) * 2,), torch.tensor([4]))
        after_prompts(cache, length)[0](q, q, q)
    assert kept.cache_info().currsize == 1
