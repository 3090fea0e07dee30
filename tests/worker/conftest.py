"""Fixtures of the worker's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.settings import Settings
from tests.worker.harness import ray, world

__all__ = ["ray", "world"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """For tasks that need no surroundings beyond the database: no rest between refits, leases of a minute."""
    return Settings(DATABASE_URL="postgresql://unused", data_dir=tmp_path, refit_every_s=0.0, lease_s=60.0)
