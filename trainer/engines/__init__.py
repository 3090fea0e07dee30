"""Engines that sample responses from the policy."""

from .base import Engine
from .torch_engine import TorchEngine

__all__ = ["Engine", "TorchEngine"]
