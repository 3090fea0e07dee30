"""Keys and values of a cohort, laid out for decoding one token at a time.

Rows lie in a rectangle, R rows for each of P prompts. A prompt's keys and values are kept once for all its rows
([P, H, S, K]) and meet them in one matrix product. Two layouts of the responses':

`RowsInnermost` ([T, K, P, H', R]) is for short responses on a CPU: a product with a single query per row is then a
sum of long element-wise products, several times faster there than a batched product of 1 x K matrices.
`Rectangle` ([P, H, R, T, K]) is for all else.

Compaction shrinks both sides of the rectangle: prompts whose rows have all ended go, and R falls to the most rows
that any prompt still has going. Rows that only fill the rectangle are run and ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from trainer.models.base import Attend, PromptCache

FIRST_ROOM = 64
"""Response tokens that room is made for at first; it doubles when they are full."""
LONGEST_ROWS_INNERMOST = 256
"""Responses up to this budget are kept rows innermost on a CPU: its work a token grows with Python's loop over T."""


class Cache(Protocol):
    """What decoding needs of a cache."""

    def attends(self) -> list[Attend]:
        """One way of attending per layer: write the new token's keys and values, then look at all so far."""

    def advance(self) -> None:
        """The token that was just run is now part of the past."""

    def keep(self, prompts: Tensor, rows: Tensor) -> None:
        """Keep these prompts [P'] and, of each, these of its rows [P', R'], all by index into what is here now."""


def make_cache(prompt: PromptCache, rows: int, max_tokens: int) -> Cache:
    """A cache for `rows` responses a prompt, in the layout that suits the device and the budget."""
    on_cpu = prompt.lengths.device.type == "cpu"
    layout = RowsInnermost if on_cpu and max_tokens <= LONGEST_ROWS_INNERMOST else Rectangle
    return layout(prompt, rows, max_tokens)


class RowsInnermost:
    """See `Cache`. Query heads that share a key head get a copy of it each, so that products stay long.

    Responses' keys and values are [room, K, P * H' * R], made when the first token tells how many query heads are.
    """

    def __init__(self, prompt: PromptCache, rows: int, max_tokens: int):
        self._length = 0
        self._max_tokens = max_tokens
        self._prompts, self._rows = len(prompt.lengths), rows
        self._padding = _padding(prompt)
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
            places = ((prompts[:, None] * heads + head)[:, :, None] * old_rows + rows[:, None]).flatten()
            self._response[layer] = (self._moved(pair[0], places), self._moved(pair[1], places))

    def _moved(self, block: Tensor, places: Tensor) -> Tensor:
        moved = block.new_empty(*block.shape[:2], len(places))
        torch.index_select(block[: self._length], 2, places, out=moved[: self._length])
        return moved

    def _attend(self, layer: int) -> Attend:
        prompt_keys, prompt_values = self._prompt[layer]
        place, padding = self._length, self._padding

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            heads, key_heads = q.shape[1], k.shape[1]
            rectangle = (self._prompts, heads, self._rows)
            shared = (self._prompts, key_heads, -1)  # P, H, and all queries that share a prompt's key head
            q = self._rows_last(q * q.shape[-1] ** -0.5)  # [K, P, H', R]
            keys, values = self._write(layer, k, v, heads)
            on_prompt = prompt_keys @ q.view(q.shape[0], *shared).permute(1, 2, 0, 3)  # [P, H, S, g * R]
            if padding is not None:
                on_prompt = on_prompt.masked_fill(padding, float("-inf"))
            on_response = _accumulate(q.flatten(1), keys[: place + 1].unbind(1))  # [t, P * H' * R]
            on_response = on_response.view(-1, *shared[:2], on_prompt.shape[-1]).permute(1, 2, 0, 3)
            weights = torch.cat([on_prompt, on_response], dim=2).softmax(2)
            from_prompt = prompt_values @ weights[:, :, : on_prompt.shape[2]]  # [P, H, K, g * R]
            late = weights[:, :, on_prompt.shape[2] :].permute(2, 0, 1, 3).flatten(1)
            from_response = _accumulate(late, values[: place + 1].unbind(0))  # [K, P * H' * R]
            from_prompt = from_prompt.permute(2, 0, 1, 3).reshape(-1, *rectangle)  # [K, P, H', R]
            total = (from_prompt + from_response.view(-1, *rectangle)).permute(1, 3, 2, 0)
            result: Tensor = total.flatten(0, 1)[:, :, None]
            return result

        return attend

    def _write(self, layer: int, k: Tensor, v: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        """The layer's keys and values, with those of the newest token in."""
        k, v = (self._rows_last(_shared_by(x, heads)).flatten(1) for x in (k, v))
        pair = self._response[layer]
        room = 0 if pair is None else len(pair[0])
        if pair is None or self._length == room:
            more = max(1, min(max(FIRST_ROOM, 2 * room), self._max_tokens))
            wider = (k.new_empty(more, *k.shape), v.new_empty(more, *v.shape))
            if pair is not None:
                wider[0][:room], wider[1][:room] = pair
            self._response[layer] = pair = wider
        pair[0][self._length], pair[1][self._length] = k, v
        return pair

    def _rows_last(self, x: Tensor) -> Tensor:
        """[P * R, H, 1, K] -> [K, P, H, R], contiguous."""
        return x.view(self._prompts, self._rows, x.shape[1], -1).permute(3, 0, 2, 1).contiguous()


class Rectangle:
    """See `Cache`. Responses' keys and values are [P, R, H, room, K], the prompt's are repeated nowhere."""

    def __init__(self, prompt: PromptCache, rows: int, max_tokens: int):
        self._length = 0
        self._max_tokens = max_tokens
        self._prompts, self._rows = len(prompt.lengths), rows
        self._padding = _padding(prompt)
        self._prompt = list(prompt.layers)
        self._response: list[tuple[Tensor, Tensor] | None] = [None] * len(self._prompt)

    def attends(self) -> list[Attend]:
        """See `Cache`."""
        return [self._attend(layer) for layer in range(len(self._prompt))]

    def advance(self) -> None:
        """See `Cache`."""
        self._length += 1

    def keep(self, prompts: Tensor, rows: Tensor) -> None:
        """See `Cache`."""
        self._prompts, self._rows = len(prompts), rows.shape[1]
        self._prompt = [(k.index_select(0, prompts), v.index_select(0, prompts)) for k, v in self._prompt]
        self._padding = None if self._padding is None else self._padding.index_select(0, prompts)
        for layer, pair in enumerate(self._response):
            if pair is not None:
                self._response[layer] = (pair[0][prompts[:, None], rows], pair[1][prompts[:, None], rows])

    def _attend(self, layer: int) -> Attend:
        prompt_keys, prompt_values = self._prompt[layer]

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            heads, key_heads, width = q.shape[1], k.shape[1], q.shape[-1]
            keys, values = (x[:, :, :, : self._length + 1] for x in self._write(layer, k, v))
            q = (q * width**-0.5).view(self._prompts, self._rows, key_heads, -1, width)  # [P, R, H, g, K]
            by_prompt = q.transpose(1, 2).flatten(2, 3)  # [P, H, R * g, K]
            on_prompt = by_prompt @ prompt_keys.transpose(-1, -2)  # [P, H, R * g, S]
            if self._padding is not None:
                on_prompt = on_prompt.masked_fill(self._padding.transpose(-1, -2), float("-inf"))
            on_response = q @ keys.transpose(-1, -2)  # [P, R, H, g, t]
            by_row = on_response.transpose(1, 2).flatten(2, 3)
            scores = torch.cat([on_prompt, by_row], dim=-1)
            weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
            on_prompt, by_row = torch.split(weights, [on_prompt.shape[-1], by_row.shape[-1]], dim=-1)
            from_prompt = self._by_row(on_prompt @ prompt_values)
            from_response = self._by_row(by_row) @ values
            result: Tensor = (from_prompt + from_response).reshape(-1, heads, 1, width)
            return result

        return attend

    def _by_row(self, x: Tensor) -> Tensor:
        """[P, H, R * g, Z] -> [P, R, H, g, Z]."""
        return x.view(*x.shape[:2], self._rows, -1, x.shape[-1]).transpose(1, 2)

    def _write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's keys and values, with those of the newest token in."""
        k, v = (x.view(self._prompts, self._rows, *x.shape[1:]) for x in (k, v))
        pair = self._response[layer]
        room = 0 if pair is None else pair[0].shape[3]
        if pair is None or self._length == room:
            more = max(1, min(max(FIRST_ROOM, 2 * room), self._max_tokens))
            shape = (*k.shape[:3], more, k.shape[-1])
            wider = (k.new_empty(shape), v.new_empty(shape))
            if pair is not None:
                wider[0][:, :, :, :room], wider[1][:, :, :, :room] = pair
            self._response[layer] = pair = wider
        pair[0][:, :, :, self._length], pair[1][:, :, :, self._length] = k[:, :, :, 0], v[:, :, :, 0]
        return pair


def _padding(prompt: PromptCache) -> Tensor | None:
    """[P, 1, S, 1]: True on padding."""
    return None if prompt.mask is None else ~prompt.mask[:, None, :, None]


def _shared_by(x: Tensor, heads: int) -> Tensor:
    """[N, H, T, K] -> [N, heads, T, K]: every key head once for each query head that looks at it."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], dim=1)


def _accumulate(factors: Tensor, blocks: Sequence[Tensor]) -> Tensor:
    """Sum over i of factors[i] * blocks[i]."""
    total = factors[0] * blocks[0]
    for factor, block in zip(factors[1:].unbind(0), blocks[1:], strict=True):
        total.addcmul_(factor, block)
    return total
