"""The actors: a generator and a learner in processes of their own.

Weights live in Ray's object store under their version. A generator is told that newer ones exist through a second
thread (the `mail` concurrency group) and takes them between two decode steps, while requests are running: pulled from
the store by a third thread, or received by a fourth (`collective`) from the learner's broadcast, where there is one.
Evaluations have a thread of their own, so that they need not queue behind waves (see `turns`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import ray
import torch
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.base_weights.weights import load_into
from trainer.errors import TrainerError
from trainer.generation.generator import Generator
from trainer.learner import Learner, Ranks, join
from trainer.models import build_model
from trainer.tasks import build_task
from trainer.types import EvaluationResult, Group, LearnerState, StepResult, Wave, WaveResult, WeightVersion

from .collective import Channel, Place, host, transfer_device
from .inbox import Inbox
from .turns import Turns

Weights = Mapping[str, NDArray[Any]]


class GeneratorActor:
    """A generator in a process of its own; offers are heard while it generates, evaluations go before waiting waves."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int):
        torch.set_num_threads(threads)
        self._task = build_task(recipe)
        self._generator = Generator(recipe, self._task, lambda: load_into(build_model(recipe), base), device)
        self._inbox = Inbox(ray.get, ahead=ThreadPoolExecutor(1, "weights").submit)
        self._link = Link(recipe)
        self._turns = Turns()

    def ready(self) -> int:
        """The process id, once the model is there, the verifiers work and the engine gives the learner's log-probs;
        ConfigurationError or EngineMismatch where they do not."""
        self._task.start()
        with self._turns.other():  # a newcomer's first evaluation may be here already
            self._generator.check()
        return os.getpid()

    @ray.method(concurrency_group="mail")
    def signs(self) -> float:
        """See `Generator.signs`; answered while `generate` runs."""
        return self._generator.signs

    @ray.method(concurrency_group="mail")
    def offer(self, version: int, reference: list[Any], epoch: int = 0) -> None:
        """Weights of `version` exist; with an `epoch`, that group's broadcast brings them.

        The reference comes in a list, so that Ray does not fetch it for us.
        """
        self._inbox.offer(version, reference[0], epoch)

    @ray.method(concurrency_group="collective")
    def meet(self, address: str, epoch: int, rank: int, size: int) -> None:
        """Join the group of this epoch; returns once all are there."""
        self._link.meet(Place(address, epoch, rank, size))

    @ray.method(concurrency_group="collective")
    def receive(self, version: int, epoch: int) -> None:
        """Take part in the broadcast of a version; without it the version is pulled."""
        try:
            self._inbox.arrive(version, self._link.channel(epoch).receive(version))
        except BaseException:
            self._inbox.fail(epoch)
            raise

    def generate(self, wave: Wave, evaluations: int = 0) -> WaveResult:
        """See `Generator.generate`; after so many evaluations, and once there are weights of its minimum version."""
        self._inbox.wait_for(wave.minimum_version)
        with self._turns.wave(after=evaluations):
            return self._generator.generate(wave, lambda held: self._inbox.newest(held, wave.minimum_version))

    @ray.method(concurrency_group="evaluation")
    def evaluate(self, step: int, weights: Weights, waves: int = 0) -> EvaluationResult:
        """See `Generator.evaluate`; between two waves, before those that wait, but after so many."""
        with self._turns.evaluation(after=waves):
            return self._generator.evaluate(step, weights)


class LearnerActor:
    """A rank of the learner in a process of its own; the first puts the weights of every version into the store."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int, rank: int):
        torch.set_num_threads(threads)
        self._recipe, self._base, self._device, self._rank = recipe, base, device, rank
        self._answers = 0
        if recipe.resources.learners == 1:
            self._learner = self._made(None)

    def ready(self) -> int:
        """The process id, once the model is there and has been rehearsed; generators start meanwhile."""
        if self._recipe.resources.learners == 1:
            self._learner.rehearse()  # not when it is made: memory belongs to the thread that asked for it
        return os.getpid()

    @ray.method(concurrency_group="watch")
    def signs(self) -> float:
        """Another number each time: that it answers, while `step` runs, is the sign. Within a step there are none."""
        self._answers += 1
        return self._answers

    def address(self) -> str:
        """host:port on this machine where the ranks may meet."""
        with socket.socket() as free:
            free.bind(("", 0))
            host: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
            return f"{host}:{free.getsockname()[1]}"

    def join(self, address: str, count: int) -> None:
        """Meet the other ranks and make this one's part of the learner."""
        self._learner = self._made(join(address, self._rank, count, self._device))
        self._learner.rehearse()

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


class BroadcastingLearnerActor(LearnerActor):
    """The rank that sends: a thread beside that of the steps broadcasts a version while the next step runs."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int, rank: int):
        super().__init__(recipe, base, device, threads, rank)
        self._link = Link(recipe)

    @ray.method(concurrency_group="collective")
    def host(self) -> str:
        """host:port where members of a group meet."""
        node: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._meeting_place, address = host(node)
        return address

    @ray.method(concurrency_group="collective")
    def meet(self, address: str, epoch: int, rank: int, size: int) -> None:
        """See `GeneratorActor.meet`."""
        self._link.meet(Place(address, epoch, rank, size))

    @ray.method(concurrency_group="collective")
    def broadcast(self, version: int, reference: list[Any], epoch: int) -> None:
        """Send these weights, which are in the store, to the group of this epoch."""
        self._link.channel(epoch).send(version, ray.get(reference[0]))


class Link:
    """An actor's channel of the newest epoch; used by its `collective` thread alone."""

    def __init__(self, recipe: Recipe):
        self._device = transfer_device(recipe)
        self._epoch = 0
        self._channel: Channel | None = None

    def meet(self, place: Place) -> None:
        """Leave the old group and join a new one."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None
        self._channel, self._epoch = Channel(place, self._device), place.epoch

    def channel(self, epoch: int) -> Channel:
        """The channel of this epoch; TrainerError when the meeting did not come about."""
        if self._channel is None or self._epoch != epoch:
            raise TrainerError(f"weights by broadcast: this actor is not in group {epoch}")
        return self._channel
