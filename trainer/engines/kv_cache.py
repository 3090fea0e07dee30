"""Keys and values of a cohort, laid out for decoding one token at a time.

Rows lie in a rectangle, R rows for each of P prompts. A prompt's keys and values are kept once for all its rows
([P, H, S, K]) and meet them in one matrix product. Two layouts of the responses': `RowsInnermost` for short responses
where compiled loops serve, `Rectangle` ([P, H, R, T, K]) for all else.

Compaction shrinks both sides of the rectangle: prompts whose rows have all ended go, and R falls to the most rows
that any prompt still has going. Rows that only fill the rectangle are run and ignored.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from trainer.compiled import serve
from trainer.models.base import Attend, PromptCache

from .rows_innermost import FIRST_ROOM, LONGEST, RowsInnermost


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
    in_loops = max_tokens <= LONGEST and serve(prompt.layers[0][0])
    layout = RowsInnermost if in_loops else Rectangle
    return layout(prompt, rows, max_tokens)


class Rectangle:
    """See `Cache`. Responses' keys and values are [P, R, H, room, K], the prompt's are repeated nowhere."""

    def __init__(self, prompt: PromptCache, rows: int, max_tokens: int):
        self._length = 0
        self._max_tokens = max_tokens
        self._prompts, self._rows = len(prompt.lengths), rows
        self._padding = prompt.padding
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
