"""The Ray cluster that a run's actors live in: joining it, and what each actor reserves."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import ray

from forecurve.recipes import Recipe
from trainer.search_path import search_path

from .place import share_of

ALLOCATOR = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456",
    "MALLOC_ARENA_MAX": "1",
}
"""glibc keeps freed memory instead of returning it after every operator, for all threads together: what one has asked
of the system and freed, the next need not ask for."""


def connect(cpus: float, environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Join the cluster of the Ray job we are in, else start a small local one; what ends it again.

    A connection that this process has already is used as it is.

    The address and the token (RAY_ADDRESS, RAY_AUTH_MODE, RAY_AUTH_TOKEN) come from the environment that Ray
    gives to its jobs.
    """
    if ray.is_initialized():
        return lambda: None
    os.environ.setdefault("RAY_SCHEDULER_EVENTS", "0")  # what it says of waiting, `place` says better
    if in_a_cluster(environment):
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


def in_a_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether we are a Ray job of a cluster, and start no Ray of our own."""
    return bool(environment.get("RAY_ADDRESS"))


def actor_options(recipe: Recipe, threads: int) -> dict[str, Any]:
    """What every actor is started with, but for its place."""
    share = share_of(recipe)
    variables = {**ALLOCATOR, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": search_path()}
    return {
        "num_cpus": share["CPU"],
        "num_gpus": share["GPU"],
        "max_restarts": 0,
        "runtime_env": {"env_vars": variables},
    }
