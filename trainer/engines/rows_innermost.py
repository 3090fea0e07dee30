"""Keys and values of short responses on a CPU, laid out so that one token for every row is long runs of numbers.

A single query per row makes a batched product of 1 x K matrices, at which a CPU is slow. Here rows are innermost
instead, and each product is a sum of long element-wise ones. A prompt's keys and values are kept apart from its rows',
once a query head, and meet all its rows in one matrix product.

Letters in shapes: P prompts, R most rows of a prompt, N rows, H key heads, H' query heads, K width of a head, S prompt
tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer.compiled import compiled, plain
from trainer.models.base import Attend, PromptCache
from trainer.models.one_token import Turn

from .slots import Slots

LONGEST = 256
"""Responses up to this budget are kept like this. Beside what `ByRow` was before (256 rows of the testbed's
decoder, none shared) sampling took 1.5 times less time at 24 tokens, 1.3 at 128 and 1.1 at 256."""
FIRST_ROOM = 64
"""Response tokens that room is made for at first; it doubles when they are full."""
LEAST = np.float32(-80.0)
"""Scores as far below the largest weigh nothing; further down a CPU's exponentials take twenty times as long."""


class RowsInnermost:
    """See `Cache`. Responses' keys and values are [room, H, K, N]; prompts' [H', P, S, K] and [H', P, K, S], made when
    the first token tells how many query heads there are."""

    cheap_to_split = True

    def __init__(self, prompt: PromptCache, max_tokens: int):
        self._length, self._max_tokens = 0, max_tokens
        self._padding = None if prompt.padding is None else prompt.padding.transpose(0, 1)
        self._given = list(prompt.layers)
        self._prompt: list[tuple[Tensor, Tensor] | None] = [None] * len(self._given)
        self._response: list[tuple[Tensor, Tensor] | None] = [None] * len(self._given)
        self._slots = Slots.of(prompt.lengths[:0], len(prompt.lengths))

    def attends(self) -> list[Attend]:
        """See `Cache`. These also take projections as they are (`AttendProjected`)."""
        return [_Layer(self, layer) for layer in range(len(self._given))]

    def advance(self) -> None:
        """See `Cache`."""
        self._length += 1

    def keep(self, rows: Tensor, prompts: Tensor, owners: Tensor) -> None:
        """See `Cache`."""
        fewer = len(prompts) < self._slots.prompts
        self._slots = Slots.of(owners, len(prompts))
        if fewer:
            self._padding = None if self._padding is None else self._padding.index_select(1, prompts)
            self._given = [(k.index_select(0, prompts), v.index_select(0, prompts)) for k, v in self._given]
            self._prompt = [
                None if pair is None else (pair[0].index_select(1, prompts), pair[1].index_select(1, prompts))
                for pair in self._prompt
            ]
        self._response = [
            None if pair is None else (self._moved(pair[0], rows), self._moved(pair[1], rows))
            for pair in self._response
        ]

    def attend(self, layer: int, queries: Tensor, by_prompt: Tensor) -> Tensor:
        """Queries [H', K, N], and the same as [H', P, K, R], on all so far -> [H', K, N]."""
        keys, values = self._pair(layer)
        starts = plain(self._slots.starts)
        prompt_keys, prompt_values = (x.flatten(0, 1) for x in self._prompt_pair(layer, len(queries)))
        groups, tokens, _ = prompt_keys.shape
        heads, seen, count, most = len(queries), self._length + 1, queries.shape[-1], self._slots.most
        split = groups * tokens * most
        scores = queries.new_empty(split + heads * seen * count)  # of prompts and responses, one after the other
        on_prompt, on_response = scores[:split].view(groups, tokens, most), scores[split:]
        torch.bmm(prompt_keys, by_prompt.flatten(0, 1), out=on_prompt)
        if self._padding is not None:
            on_prompt.view(heads, -1, tokens, most).masked_fill_(self._padding, float("-inf"))
        of_both = plain(on_prompt), plain(on_response, heads, seen, count)
        compiled(_scores)(plain(queries), plain(keys), starts, *of_both)
        scores.exp_()
        from_prompt, total = torch.bmm(prompt_values, on_prompt), torch.empty_like(queries)
        compiled(_mixture)(*of_both, starts, plain(from_prompt), plain(values), plain(total))
        return total

    def lay_out(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The queries of q [N, H', 1, K], scaled, in both forms that `attend` wants; k and v go into the cache."""
        queries, by_prompt = self._room_for_queries(layer, q.shape[1], k.shape[1], k)
        keys, values = self._pair(layer)
        compiled(_lay_out)(_squeezed(q), np.float32(q.shape[-1] ** -0.5), plain(queries))
        compiled(_lay_out)(_squeezed(k), np.float32(1), plain(keys[self._length]))
        compiled(_lay_out)(_squeezed(v), np.float32(1), plain(values[self._length]))
        compiled(_by_prompt)(plain(queries), plain(self._slots.starts), plain(by_prompt))
        return queries, by_prompt

    def lay_out_projected(self, layer: int, qkv: Tensor, key_heads: int, turn: Turn) -> tuple[Tensor, Tensor]:
        """The same of projections [(H' + 2 H) K, N], which are normed and turned on their way."""
        width, count = turn.cos.shape
        heads = len(qkv) // width - 2 * key_heads
        queries, by_prompt = self._room_for_queries(layer, heads, key_heads, turn.cos)
        keys, values = self._pair(layer)
        q_norm, k_norm, epsilon = turn.norms or (turn.cos[0], turn.cos[0], -1.0)
        of_heads = plain(qkv, -1, width, count)
        norms, angles = (plain(q_norm), plain(k_norm), np.float32(epsilon)), (plain(turn.cos), plain(turn.sin))
        compiled(_turn)(of_heads, *norms, *angles, np.float32(width**-0.5), plain(queries), plain(keys[self._length]))
        plain(values[self._length])[:] = of_heads[-key_heads:]
        compiled(_by_prompt)(plain(queries), plain(self._slots.starts), plain(by_prompt))
        return queries, by_prompt

    def _room_for_queries(self, layer: int, heads: int, key_heads: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Empty queries in both forms; makes room for the newest token's keys and values, too."""
        count, pair = len(self._slots.place), self._response[layer]
        room = 0 if pair is None else len(pair[0])
        width = self._given[layer][0].shape[-1]
        if pair is None or self._length == room:
            more = max(1, min(max(FIRST_ROOM, 2 * room), self._max_tokens))
            wider = (like.new_empty(more, key_heads, width, count), like.new_empty(more, key_heads, width, count))
            if pair is not None:
                wider[0][:room], wider[1][:room] = pair
            self._response[layer] = wider
        by_prompt = like.new_empty(heads, self._slots.prompts, width, self._slots.most)
        return like.new_empty(heads, width, count), by_prompt

    def _pair(self, layer: int) -> tuple[Tensor, Tensor]:
        pair = self._response[layer]
        assert pair is not None
        return pair

    def _prompt_pair(self, layer: int, heads: int) -> tuple[Tensor, Tensor]:
        """The prompts' keys [H', P, S, K] and values [H', P, K, S]."""
        pair = self._prompt[layer]
        if pair is None:
            keys, values = (x.transpose(0, 1) for x in self._given[layer])
            each = heads // len(keys)
            of_heads = keys.repeat_interleave(each, 0), values.transpose(-1, -2).repeat_interleave(each, 0)
            self._prompt[layer] = pair = (of_heads[0].contiguous(), of_heads[1].contiguous())
        return pair

    def _moved(self, block: Tensor, kept: Tensor) -> Tensor:
        moved = block.new_empty(*block.shape[:3], len(kept))
        # In two dimensions: torch is ten times slower at this in three.
        flat = moved[: self._length].view(-1, len(kept))
        torch.index_select(block[: self._length].view(-1, block.shape[3]), 1, kept, out=flat)
        return moved


class _Layer:
    """See `AttendProjected`."""

    def __init__(self, cache: RowsInnermost, layer: int):
        self._cache, self._layer = cache, layer

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        attended = self._cache.attend(self._layer, *self._cache.lay_out(self._layer, q, k, v))
        by_row = torch.empty_like(q, memory_format=torch.contiguous_format)
        compiled(_lay_back)(plain(attended), _squeezed(by_row))
        return by_row

    def projected(self, qkv: Tensor, key_heads: int, turn: Turn) -> Tensor:
        laid_out = self._cache.lay_out_projected(self._layer, qkv, key_heads, turn)
        return self._cache.attend(self._layer, *laid_out).flatten(0, 1)


def _squeezed(x: Tensor) -> Any:
    """[N, H, 1, K] as an array [N, H, K]."""
    return plain(x.contiguous(), len(x), x.shape[1], x.shape[3])


# --- loops: plain enough for numba ---


def _lay_out(x: Any, factor: Any, out: Any) -> None:
    """x [N, H, K] times `factor`, to [H, K, N]."""
    for h in range(x.shape[1]):
        for d in range(x.shape[2]):
            for n in range(len(x)):
                out[h, d, n] = x[n, h, d] * factor


def _lay_back(x: Any, out: Any) -> None:
    """x [H, K, N] to [N, H, K]."""
    for n in range(len(out)):
        for h in range(len(x)):
            for d in range(x.shape[1]):
                out[n, h, d] = x[h, d, n]


def _by_prompt(queries: Any, starts: Any, out: Any) -> None:
    """queries [H, K, N] to [H, P, K, R], 0 where a prompt has no row."""
    heads, prompts, width, most = out.shape
    for h in range(heads):
        for p in range(prompts):
            first, rows = starts[p], starts[p + 1] - starts[p]
            for d in range(width):
                for r in range(rows):
                    out[h, p, d, r] = queries[h, d, first + r]
                for r in range(rows, most):
                    out[h, p, d, r] = 0


def _turn(
    x: Any, q_norm: Any, k_norm: Any, epsilon: Any, cos: Any, sin: Any, factor: Any, queries: Any, keys: Any
) -> None:
    """The first heads of x [H' + 2 H, K, N] to queries [H', K, N] and keys [H, K, N]; epsilon below 0: no norms."""
    width, count = cos.shape
    half, heads = width // 2, len(queries)
    scale = np.empty(count, np.float32)
    for h in range(heads + len(keys)):
        own, out = x[h], queries[h] if h < heads else keys[h - heads]
        norm, whole = (q_norm, factor) if h < heads else (k_norm, np.float32(1))
        for n in range(count):
            scale[n] = whole
        if epsilon >= 0:
            for n in range(count):
                scale[n] = 0
            for d in range(width):
                for n in range(count):
                    scale[n] += own[d, n] * own[d, n]
            for n in range(count):
                scale[n] = whole / np.sqrt(scale[n] / np.float32(width) + epsilon)
        for d in range(half):
            low, high = np.float32(1), np.float32(1)
            if epsilon >= 0:
                low, high = norm[d], norm[half + d]
            for n in range(count):
                first, second = own[d, n] * scale[n] * low, own[half + d, n] * scale[n] * high
                out[d, n] = first * cos[d, n] - second * sin[d, n]
                out[half + d, n] = second * cos[d, n] + first * sin[d, n]


def _scores(queries: Any, keys: Any, starts: Any, on_prompt: Any, on_response: Any) -> None:
    """on_response[h, t] = sum over d of queries[h, d] * keys[t, own head, d]; both then as seen from the largest."""
    heads, width, count = queries.shape
    each, prompts = heads // keys.shape[1], len(starts) - 1
    highest = np.empty(count, np.float32)
    for h in range(heads):
        of_prompts, scores = on_prompt[h * prompts : (h + 1) * prompts], on_response[h]
        for n in range(count):
            highest[n] = -np.inf
        for p in range(prompts):
            most = highest[starts[p] : starts[p + 1]]
            for s in range(of_prompts.shape[1]):
                for r in range(len(most)):
                    most[r] = max(most[r], of_prompts[p, s, r])
        for t in range(len(scores)):
            score, key = scores[t], keys[t, h // each]
            for n in range(count):
                score[n] = queries[h, 0, n] * key[0, n]
            for d in range(1, width):
                for n in range(count):
                    score[n] += queries[h, d, n] * key[d, n]
            for n in range(count):
                highest[n] = max(highest[n], score[n])
        for p in range(prompts):
            most = highest[starts[p] : starts[p + 1]]
            for s in range(of_prompts.shape[1]):
                for r in range(len(most)):
                    of_prompts[p, s, r] = max(of_prompts[p, s, r] - most[r], LEAST)
        for t in range(len(scores)):
            score = scores[t]
            for n in range(count):
                score[n] = max(score[n] - highest[n], LEAST)


def _mixture(on_prompt: Any, on_response: Any, starts: Any, from_prompt: Any, values: Any, total: Any) -> None:
    """total [H', K, N] = (from_prompt + sum over t of on_response[h, t] * values[t, own head]) / sum of the weights."""
    heads, width, count = total.shape
    each, prompts = heads // values.shape[1], len(starts) - 1
    share = np.empty(count, np.float32)
    for h in range(heads):
        weights = on_response[h]
        for n in range(count):
            share[n] = 0
        for p in range(prompts):
            own = share[starts[p] : starts[p + 1]]
            for s in range(on_prompt.shape[1]):
                for r in range(len(own)):
                    own[r] += on_prompt[h * prompts + p, s, r]
        for t in range(len(weights)):
            for n in range(count):
                share[n] += weights[t, n]
        for n in range(count):
            share[n] = np.float32(1) / share[n]
        for d in range(width):
            sums = total[h, d]
            for p in range(prompts):
                own = sums[starts[p] : starts[p + 1]]
                for r in range(len(own)):
                    own[r] = from_prompt[h * prompts + p, d, r]
            for t in range(len(weights)):
                value = values[t, h // each, d]
                for n in range(count):
                    sums[n] += weights[t, n] * value[n]
            for n in range(count):
                sums[n] *= share[n]
