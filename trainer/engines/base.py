"""The engine protocol: requests in, responses with log-probs and weight versions out, a token at a time.

A generator owns the loop. Between two `step` calls it may load new weights: running requests go on with them and
keep their keys and values (PipelineRL's in-flight update), and each token records the version that made it.

    engine.submit(requests)
    while engine.busy:
        if newer weights are offered:
            engine.load_weights(...)
        finished += engine.step()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trainer.types import Request, Responses


@dataclass(frozen=True, slots=True)
class Interruption:
    """The phrase that ends a response's thinking, and what may come after it (§3.3, A.10).

    A row with `interrupt_at` n gets the `phrase` as its tokens n, n + 1, ... (unsampled), and then at most
    `answer_tokens` more; never more than `max_tokens` in all. A row is left alone when it has ended by itself within
    n tokens, or when its thinking is over: `closed` says so of each of some rows' first n tokens [N, n].
    """

    phrase: tuple[int, ...]
    closed: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    answer_tokens: int


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How tokens are sampled. Ratios need the full distribution, so there is no top-p or top-k.

    A row ends with the first of `end_tokens` that it samples, or after `max_tokens`.
    """

    max_tokens: int
    temperature: float
    end_tokens: tuple[int, ...]
    logits_precision: str = "fp32"
    interruption: Interruption | None = None


class Engine(Protocol):
    """Samples responses from the policy."""

    @property
    def version(self) -> int:
        """Version of the weights that will make the next token."""

    @property
    def busy(self) -> bool:
        """True while a request is unfinished."""

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> float | None:
        """Replace the weights; legal between steps, running requests included. Names are `Policy.named_tensors`'.

        An engine that decodes beside its caller says for how many seconds it made no token; None: during the call.
        """

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests; each comes back from a later `step`, once, whole."""

    def step(self) -> list[Responses]:
        """Make one more token for running requests; the requests that are now complete."""

    def tokens_made(self) -> int | None:
        """Tokens so far of an engine that decodes beside its caller, whatever becomes of them; None: a step makes some.

        Read by another thread.
        """

    def cpu_seconds(self) -> float:
        """CPU time spent so far in other processes than the caller's."""

    def close(self) -> None:
        """Free what the engine holds; it is not used again."""
