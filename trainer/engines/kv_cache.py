"""Keys and values of a cohort, laid out for decoding one token at a time on a CPU.

Rows lie in a rectangle, R rows for each of P prompts. A prompt's keys and values are kept once for all its rows
([P, H, S, K]) and meet them in one matrix product. A response's are kept with the rows innermost ([T, K, P, H, R]):
a product with a single query per row is then a sum of long element-wise products, several times faster here than
a batched product of 1 x K matrices.

Compaction shrinks both sides of the rectangle: prompts whose rows have all ended go, and R falls to the most rows
that any prompt still has going. Rows that only fill the rectangle are run and ignored.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.models.base import Attend


class KeyValueCache:
    """Room for `max_tokens` response tokens behind prompts whose keys and values [P, H, S, K] are given by layer."""

    def __init__(self, prompt_cache: Sequence[tuple[Tensor, Tensor]], rows: int, max_tokens: int):
        prompts, heads, _, width = prompt_cache[0][0].shape
        self.length = 0
        self._rectangle = (prompts, heads, rows)
        self._prompt = [(keys.contiguous(), values.transpose(-1, -2).contiguous()) for keys, values in prompt_cache]
        room = (max_tokens, width, prompts * heads * rows)
        like = prompt_cache[0][0]
        self._response = [(like.new_empty(room), like.new_empty(room)) for _ in prompt_cache]

    def attends(self) -> list[Attend]:
        """One way of attending per layer: write the new token's keys and values, then look at all so far."""
        return [self._attend(layer) for layer in range(len(self._prompt))]

    def advance(self) -> None:
        """The token that was just run is now part of the past."""
        self.length += 1

    def keep(self, prompts: Tensor, rows: Tensor) -> None:
        """Keep these prompts [P'] and, of each, these of its rows [P', R'], all by index into what is here now."""
        _, heads, old_rows = self._rectangle
        self._rectangle = (len(prompts), heads, rows.shape[1])
        head = torch.arange(heads, device=rows.device)
        places = ((prompts[:, None] * heads + head)[:, :, None] * old_rows + rows[:, None]).flatten()
        self._prompt = [(k.index_select(0, prompts), v.index_select(0, prompts)) for k, v in self._prompt]
        self._response = [(self._moved(k, places), self._moved(v, places)) for k, v in self._response]

    def _moved(self, block: Tensor, places: Tensor) -> Tensor:
        room = block.new_empty(*block.shape[:2], len(places))
        torch.index_select(block[: self.length], 2, places, out=room[: self.length])
        return room

    def _attend(self, layer: int) -> Attend:
        prompt_keys, prompt_values = self._prompt[layer]
        keys, values = self._response[layer]
        place, rectangle = self.length, self._rectangle

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k, v = (_rows_last(x, rectangle) for x in (q * q.shape[-1] ** -0.5, k, v))  # each [K, P, H, R]
            keys[place], values[place] = k.flatten(1), v.flatten(1)
            on_prompt = prompt_keys @ q.permute(1, 2, 0, 3)  # [P, H, S, R]
            on_response = _accumulate(q.flatten(1), keys[: place + 1].unbind(1))  # [t, P * H * R]
            on_response = on_response.view(-1, *rectangle).permute(1, 2, 0, 3)
            weights = torch.cat([on_prompt, on_response], dim=2).softmax(2)
            from_prompt = prompt_values @ weights[:, :, : on_prompt.shape[2]]  # [P, H, K, R]
            late = weights[:, :, on_prompt.shape[2] :].permute(2, 0, 1, 3).flatten(1)
            from_response = _accumulate(late, values[: place + 1].unbind(0))  # [K, P * H * R]
            total = from_prompt.permute(0, 3, 1, 2) + from_response.view(-1, *rectangle).permute(1, 3, 2, 0)
            result: Tensor = total.flatten(0, 1)[:, :, None]
            return result

        return attend


def _rows_last(x: Tensor, rectangle: tuple[int, int, int]) -> Tensor:
    """[P * R, H, 1, K] -> [K, P, H, R], contiguous."""
    prompts, heads, rows = rectangle
    return x.view(prompts, rows, heads, -1).permute(3, 0, 2, 1).contiguous()


def _accumulate(factors: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Sum over i of factors[i] * blocks[i]."""
    total = factors[0] * blocks[0]
    for factor, block in zip(factors[1:].unbind(0), blocks[1:], strict=True):
        total.addcmul_(factor, block)
    return total
