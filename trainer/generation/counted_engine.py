"""An engine that counts what it brings about, so that another thread can tell whether it gets anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.engines import Engine
from trainer.types import Request, Responses


class CountedEngine:
    """`engine`, with what it brings about counted in `signs`; see `Engine`.

    A step of an engine that decodes beside its caller is a look at what is finished, and no sign of anything.
    """

    def __init__(self, engine: Engine):
        self.counted = engine
        self._steps = self._loaded = 0

    @property
    def signs(self) -> int:
        """Decode steps, or tokens of an engine that makes them by itself, and new weights."""
        tokens = self.counted.tokens_made()
        return self._loaded + (self._steps if tokens is None else tokens)

    @property
    def version(self) -> int:
        """See `Engine`."""
        return self.counted.version

    @property
    def busy(self) -> bool:
        """See `Engine`."""
        return self.counted.busy

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> float | None:
        """See `Engine`."""
        stood = self.counted.load_weights(version, tensors)
        self._loaded += 1
        return stood

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Engine`."""
        self.counted.submit(requests)

    def step(self) -> list[Responses]:
        """See `Engine`."""
        finished = self.counted.step()
        self._steps += 1
        return finished

    def tokens_made(self) -> int | None:
        """See `Engine`."""
        return self.counted.tokens_made()

    def cpu_seconds(self) -> float:
        """See `Engine`."""
        return self.counted.cpu_seconds()

    def close(self) -> None:
        """See `Engine`."""
        self.counted.close()
