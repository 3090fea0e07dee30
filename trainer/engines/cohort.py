"""Requests that started together: what has been sampled for them, and which of their rows still go on.

Rows of a request that have made the same tokens so far are one stem: the policy runs it once, and each row draws its
own next token from what comes out. All begin as one; a stem splits where its rows draw different tokens. That gives
every row what it would get by itself. Where a cache is not cheap to split, each row has a stem of its own from its
first token on.

Stems whose rows have all ended leave holes in the cache. It is compacted when there are enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.models.base import Policy, pad_left
from trainer.types import Request, Responses

from .base import SamplingConfig
from .kv_cache import Cache, make_cache
from .sampling import NOISE_BLOCK, noise_block

COMPACT_BELOW = 0.85
"""The cache is compacted when that leaves fewer than this share of its stems."""
FIRST_ROOM = 64
"""Response places that room is made for at first; it doubles when they are full."""
NEVER = torch.iinfo(torch.long).max
_TOKENS = 1 << 32
"""More than any vocabulary has: a stem and a token are told apart in one number."""


class Cohort:
    """R rows for each of P requests (the same number for all), decoded in step.

    `rows` [N] are the original rows (request * samples + sample) that still go, rising, and `stems` [N] the place in
    the cache of what each of them stands on. Per stem: `last`, its newest token, and `owners`, the place in the cache
    of its prompt. Per original row: `tokens` and `logprobs` [rows, room], `lengths`, `finished`, `interrupted`, the
    place at which it is to be interrupted, and its budget.
    """

    def __init__(self, requests: Sequence[Request], sampling: SamplingConfig, device: torch.device):
        self._requests, self._sampling, self._device = requests, sampling, device
        self._samples = requests[0].samples
        count = len(requests) * self._samples
        room = min(sampling.max_tokens, FIRST_ROOM)
        self._tokens = torch.zeros(count, room, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(count, room, device=device)
        self._versions = np.zeros(sampling.max_tokens, dtype=np.int32)  # rows make their t-th token together
        self._lengths = self._budgets_of_requests()
        self._budgets = self._lengths.clone()
        self._last_place = int(self._budgets.max())
        self._finished = torch.zeros(count, dtype=torch.bool, device=device)
        self._interrupted = torch.zeros_like(self._finished)
        self._interrupt_at = self._interruptions()
        self._budgets_differ = self._interrupt_at is not None or int(self._budgets.min()) < self._last_place
        self._ends = torch.tensor(sampling.end_tokens, device=device)
        self._place = 0
        self._rows = torch.arange(count, device=device)
        self._owners = torch.arange(len(requests), device=device)
        self.stems = self._owners.repeat_interleave(self._samples)
        self._noise = self._noise_of_block()
        self.cache: Cache | None = None
        self.last = torch.zeros_like(self._owners)
        self.prompt_lengths = self.last

    @property
    def going(self) -> int:
        """Rows that have not ended."""
        return len(self._rows)

    @property
    def size(self) -> int:
        """Stems that are run in a step."""
        return len(self.last)

    @property
    def done(self) -> bool:
        """True when no row is going any more."""
        return self._place == self._last_place or not len(self._rows)

    @property
    def places(self) -> Tensor:
        """Response place of the newest token of each stem."""
        return torch.full_like(self.last, self._place - 1)

    def prefill(self, policy: Policy) -> Tensor:
        """Run the prompts; hidden states [P, D] from which the first tokens come."""
        tokens, mask = pad_left([request.prompt.tokens for request in self._requests])
        hidden, prompt = policy.prefill(tokens.to(self._device), None if mask is None else mask.to(self._device))
        self.cache = make_cache(prompt, self._sampling.max_tokens)
        self.prompt_lengths = prompt.lengths
        return hidden

    def noise(self) -> Tensor:
        """Noise for the next token of each row."""
        if self._place and self._place % NOISE_BLOCK == 0:
            self._noise = self._noise_of_block()
        return self._noise[self._rows, self._place % NOISE_BLOCK]

    def record(self, tokens: Tensor, logprobs: Tensor, version: int) -> None:
        """Take in the next token of each row."""
        rows = self._rows
        self._make_room()
        forced = self._force(tokens, rows)
        ended = (tokens == self._ends[0]) if len(self._ends) == 1 else torch.isin(tokens, self._ends)
        if forced is not None:
            logprobs = logprobs.masked_fill(forced, 0.0)
            ended &= ~forced
        self._tokens[rows, self._place] = tokens
        self._logprobs[rows, self._place] = logprobs
        self._versions[self._place] = version
        self._place += 1
        stopped = ended | (self._budgets[rows] == self._place) if self._budgets_differ else ended
        stopped_rows = rows[stopped]
        self._lengths[stopped_rows] = self._place
        self._finished[stopped_rows] = ended[stopped]
        self._go_on(~stopped, tokens)

    def responses(self) -> list[Responses]:
        """What came of each request."""
        longest = int(self._lengths.max())
        shape = (len(self._requests), self._samples, longest)
        lengths = self._lengths.reshape(shape[:2]).cpu().numpy()
        tokens = self._tokens[:, :longest].reshape(shape).cpu().numpy()
        logprobs = self._logprobs[:, :longest].reshape(shape).cpu().numpy()
        finished = self._finished.reshape(shape[:2]).cpu().numpy()
        interrupted = self._interrupted.reshape(shape[:2]).cpu().numpy()
        sampled = (np.arange(longest) < lengths[:, :, None]) & ~self._phrase_places(longest).reshape(shape)
        versions = np.where(sampled, self._versions[:longest], 0).astype(np.int32)
        return [
            Responses(
                key=request.key,
                tokens=tokens[i],
                logprobs=logprobs[i],
                versions=versions[i],
                lengths=lengths[i],
                finished=finished[i],
                sampled=sampled[i],
                interrupted=interrupted[i],
            )
            for i, request in enumerate(self._requests)
        ]

    def _budgets_of_requests(self) -> Tensor:
        """[rows] most tokens of each row."""
        most = self._sampling.max_tokens
        budgets = torch.tensor([min(most, request.budget or most) for request in self._requests], device=self._device)
        return budgets.repeat_interleave(self._samples)

    def _interruptions(self) -> Tensor | None:
        """[rows] place at which each row is to be interrupted; None when nobody asked for any."""
        if self._sampling.interruption is None or all(request.interrupt_at is None for request in self._requests):
            return None
        never = np.full(self._samples, NEVER)
        at = [never if request.interrupt_at is None else request.interrupt_at for request in self._requests]
        return torch.from_numpy(np.concatenate(at)).to(self._device)

    def _force(self, tokens: Tensor, rows: Tensor) -> Tensor | None:
        """Put the phrase's next token into `tokens` where a row stands in it; which rows those are."""
        interruption = self._sampling.interruption
        if interruption is None or self._interrupt_at is None:
            return None
        at = self._interrupt_at[rows]
        due = rows[at == self._place]
        if len(due):
            closed = interruption.closed(self._tokens[due, : self._place].cpu().numpy())
            due = due[torch.from_numpy(~closed).to(self._device)]
            self._interrupted[due] = True
            end = self._place + len(interruption.phrase) + interruption.answer_tokens
            self._budgets[due] = self._budgets[due].clamp(max=end)
        phrase = torch.tensor(interruption.phrase, device=self._device)
        forced = self._interrupted[rows] & (self._place - at < len(phrase))
        tokens[forced] = phrase[self._place - at[forced]]
        return forced

    def _phrase_places(self, longest: int) -> NDArray[np.bool_]:
        """[rows, longest] True on the tokens of the phrase."""
        if self._interrupt_at is None or self._sampling.interruption is None:
            return np.zeros((len(self._lengths), longest), dtype=np.bool_)
        since = np.arange(longest) - self._interrupt_at.cpu().numpy()[:, None]
        inside = (since >= 0) & (since < len(self._sampling.interruption.phrase))
        forced: NDArray[np.bool_] = inside & self._interrupted.cpu().numpy()[:, None]
        return forced

    def _go_on(self, going: Tensor, tokens: Tensor) -> None:
        """The rows that go on, after these newest tokens [N] of all, and the stems that they then stand on."""
        self._rows = self._rows[going]
        if self.cache is None or self.done:
            return
        parents, newest = self.stems[going], tokens[going]
        if self.cache.cheap_to_split:
            both, stems = torch.unique(parents * _TOKENS + newest, return_inverse=True)
            parents, newest = both // _TOKENS, both % _TOKENS
        else:
            stems = torch.arange(len(parents), device=self._device)
        split = self._place == 1 or bool((parents[1:] == parents[:-1]).any())
        if split or len(parents) < COMPACT_BELOW * self.size:
            self._move(parents)
            self.last, self.stems = newest, stems
        else:
            self.last, self.stems = self.last.index_copy(0, parents, newest), parents[stems]

    def _move(self, parents: Tensor) -> None:
        """Lay the cache out anew, for one stem after each of `parents`."""
        assert self.cache is not None
        prompts, owners = torch.unique_consecutive(self._owners[parents], return_inverse=True)
        self.cache.keep(parents, prompts, owners)
        self._owners, self.prompt_lengths = owners, self.prompt_lengths[parents]

    def _make_room(self) -> None:
        room = self._tokens.shape[1]
        if self._place == room:
            more = min(room, self._sampling.max_tokens - room)
            self._tokens = torch.nn.functional.pad(self._tokens, (0, more))
            self._logprobs = torch.nn.functional.pad(self._logprobs, (0, more))

    def _noise_of_block(self) -> Tensor:
        block = self._place // NOISE_BLOCK
        blocks = [noise_block(request, self._sampling.max_tokens, block) for request in self._requests]
        return torch.from_numpy(np.concatenate(blocks)).to(self._device)
