"""`forecurve demo`: the main job from one command, on real parts."""

from .command import demo

__all__ = ["demo"]
