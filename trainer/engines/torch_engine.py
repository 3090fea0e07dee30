"""The torch engine: cohorts of requests decoded together, a key-value cache, weights swapped between steps.

Requests that are submitted together form a cohort: their prompts run once, then every `step` makes one token for
the rows of the oldest cohort that are still going. The head's precision is the recipe's, as in the learner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trainer.errors import NotFinite
from trainer.models import TinyDecoder
from trainer.types import Request, Responses

from .kv_cache import KeyValueCache

COMPACT_BELOW = 0.85
"""The cache is compacted when that leaves fewer than this share of its rows."""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How tokens are sampled. Ratios need the full distribution, so there is no top-p or top-k."""

    max_tokens: int
    temperature: float
    end_token: int
    logits_precision: str = "fp32"


class TorchEngine:
    """See `Engine`. `model` belongs to the engine from here on: `load_weights` writes into it."""

    def __init__(self, model: TinyDecoder, sampling: SamplingConfig, version: int = 0, device: str = "cpu"):
        self._model = model.to(device).eval()
        self._sampling = sampling
        self._version = version
        self._device = torch.device(device)
        self._cohorts: deque[_Cohort] = deque()

    @property
    def version(self) -> int:
        """See `Engine`."""
        return self._version

    @property
    def busy(self) -> bool:
        """See `Engine`."""
        return bool(self._cohorts)

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> None:
        """See `Engine`. Values are arrays by parameter name, copied; all of them must be there."""
        self._model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in tensors.items()})
        self._version = version

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Engine`. Requests of one cohort have prompts of one length and the same number of samples."""
        if requests:
            self._cohorts.append(_Cohort(requests, self._sampling, self._device))

    @torch.inference_mode()
    def step(self) -> list[Responses]:
        """See `Engine`."""
        if not self._cohorts:
            return []
        cohort = self._cohorts[0]
        cohort.step(self._model, self._version)
        if not cohort.done:
            return []
        self._cohorts.popleft()
        return cohort.responses()

    def close(self) -> None:
        """See `Engine`."""
        self._cohorts.clear()


class _Cohort:
    """Requests that started together, decoded in step.

    `rows` [P', R'] says which original row (request * samples + sample) stands at each place of the cache's
    rectangle, `going` [P', R'] whether it still counts: a row that has ended, or that only fills the
    rectangle, does not.
    """

    def __init__(self, requests: Sequence[Request], sampling: SamplingConfig, device: torch.device):
        self.requests, self.sampling, self.samples = requests, sampling, requests[0].samples
        rows, budget = len(requests) * self.samples, sampling.max_tokens
        self.prompts = torch.from_numpy(np.stack([request.prompt.tokens for request in requests])).to(device)
        self.noise = torch.from_numpy(np.concatenate([_noise(request, budget) for request in requests])).to(device)
        self.tokens = torch.zeros(rows, budget, dtype=torch.long, device=device)
        self.logprobs = torch.zeros(rows, budget, device=device)
        self.versions = np.zeros(budget, dtype=np.int32)  # of all rows: they make their t-th token together
        self.lengths = torch.full((rows,), budget, device=device)
        self.finished = torch.zeros(rows, dtype=torch.bool, device=device)
        self.place = 0
        self.rows = torch.arange(rows, device=device).view(len(requests), self.samples)
        self.going = torch.ones_like(self.rows, dtype=torch.bool)
        self.last = torch.zeros(rows, dtype=torch.long, device=device)  # newest token at each place of the rectangle
        self.cache: KeyValueCache | None = None

    @property
    def done(self) -> bool:
        return self.place == self.sampling.max_tokens or not self.rows.numel()

    def step(self, model: TinyDecoder, version: int) -> None:
        hidden = self._prefill(model) if self.cache is None else self._decode(model, self.cache)
        logprobs = (model.logits(hidden, self.sampling.logits_precision) / self.sampling.temperature).log_softmax(-1)
        tokens = sample(logprobs, self.noise[self.rows.flatten(), self.place])
        chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
        if not bool(chosen.isfinite().all()):
            raise NotFinite(f"the policy at weight version {version} gives log-probabilities that are not finite")
        self._record(tokens, chosen, version)
        self._compact()

    def _prefill(self, model: TinyDecoder) -> Tensor:
        hidden, prompt_cache = model.prefill(self.prompts)
        self.cache = KeyValueCache(prompt_cache.layers, self.samples, self.sampling.max_tokens)
        return hidden.repeat_interleave(self.samples, 0)

    def _decode(self, model: TinyDecoder, cache: KeyValueCache) -> Tensor:
        places = torch.full_like(self.last, self.place - 1)
        hidden = model.decode(self.last, places, places, cache.attends())
        cache.advance()
        return hidden

    def _record(self, tokens: Tensor, logprobs: Tensor, version: int) -> None:
        going = self.going.flatten()
        rows = self.rows.flatten()[going]
        self.tokens[rows, self.place] = tokens[going]
        self.logprobs[rows, self.place] = logprobs[going]
        self.versions[self.place] = version
        self.place += 1
        ended = going & (tokens == self.sampling.end_token)
        ended_rows = self.rows.flatten()[ended]
        self.lengths[ended_rows] = self.place
        self.finished[ended_rows] = True
        self.last = tokens
        self.going = self.going & ~ended.view_as(self.going)

    def _compact(self) -> None:
        counts = self.going.sum(1)
        prompts = counts.nonzero()[:, 0]
        width = int(counts.max())
        if self.cache is None or len(prompts) * width >= COMPACT_BELOW * self.rows.numel():
            return
        if not width:
            self.rows = self.rows[:0]
            return
        order = self.going[prompts].to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, :width]
        flat = (prompts[:, None] * self.rows.shape[1] + order).flatten()
        self.cache.keep(prompts, order)
        self.rows = self.rows.flatten()[flat].view(len(prompts), width)
        self.going = self.going.flatten()[flat].view(len(prompts), width)
        self.last = self.last[flat]

    def responses(self) -> list[Responses]:
        longest = int(self.lengths.max())
        shape = (len(self.requests), self.samples, longest)
        lengths = self.lengths.reshape(shape[:2]).cpu().numpy()
        tokens = self.tokens[:, :longest].reshape(shape).cpu().numpy()
        logprobs = self.logprobs[:, :longest].reshape(shape).cpu().numpy()
        inside = np.arange(longest) < lengths[:, :, None]
        versions = np.where(inside, self.versions[:longest], 0).astype(np.int32)
        finished = self.finished.reshape(shape[:2]).cpu().numpy()
        return [
            Responses(
                key=request.key,
                tokens=tokens[i],
                logprobs=logprobs[i],
                versions=versions[i],
                lengths=lengths[i],
                finished=finished[i],
                sampled=inside[i],
                interrupted=np.zeros(self.samples, dtype=np.bool_),
            )
            for i, request in enumerate(self.requests)
        ]


def sample(logprobs: Tensor, noise: Tensor) -> Tensor:
    """Inverse-transform sampling: log-probs [N, V] and uniform noise [N] in [0, 1) -> tokens [N].

    The noise is drawn per request before decoding, so a row's tokens do not depend on what else is in the batch.
    """
    cumulative = logprobs.exp().cumsum(-1)
    below = cumulative <= noise[:, None] * cumulative[:, -1:]
    return below.sum(-1).clamp(max=logprobs.shape[-1] - 1)


def _noise(request: Request, budget: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(request.seed).random((request.samples, budget), dtype=np.float32)
