"""Small recipes and builders. Weights are random or the shipped base's; nothing here takes a second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

# Torch's own threads would fight pytest's workers.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch

from forecurve.recipes import SCALERL, Recipe, with_changes
from trainer.base_weights.weights import Weights, load_into, shipped_weights
from trainer.models import build_model
from trainer.tasks import build_task
from trainer.types import Group, Responses

SMALL = {
    "task.pool": None,
    "algorithm.no_positive_resampling": None,
    "length_control.kind": "none",
    "batch.prompts_per_step": 4,
    "batch.generations_per_prompt": 4,
    "generation.max_tokens": 20,
    "optimizer.warmup_steps": 2,
    "evaluation.every_steps": 2,
    "evaluation.prompts": 16,
    "evaluation.samples": 2,
    "checkpoint.every_steps": 3,
    "budget.unit": "steps",
    "budget.compute": 6,
}


@pytest.fixture(scope="module")
def own_ray() -> Iterator[None]:
    """One Ray of our own for a module's tests, whatever runs on this machine; on loopback, gone with them."""
    from trainer.workers.ray_actors import connect

    with pytest.MonkeyPatch.context() as patch:
        for name in ("RAY_ADDRESS", "RAY_AUTH_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("RAY_AUTH_MODE", "disabled")
        leave = connect(cpus=2)
        yield
        leave()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """CPU time is counted per thread, and results must not depend on how many there are."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def base() -> Weights:
    """The shipped warm start."""
    return shipped_weights()


@pytest.fixture
def recipe() -> Callable[..., Recipe]:
    """ScaleRL, small, on endless prompts and without interruption, with the given fields replaced."""

    def make(changes: dict[str, Any] | None = None) -> Recipe:
        return with_changes(SCALERL, SMALL | (changes or {}))

    return make


@pytest.fixture
def group() -> Callable[..., Group]:
    """A group of random responses with given rewards, log-probs that no policy made, and a given version."""

    def make(
        recipe: Recipe,
        ordinal: int,
        rewards: list[float],
        lengths: list[int] | None = None,
        version: int = 0,
    ) -> Group:
        rng = np.random.default_rng(ordinal)
        count = len(rewards)
        lengths = lengths or rng.integers(2, 12, count).tolist()
        shape = (count, max(lengths))
        inside = np.arange(shape[1]) < np.array(lengths)[:, None]
        prompt = build_task(recipe).training_prompt(ordinal)
        responses = Responses(
            key=ordinal,
            tokens=np.where(inside, rng.integers(3, 20, shape), 0),
            logprobs=np.where(inside, rng.normal(-1.0, 0.3, shape), 0).astype(np.float32),
            versions=np.where(inside, version, 0).astype(np.int32),
            lengths=np.array(lengths),
            finished=np.ones(count, dtype=bool),
            sampled=inside,
            interrupted=np.zeros(count, dtype=bool),
        )
        return Group(ordinal, prompt, responses, np.array(rewards, dtype=np.float64), np.array(rewards) > 0.5)

    return make


@pytest.fixture
def model(base: Weights) -> Callable[..., Any]:
    """A policy with the shipped weights (recipes of the default size)."""
    return lambda recipe: load_into(build_model(recipe), base)
