"""The actors: a generator and a learner in processes of their own.

Weights live in Ray's object store under their version. A generator is told that newer ones exist through a second
thread (the `mail` concurrency group) and pulls them between two decode steps, while requests are running.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
import torch
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.errors import WorkerLost
from trainer.generator import Generator
from trainer.learner import Learner, Ranks, join
from trainer.models import build_model
from trainer.tasks import build_task
from trainer.types import EvaluationResult, Group, LearnerState, StepResult, Wave, WaveResult, WeightVersion
from trainer.weights import load_into

WEIGHTS_TIMEOUT_S = 120.0

Weights = Mapping[str, NDArray[Any]]


class GeneratorActor:
    """A generator in a process of its own; `offer` is served while `generate` runs."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int):
        torch.set_num_threads(threads)
        self._generator = Generator(recipe, build_task(recipe), lambda: load_into(build_model(recipe), base), device)
        self._news = threading.Condition()
        self._offered = 0
        self._reference: Any = None

    def ready(self) -> int:
        """The process id, once the model is there."""
        return os.getpid()

    @ray.method(concurrency_group="mail")
    def offer(self, version: int, reference: list[Any]) -> None:
        """Weights of `version` exist. The reference comes in a list, so that Ray does not fetch it for us."""
        with self._news:
            if version > self._offered or self._reference is None:
                self._offered, self._reference = version, reference[0]
            self._news.notify_all()

    def generate(self, wave: Wave) -> WaveResult:
        """See `Generator.generate`; waits until weights of the wave's minimum version have been offered."""
        with self._news:
            offered = self._news.wait_for(lambda: self._offered >= wave.minimum_version, WEIGHTS_TIMEOUT_S)
        if not offered:
            raise WorkerLost(f"no weights of version {wave.minimum_version} came within {WEIGHTS_TIMEOUT_S:.0f} s")
        return self._generator.generate(wave, self._newest)

    def evaluate(self, step: int, weights: Weights) -> EvaluationResult:
        """See `Generator.evaluate`."""
        return self._generator.evaluate(step, weights)

    def _newest(self, held: int) -> tuple[int, Weights] | None:
        version, reference = self._offered, self._reference
        if reference is None or version <= held:
            return None
        with self._news:
            version, reference = self._offered, self._reference
        return version, ray.get(reference)


class LearnerActor:
    """A rank of the learner in a process of its own; the first puts the weights of every version into the store."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int, rank: int):
        torch.set_num_threads(threads)
        self._recipe, self._base, self._device, self._rank = recipe, base, device, rank
        if recipe.resources.learners == 1:
            self._learner = self._made(None)

    def ready(self) -> int:
        """The process id, once the model is there."""
        return os.getpid()

    def address(self) -> str:
        """host:port on this machine where the ranks may meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
            return f"{host}:{free.getsockname()[1]}"

    def join(self, address: str, count: int) -> None:
        """Meet the other ranks and make this one's part of the learner."""
        self._learner = self._made(join(address, self._rank, count, self._device))

    def step(self, groups: Sequence[Group]) -> StepResult:
        """See `Learner.step`."""
        result = self._learner.step(groups)
        return replace(result, weights=WeightVersion(result.version, ray.put(result.weights.source)))

    def weights(self) -> WeightVersion:
        """The weights now, by reference."""
        return WeightVersion(self._learner.version, ray.put(self._learner.weights()))

    def state(self) -> LearnerState:
        """See `Learner.state`."""
        return self._learner.state()

    def load_state(self, state: LearnerState) -> None:
        """See `Learner.load_state`."""
        self._learner.load_state(state)

    def _made(self, ranks: Ranks | None) -> Learner:
        policy = load_into(build_model(self._recipe), self._base)
        return Learner(self._recipe, policy, self._device, ranks)
