"""Keys and values of short responses on a CPU, laid out so that one token for every row is long runs of numbers.

A single query per row makes a batched product of 1 x K matrices, at which a CPU is slow. Here rows are innermost
instead, and each product is a sum of long element-wise ones. A prompt's keys and values are kept once for its R rows
([P, H, S, K]) and meet them in one matrix product. Query heads that share a key head get a copy of it each.

Letters in shapes: P prompts, R rows of each, H key heads, H' query heads, g of them a key head, K width of a head,
S prompt tokens, L lanes (P * H' * R, in this order).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer.compiled import compiled, plain
from trainer.models.base import Attend, PromptCache

LONGEST = 256
"""Responses up to this budget are kept like this. Beside `Rectangle` (256 rows of the testbed's decoder) sampling takes
1.4 times less time at 24 tokens, 1.2 at 128, 1.1 at 256 and 1.07 at 512."""
FIRST_ROOM = 64
"""Response tokens that room is made for at first; it doubles when they are full."""


class RowsInnermost:
    """See `Cache`. Responses' keys and values are [room, K, L], made when the first token tells how many heads are."""

    def __init__(self, prompt: PromptCache, rows: int, max_tokens: int):
        self._length, self._max_tokens = 0, max_tokens
        self._prompts, self._rows = len(prompt.lengths), rows
        self._padding = prompt.padding
        self._prompt = [(k.contiguous(), v.transpose(-1, -2).contiguous()) for k, v in prompt.layers]
        self._response: list[tuple[Tensor, Tensor] | None] = [None] * len(self._prompt)

    def attends(self) -> list[Attend]:
        """See `Cache`."""
        return [self._attend(layer) for layer in range(len(self._prompt))]

    def advance(self) -> None:
        """See `Cache`."""
        self._length += 1

    def keep(self, prompts: Tensor, rows: Tensor) -> None:
        """See `Cache`."""
        old_prompts, old_rows = self._prompts, self._rows
        self._prompts, self._rows = len(prompts), rows.shape[1]
        self._prompt = [(k.index_select(0, prompts), v.index_select(0, prompts)) for k, v in self._prompt]
        self._padding = None if self._padding is None else self._padding.index_select(0, prompts)
        for layer, pair in enumerate(self._response):
            if pair is None:
                continue
            heads = pair[0].shape[2] // (old_prompts * old_rows)
            head = torch.arange(heads, device=rows.device)
            lanes = ((prompts[:, None] * heads + head)[:, :, None] * old_rows + rows[:, None]).flatten()
            self._response[layer] = (self._moved(pair[0], lanes), self._moved(pair[1], lanes))

    def _moved(self, block: Tensor, lanes: Tensor) -> Tensor:
        moved = block.new_empty(*block.shape[:2], len(lanes))
        # In two dimensions: torch is ten times slower at this in three.
        flat = moved[: self._length].view(-1, len(lanes))
        torch.index_select(block[: self._length].view(-1, block.shape[2]), 1, lanes, out=flat)
        return moved

    def _attend(self, layer: int) -> Attend:
        prompt_keys, prompt_values = self._prompt[layer]
        seen, padding = self._length + 1, self._padding

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            heads, key_heads, width = q.shape[1], k.shape[1], q.shape[-1]
            lanes = self._prompts * heads * self._rows
            shared = (self._prompts, key_heads, -1)  # P, H, and all queries that share a prompt's key head
            keys, values = self._write(layer, k, v, heads)
            queries = self._laid_out(q, q.new_empty(width, lanes), heads, factor=width**-0.5)
            on_prompt = prompt_keys @ queries.view(width, *shared).permute(1, 2, 0, 3)  # [P, H, S, g * R]
            if padding is not None:
                on_prompt = on_prompt.masked_fill(padding, float("-inf"))
            on_response = q.new_empty(seen, lanes)
            compiled(_scores)(plain(queries), plain(keys), plain(on_response))
            by_token = on_response.view(seen, *shared).permute(1, 2, 0, 3)  # [P, H, seen, g * R]
            weights = torch.cat([on_prompt, by_token], dim=2).softmax(2)
            from_prompt = prompt_values @ weights[:, :, : on_prompt.shape[2]]  # [P, H, K, g * R]
            late = weights[:, :, on_prompt.shape[2] :].permute(2, 0, 1, 3).reshape(seen, lanes)
            from_response, total = torch.empty_like(queries), q.new_empty(len(q), heads, 1, width)
            compiled(_mixture)(plain(late), plain(values), plain(from_response))
            by_head = (self._prompts, key_heads, width, heads // key_heads, self._rows)
            compiled(_sum_by_row)(plain(from_prompt, *by_head), plain(from_response), plain(total, -1, heads, width))
            return total

        return attend

    def _write(self, layer: int, k: Tensor, v: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        """The layer's keys and values [room, K, L], with those of the newest token in."""
        pair = self._response[layer]
        room = 0 if pair is None else len(pair[0])
        if pair is None or self._length == room:
            more = max(1, min(max(FIRST_ROOM, 2 * room), self._max_tokens))
            shape = (more, k.shape[-1], self._prompts * heads * self._rows)
            wider = (k.new_empty(shape), v.new_empty(shape))
            if pair is not None:
                wider[0][:room], wider[1][:room] = pair
            self._response[layer] = pair = wider
        for x, block in zip((k, v), pair, strict=True):
            self._laid_out(x, block[self._length], heads)
        return pair

    def _laid_out(self, x: Tensor, lanes: Tensor, heads: int, factor: float = 1.0) -> Tensor:
        """`lanes` [K, L], filled from x [P * R, H, 1, K] times `factor`: a key head once a query head of it."""
        rectangle = (self._prompts, self._rows, x.shape[1], x.shape[-1])
        out = plain(lanes, x.shape[-1], self._prompts, heads, self._rows)
        compiled(_lay_out)(plain(x.contiguous(), *rectangle), np.float32(factor), out)
        return lanes


# --- loops: plain enough for numba ---


def _lay_out(x: Any, factor: Any, lanes: Any) -> None:
    """x [P, R, H, K] to lanes [K, P, H', R]."""
    prompts, rows, key_heads, width = x.shape
    heads = lanes.shape[2]
    each = heads // key_heads
    for p in range(prompts):
        for h in range(heads):
            own = x[p, :, h // each]
            for d in range(width):
                out = lanes[d, p, h]
                for r in range(rows):
                    out[r] = own[r, d] * factor


def _scores(queries: Any, keys: Any, scores: Any) -> None:
    """scores[t] = sum over d of queries[d] * keys[t, d], for each t of `scores`."""
    width, lanes = queries.shape
    for t in range(len(scores)):
        score = scores[t]
        query, key = queries[0], keys[t, 0]
        for lane in range(lanes):
            score[lane] = query[lane] * key[lane]
        for d in range(1, width):
            query, key = queries[d], keys[t, d]
            for lane in range(lanes):
                score[lane] += query[lane] * key[lane]


def _mixture(weights: Any, values: Any, mixed: Any) -> None:
    """mixed[d] = sum over t of weights[t] * values[t, d]."""
    width, lanes = mixed.shape
    for d in range(width):
        total = mixed[d]
        weight, value = weights[0], values[0, d]
        for lane in range(lanes):
            total[lane] = weight[lane] * value[lane]
        for t in range(1, len(weights)):
            weight, value = weights[t], values[t, d]
            for lane in range(lanes):
                total[lane] += weight[lane] * value[lane]


def _sum_by_row(from_prompt: Any, from_response: Any, total: Any) -> None:
    """from_prompt [P, H, K, g, R] + from_response [K, L], as total [P * R, H', K]."""
    prompts, key_heads, width, each, rows = from_prompt.shape
    for p in range(prompts):
        for h in range(key_heads * each):
            out, first = total[p * rows : (p + 1) * rows, h], (p * key_heads * each + h) * rows
            for d in range(width):
                early, late = from_prompt[p, h // each, d, h % each], from_response[d, first : first + rows]
                for r in range(rows):
                    out[r, d] = early[r] + late[r]
