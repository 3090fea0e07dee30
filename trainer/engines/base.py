"""The engine protocol: requests in, responses with log-probs and weight versions out, a token at a time.

A generator owns the loop. Between two `step` calls it may load new weights: running requests go on with them and
keep their keys and values (PipelineRL's in-flight update), and each token records the version that made it.

    engine.submit(requests)
    while engine.busy:
        if newer weights are offered: engine.load_weights(...)
        finished += engine.step()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainer.types import Request, Responses


class Engine(Protocol):
    """Samples responses from the policy."""

    @property
    def version(self) -> int:
        """Version of the weights that will make the next token."""

    @property
    def busy(self) -> bool:
        """True while a request is unfinished."""

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> None:
        """Replace the weights; legal between steps, running requests included."""

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests; each comes back from a later `step`, once, whole."""

    def step(self) -> list[Responses]:
        """Make one more token for running requests; the requests that are now complete."""

    def close(self) -> None:
        """Free what the engine holds; it is not used again."""
