"""The torch engine: continuous batching over cohorts, a key-value cache, weights swapped between steps.

Requests wait in a queue. Whenever enough of the `max_rows` are free, those at the front become a cohort: their
prompts run once, and from then on every `step` makes one token for all cohorts together. Each cohort keeps its own
cache, so that one that joins late moves nobody else's keys and values.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from trainer.errors import NotFinite
from trainer.models.base import Attend, Policy
from trainer.types import Request, Responses

from .base import SamplingConfig
from .cohort import Cohort
from .sampling import sample

MAX_ROWS = 1024
"""Rows decoded together at most. Not measured: two waves of the testbed's 512 rows."""
JOIN_ABOVE = 0.5
"""Share of the rows that must be free before waiting requests join running ones: a cohort has a fixed cost a step.
The share itself is not measured."""


class TorchEngine:
    """See `Engine`. `model` belongs to the engine from here on: `load_weights` writes into it."""

    def __init__(
        self, model: Policy, sampling: SamplingConfig, version: int = 0, device: str = "cpu", max_rows: int = MAX_ROWS
    ):
        self._policy = model.to(device).eval()
        self._sampling = sampling
        self._version = version
        self._device = torch.device(device)
        self._max_rows = max_rows
        self._waiting: deque[Request] = deque()
        self._cohorts: list[Cohort] = []

    @property
    def version(self) -> int:
        """See `Engine`."""
        return self._version

    @property
    def busy(self) -> bool:
        """See `Engine`."""
        return bool(self._cohorts or self._waiting)

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> None:
        """See `Engine`. Values are copied; all of the policy's tensors must be there."""
        self._policy.load_tensors(tensors)
        self._version = version

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Engine`."""
        self._waiting.extend(requests)

    @torch.inference_mode()
    def step(self) -> list[Responses]:
        """See `Engine`."""
        if not self.busy:
            return []
        cohorts = self._cohorts + self._joining()
        hidden = [self._decode(self._cohorts)] if self._cohorts else []
        hidden += [cohort.prefill(self._policy) for cohort in cohorts[len(self._cohorts) :]]
        noise = torch.cat([cohort.noise() for cohort in cohorts])
        tokens, chosen = self._sampled(torch.cat(hidden), noise, _stems(cohorts))
        sizes = [cohort.going for cohort in cohorts]
        for cohort, made, said in zip(cohorts, torch.split(tokens, sizes), torch.split(chosen, sizes), strict=True):
            cohort.record(made, said, self._version)
        self._cohorts = [cohort for cohort in cohorts if not cohort.done]
        return [responses for cohort in cohorts if cohort.done for responses in cohort.responses()]

    def tokens_made(self) -> None:
        """See `Engine`."""

    def cpu_seconds(self) -> float:
        """See `Engine`. None: it works in the caller's thread."""
        return 0.0

    def close(self) -> None:
        """See `Engine`."""
        self._cohorts.clear()
        self._waiting.clear()

    def _sampled(self, hidden: Tensor, noise: Tensor, stems: Tensor) -> tuple[Tensor, Tensor]:
        """A token for every row and its log-prob, from the hidden states of the rows' stems."""
        logits = self._policy.logits(hidden, self._sampling.logits_precision)
        logprobs = (logits / self._sampling.temperature).log_softmax(-1)
        tokens = sample(logprobs, noise, stems)
        chosen = logprobs[stems, tokens]
        if not bool(chosen.isfinite().all()):
            raise NotFinite(f"the policy at weight version {self._version} gives log-probabilities that are not finite")
        return tokens, chosen

    def _decode(self, cohorts: Sequence[Cohort]) -> Tensor:
        """Hidden states of the newest token of every stem of these cohorts."""
        tokens, places, lengths = (
            torch.cat(parts)
            for parts in zip(*((cohort.last, cohort.places, cohort.prompt_lengths) for cohort in cohorts), strict=True)
        )
        hidden = self._policy.decode(tokens, places, lengths, _attends(cohorts))
        for cohort in cohorts:
            assert cohort.cache is not None
            cohort.cache.advance()
        return hidden

    def _joining(self) -> list[Cohort]:
        """Waiting requests for which there is room now, as cohorts of like many samples a request."""
        free = self._max_rows - sum(cohort.going for cohort in self._cohorts)
        if not self._waiting or (self._cohorts and free < JOIN_ABOVE * self._max_rows):
            return []
        joining: list[list[Request]] = []
        alone = not self._cohorts
        while self._waiting and (alone or self._waiting[0].samples <= free):
            request, alone = self._waiting.popleft(), False
            if not joining or joining[-1][0].samples != request.samples:
                joining.append([])
            joining[-1].append(request)
            free -= request.samples
        return [Cohort(requests, self._sampling, self._device) for requests in joining]


def _stems(cohorts: Sequence[Cohort]) -> Tensor:
    """The stem of every row, counted over all cohorts."""
    firsts = accumulate((cohort.size for cohort in cohorts), initial=0)
    return torch.cat([cohort.stems + first for cohort, first in zip(cohorts, firsts, strict=False)])


def _attends(cohorts: Sequence[Cohort]) -> list[Attend]:
    """One way of attending per layer: every cohort's rows look at that cohort's cache."""
    own = [cohort.cache.attends() for cohort in cohorts if cohort.cache is not None]
    if len(own) == 1:
        return own[0]
    sizes = [cohort.size for cohort in cohorts]
    return [_Together(layer, sizes) for layer in zip(*own, strict=True)]


class _Together:
    """An `Attend` of several cohorts, each with so many rows."""

    def __init__(self, cohorts: Sequence[Attend], sizes: list[int]):
        self._cohorts, self._sizes = cohorts, sizes

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows = zip(*(torch.split(x, self._sizes) for x in (q, k, v)), strict=True)
        return torch.cat([attend(*its) for attend, its in zip(self._cohorts, rows, strict=True)])
