"""Workers as Ray actors: generators and the learner in processes of their own, running at the same time.

Weights live in Ray's object store under their version. A generator is told that newer ones exist through a second
thread (the `mail` concurrency group) and pulls them between two decode steps, while requests are running.

A worker that dies ends the attempt with a named reason; it is not replaced. A new attempt resumes from the
newest checkpoint.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, cast

import ray
import torch
from numpy.typing import NDArray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from forecurve.recipes import Recipe
from trainer.errors import TrainerError, WorkerLost
from trainer.generator import Generator
from trainer.learner import Learner
from trainer.models import build_model
from trainer.tasks import build_task
from trainer.types import EvaluationResult, Group, LearnerState, StepResult, Wave, WaveResult, WeightVersion
from trainer.weights import load_into

from .base import Result, Ticket

ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
"""glibc keeps freed memory instead of returning it after every operator."""

PLACEMENT_TIMEOUT_S = 300.0
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
    """The learner in a process of its own; it puts the weights of every version into the object store."""

    def __init__(self, recipe: Recipe, base: Weights, device: str, threads: int):
        torch.set_num_threads(threads)
        self._learner = Learner(recipe, load_into(build_model(recipe), base), device)

    def ready(self) -> int:
        """The process id, once the model is there."""
        return os.getpid()

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


class RayWorkers:
    """See `Workers`. Ray must be initialised; `connect` does that."""

    def __init__(self, recipe: Recipe, base: Weights, threads: int = 1):
        self.generators = recipe.resources.generators
        self.waves_in_flight = 2 * self.generators
        self._numbers = count()
        self._pending: dict[Any, Ticket] = {}
        self._busy = [0] * self.generators
        self._generator_of: dict[int, int] = {}
        device = "cuda" if recipe.resources.gpus else "cpu"
        options = _actor_options(recipe, threads)
        arguments = (recipe, ray.put(dict(base)), device, threads)
        make_remote: Any = ray.remote
        generator = make_remote(concurrency_groups={"mail": 1})(GeneratorActor)
        learner = make_remote(LearnerActor)
        self._generators = [generator.options(**options).remote(*arguments) for _ in range(self.generators)]
        self._learner = learner.options(**options).remote(*arguments)
        self.process_ids = self._wait_until_placed(recipe)

    def initial_weights(self) -> WeightVersion:
        """See `Workers`."""
        return cast(WeightVersion, self._get(self._learner.weights.remote()))

    def offer(self, weights: WeightVersion) -> None:
        """See `Workers`."""
        for generator in self._generators:
            generator.offer.remote(weights.version, [weights.source])

    def start_wave(self, wave: Wave) -> Ticket:
        """See `Workers`. The generator with the fewest waves gets it."""
        index = self._busy.index(min(self._busy))
        self._busy[index] += 1
        ticket = self._track("wave", self._generators[index].generate.remote(wave))
        self._generator_of[ticket.number] = index
        return ticket

    def start_evaluation(self, weights: WeightVersion) -> Ticket:
        """See `Workers`. One generator does it between two waves; the others, and the learner, go on."""
        index = self._busy.index(min(self._busy))
        return self._track("evaluation", self._generators[index].evaluate.remote(weights.version, weights.source))

    def start_step(self, groups: Sequence[Group]) -> Ticket:
        """See `Workers`."""
        return self._track("step", self._learner.step.remote(list(groups)))

    def wait(self, timeout: float) -> list[tuple[Ticket, Result]]:
        """See `Workers`."""
        if not self._pending:
            return []
        ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=timeout)
        return [self._finished(reference) for reference in ready]

    def arrays(self, weights: WeightVersion) -> Weights:
        """See `Workers`."""
        return weights.source if isinstance(weights.source, Mapping) else cast(Weights, self._get(weights.source))

    def learner_state(self) -> LearnerState:
        """See `Workers`."""
        return cast(LearnerState, self._get(self._learner.state.remote()))

    def load_learner_state(self, state: LearnerState) -> None:
        """See `Workers`."""
        self._get(self._learner.load_state.remote(state))

    def close(self) -> None:
        """See `Workers`."""
        self._pending.clear()
        for actor in [*self._generators, self._learner]:
            ray.kill(actor)

    def _finished(self, reference: Any) -> tuple[Ticket, Result]:
        ticket = self._pending.pop(reference)
        if ticket.kind == "wave":
            self._busy[self._generator_of.pop(ticket.number)] -= 1
        return ticket, self._get(reference, ticket.kind)

    def _get(self, reference: Any, doing: str = "call") -> Any:
        try:
            return ray.get(reference)
        except RayTaskError as error:
            if isinstance(error.cause, TrainerError):
                raise error.cause from None
            raise
        except RayActorError as error:
            worker = "the learner" if doing == "step" else "a generator" if doing != "call" else "a worker"
            raise WorkerLost(f"{worker} died during a {doing}: {str(error).strip().splitlines()[0]}") from None

    def _track(self, kind: Literal["wave", "evaluation", "step"], reference: Any) -> Ticket:
        ticket = Ticket(next(self._numbers), kind)
        self._pending[reference] = ticket
        return ticket

    def _wait_until_placed(self, recipe: Recipe) -> list[int]:
        actors = [*self._generators, self._learner]
        try:
            return cast(list[int], ray.get([actor.ready.remote() for actor in actors], timeout=PLACEMENT_TIMEOUT_S))
        except GetTimeoutError:
            need = f"{recipe.resources.cpus:g} CPUs and {recipe.resources.gpus:g} GPUs"
            raise WorkerLost(
                f"Ray did not start the {len(actors)} actors within {PLACEMENT_TIMEOUT_S:.0f} s; they need {need}"
            ) from None
        except RayActorError as error:
            raise WorkerLost(f"an actor did not start: {str(error).strip()[-500:]}") from None


def connect(cpus: float, environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Join the cluster of the Ray job we are in, else start a small local one; what ends it again.

    A connection that this process has already is used as it is.

    The address and the token (RAY_ADDRESS, RAY_AUTH_MODE, RAY_AUTH_TOKEN) come from the environment that Ray
    gives to its jobs.
    """
    if ray.is_initialized():
        return lambda: None
    if environment.get("RAY_ADDRESS"):
        ray.init(address="auto", logging_level=logging.WARNING, log_to_driver=True)
    else:
        ray.init(
            address="local",
            num_cpus=max(2, math.ceil(cpus)),
            include_dashboard=False,
            logging_level=logging.WARNING,
            log_to_driver=True,
        )
    return ray.shutdown


def _actor_options(recipe: Recipe, threads: int) -> dict[str, Any]:
    """An equal share of the recipe's devices for every actor, so that the driver needs none."""
    actors = recipe.resources.generators + 1
    gpus = recipe.resources.gpus / actors
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH")) if part)
    variables = {**ALLOCATOR, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": path}
    return {
        "num_cpus": round(recipe.resources.cpus / actors, 4),
        "num_gpus": math.floor(gpus) if gpus >= 1 else round(gpus, 4),
        "max_restarts": 0,
        "runtime_env": {"env_vars": variables},
    }
