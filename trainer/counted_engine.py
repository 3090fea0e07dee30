"""An engine that counts what it brings about, so that another thread can tell whether it gets anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.engines import Engine
from trainer.types import Request, Responses


class CountedEngine:
    """`engine`, with its decode steps and new weights counted in `signs`; see `Engine`.

    A step of vLLM's engine is a look at what its own processes have finished: with it, `signs` says that this process
    is alive, and the engine itself names a vLLM that died or does not answer.
    """

    def __init__(self, engine: Engine):
        self.counted = engine
        self.signs = 0

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
        self.signs += 1
        return stood

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Engine`."""
        self.counted.submit(requests)

    def step(self) -> list[Responses]:
        """See `Engine`."""
        finished = self.counted.step()
        self.signs += 1
        return finished

    def pause(self) -> None:
        """See `Engine`."""
        self.counted.pause()

    def resume(self) -> None:
        """See `Engine`."""
        self.counted.resume()

    def cpu_seconds(self) -> float:
        """See `Engine`."""
        return self.counted.cpu_seconds()

    def close(self) -> None:
        """See `Engine`."""
        self.counted.close()
