"""Rows of unlike many a prompt, in a rectangle and back."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.engines.slots import Slots

counts = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


@given(counts)
def test_what_is_spread_over_the_rectangle_is_gathered_again(counts):
    owners = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    slots, rows = Slots.of(owners, len(counts)), torch.arange(1, len(owners) + 1)[:, None]
    spread = slots.spread(rows)
    assert spread.shape == (len(counts), max(counts), 1)
    assert torch.equal(slots.gather(spread), rows)
    for prompt, count in enumerate(counts):
        own = rows[slots.starts[prompt] : slots.starts[prompt + 1], 0].tolist()
        assert spread[prompt, :, 0].tolist() == own + [0] * (max(counts) - count)
        assert len(own) == count


def test_a_prompt_without_rows_or_none_at_all_is_an_empty_rectangle():
    slots = Slots.of(torch.zeros(0, dtype=torch.long), 3)
    assert (slots.prompts, slots.most, slots.full) == (3, 0, True)
