"""Engines that sample responses from the policy."""

from .base import Engine
from .setup import build_engine, interruption_places, sampling_config
from .torch_engine import TorchEngine

__all__ = ["Engine", "TorchEngine", "build_engine", "interruption_places", "sampling_config"]
