"""Calls to actors: which have ended, and what came of them."""

from __future__ import annotations

from typing import Any

import ray
from ray.exceptions import RayTaskError

from trainer.errors import TrainerError


def ended(references: list[Any]) -> list[Any]:
    """Those whose calls have ended by now."""
    return ray.wait(references, num_returns=len(references), timeout=0)[0] if references else []


def value(reference: Any, timeout: float | None = None) -> Any:
    """The value of a reference, or of each of a list; an error of ours as it was raised.

    Raises:
        RayActorError: the actor is dead.
        GetTimeoutError: no value within `timeout` seconds.
    """
    try:
        return ray.get(reference, timeout=timeout)
    except RayTaskError as error:
        if isinstance(error.cause, TrainerError):
            raise error.cause from None
        raise
