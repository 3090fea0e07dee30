"""Which failures lie with a worker, its device or its machine, so that another attempt may go better."""

from __future__ import annotations

import sys

import torch
from torch.distributed import DistError

from trainer.errors import HopelessWork, WorkerLost

_BY_THE_PROGRAM = "device-side assert"
"""In CUDA's words: a kernel was given what it cannot take, and will be again."""
_BETWEEN_RANKS = "gloo/transport"
"""In gloo's words: another rank is gone or silent. It has no type of error of its own for that."""


def may_go_better(error: Exception) -> bool:
    """Whether another attempt may get past `error`: nothing that the recipe asks for need be the cause."""
    if isinstance(error, WorkerLost):
        return not isinstance(error, HopelessWork)
    cause = _raised_by_code(error)
    if cause is None:
        return True
    failed = isinstance(cause, torch.AcceleratorError | DistError | ConnectionError) or _BETWEEN_RANKS in str(cause)
    return failed and _BY_THE_PROGRAM not in str(cause)


def _raised_by_code(error: Exception) -> Exception | None:
    """What the code of this process or of an actor raised; None when it was Ray itself that failed."""
    ray = sys.modules.get("ray.exceptions")
    if ray is None or not isinstance(error, ray.RayError):
        return error
    cause = error.cause if isinstance(error, ray.RayTaskError) else None
    return cause if isinstance(cause, Exception) else None
