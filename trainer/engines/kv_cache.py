"""Keys and values of a cohort, laid out for decoding one token at a time.

The rows of a prompt lie beside each other, each prompt with as many as it has. A prompt's keys and values are kept
once for all of them ([P, H, S, K]) and meet them in one matrix product, for which its rows are padded to the most that
any prompt has. Two layouts of the rows' own: `RowsInnermost` for short responses where compiled loops serve, `ByRow`
([N, H, T, K]) for all else.

Letters in shapes: P prompts, R most rows of a prompt, N rows, H key heads, H' query heads (g to a key head), K width
of a head, S prompt tokens, T response tokens.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from trainer.compiled import serve
from trainer.models.base import Attend, PromptCache

from .rows_innermost import FIRST_ROOM, LONGEST, RowsInnermost
from .slots import Slots


class Cache(Protocol):
    """What decoding needs of a cache. It begins without rows; the first `keep` makes them."""

    cheap_to_split: bool
    """Whether rows may be moved at every token, as they are where what rows have in common is kept once."""

    def attends(self) -> list[Attend]:
        """One way of attending per layer: write the new token's keys and values, then look at all so far."""

    def advance(self) -> None:
        """The token that was just run is now part of the past."""

    def keep(self, rows: Tensor, prompts: Tensor, owners: Tensor) -> None:
        """Keep these rows [N] and prompts [P], by index into what is here now, a row as often as it is named.

        `owners` [N] is the place in `prompts` of each row's prompt, rising. Before the first token there is nothing
        in a row to keep.
        """


def make_cache(prompt: PromptCache, max_tokens: int) -> Cache:
    """A cache for responses to these prompts, in the layout that suits the device and the budget."""
    in_loops = max_tokens <= LONGEST and serve(prompt.layers[0][0])
    layout = RowsInnermost if in_loops else ByRow
    return layout(prompt, max_tokens)


class ByRow:
    """See `Cache`. Responses' keys and values are [N, H, room, K], the prompts' are repeated nowhere."""

    cheap_to_split = False

    def __init__(self, prompt: PromptCache, max_tokens: int):
        self._length = 0
        self._max_tokens = max_tokens
        self._padding = prompt.padding
        self._prompt = list(prompt.layers)
        self._response: list[tuple[Tensor, Tensor] | None] = [None] * len(self._prompt)
        self._slots = Slots.of(prompt.lengths[:0], len(prompt.lengths))

    def attends(self) -> list[Attend]:
        """See `Cache`."""
        return [self._attend(layer) for layer in range(len(self._prompt))]

    def advance(self) -> None:
        """See `Cache`."""
        self._length += 1

    def keep(self, rows: Tensor, prompts: Tensor, owners: Tensor) -> None:
        """See `Cache`."""
        if len(prompts) < self._slots.prompts:
            self._prompt = [(k.index_select(0, prompts), v.index_select(0, prompts)) for k, v in self._prompt]
            self._padding = None if self._padding is None else self._padding.index_select(0, prompts)
        self._slots = Slots.of(owners, len(prompts))
        for layer, pair in enumerate(self._response):
            if pair is not None:
                self._response[layer] = (pair[0].index_select(0, rows), pair[1].index_select(0, rows))

    def _attend(self, layer: int) -> Attend:
        prompt_keys, prompt_values = self._prompt[layer]
        slots = self._slots

        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            count, heads, _, width = q.shape
            keys, values = (x[:, :, : self._length + 1] for x in self._write(layer, k, v))
            q = (q * width**-0.5).view(count, k.shape[1], -1, width)  # [N, H, g, K]
            by_prompt = slots.spread(q).transpose(1, 2).flatten(2, 3)  # [P, H, R * g, K]
            on_prompt = by_prompt @ prompt_keys.transpose(-1, -2)  # [P, H, R * g, S]
            if self._padding is not None:
                on_prompt = on_prompt.masked_fill(self._padding.transpose(-1, -2), float("-inf"))
            scores = torch.cat([self._by_row(on_prompt), q @ keys.transpose(-1, -2)], dim=-1)  # [N, H, g, S + t]
            weights = scores.softmax(-1, dtype=torch.float32).to(q.dtype)
            of_prompt, of_row = torch.split(weights, [on_prompt.shape[-1], keys.shape[2]], dim=-1)
            from_prompt = slots.spread(of_prompt).transpose(1, 2).flatten(2, 3) @ prompt_values
            result: Tensor = (self._by_row(from_prompt) + of_row @ values).reshape(count, heads, 1, width)
            return result

        return attend

    def _by_row(self, x: Tensor) -> Tensor:
        """[P, H, R * g, Z] -> [N, H, g, Z]."""
        return self._slots.gather(x.view(*x.shape[:2], self._slots.most, -1, x.shape[-1]).transpose(1, 2))

    def _write(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The layer's keys and values, with those of the newest token in."""
        pair = self._response[layer]
        room = 0 if pair is None else pair[0].shape[2]
        if pair is None or self._length == room:
            more = max(1, min(max(FIRST_ROOM, 2 * room), self._max_tokens))
            shape = (*k.shape[:2], more, k.shape[-1])
            wider = (k.new_empty(shape), v.new_empty(shape))
            if pair is not None:
                wider[0][:, :, :room], wider[1][:, :, :room] = pair
            self._response[layer] = pair = wider
        pair[0][:, :, self._length], pair[1][:, :, self._length] = k[:, :, 0], v[:, :, 0]
        return pair
