"""Fixtures of the fault tests."""

from tests.worker.harness import ray, world

__all__ = ["ray", "world"]
