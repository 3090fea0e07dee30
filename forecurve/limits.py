"""What is the same in every room: bounds beyond which the science cannot compute, or the store not keep, and units."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

ComputeUnit = Literal["GPU-hours", "CPU-hours", "GPU-seconds", "CPU-seconds", "steps"]
"""What a run's compute is counted in. A file of curves may have any other."""

LEAST_COMPUTE, MOST_COMPUTE = 1e-30, 1e40
"""Of compute above 0, in any sensible unit; beyond, products in the science leave what a float can hold."""

MAX_STEP = 2**31 - 1

MOST_TAGS, MOST_TAG, MOST_NOTE = 20, 64, 4000
"""Tags of a run or a sweep, and how many characters one of them and a note have."""

OVER = ("stopped", "succeeded", "failed")
"""Statuses of a run that nothing follows."""

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""A time outside of these is a clock that is not set. They are fixed, so that an answer never depends on whose clock
is right: a trainer whose clock is a day ahead keeps its reports, and a batch sent again is judged as before."""


def is_compute(value: float) -> bool:
    """Whether a curve can have this compute. False for what is not finite."""
    return value == 0 or LEAST_COMPUTE <= value <= MOST_COMPUTE
