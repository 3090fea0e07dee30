"""Fixtures of the worker's tests."""

from tests.worker.harness import ray, world

__all__ = ["ray", "world"]
