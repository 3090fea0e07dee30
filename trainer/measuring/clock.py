"""Time of work. CPU time of the working thread is what CPU compute is counted in: it does not grow while waiting,
nor while another run has the core."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from trainer.types import Cost


@dataclass(slots=True)
class Stopwatch:
    """Cost since it was made. With more than one torch thread the whole process is counted, else this thread; and what
    each of `elsewhere` says of other processes that work for this one."""

    _cpu: Callable[[], float]
    _cpu_start: float
    _wall_start: float

    @classmethod
    def start(cls, *elsewhere: Callable[[], float]) -> Stopwatch:
        """Begin to count."""
        here = time.thread_time if torch.get_num_threads() == 1 else time.process_time

        def cpu() -> float:
            return here() + sum(told() for told in elsewhere)

        return cls(cpu, cpu(), time.perf_counter())

    def cost(self) -> Cost:
        """CPU and wall seconds so far."""
        return Cost(self._cpu() - self._cpu_start, time.perf_counter() - self._wall_start)
