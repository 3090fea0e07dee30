"""All processes of a training do the same: what only the first of them knows is told to the others."""

from __future__ import annotations


def as_first(stop: bool, world_size: int) -> bool:
    """What process 0 says. Every process must ask, at the same step: one that left the loop alone would leave the
    others waiting for it for ever."""
    if world_size < 2:
        return stop
    from accelerate.utils import broadcast_object_list  # transformers' Trainer runs on it

    return bool(broadcast_object_list([stop])[0])
