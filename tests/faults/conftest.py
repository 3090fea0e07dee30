"""Fixtures of the fault tests."""

from tests.faults.processes import processes
from tests.worker.harness import ray, world

__all__ = ["processes", "ray", "world"]
