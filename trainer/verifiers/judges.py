"""The verifiers of a dataset by task name, and the count of what went wrong in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes.schema.tasks import VERIFIER_SECONDS

from . import exact
from .code import CodeVerifier
from .pool import WorkerPool
from .verdict import Verdict, Verifier

FUNCTIONS = {"math": "trainer.verifiers.mathematics:check"}
"""Names of the built-in verifiers that are functions in worker processes."""
MOST_WORKERS = 8


class Judges:
    """Sends each response to the verifier of its task.

    Args:
        verifiers: task name to `math`, `code`, `exact`, or a function of response and answer: `module:function`, or
            the name under which one of `modules` registers it.
        code_seconds: wall-clock limit of all tests of one response to a `code` task.
        code_memory_mb: memory of the program under test.
        function_seconds: wall-clock limit of any other verifier for one response.
        modules: what registers verifiers; see `forecurve.verifiers`.

    Raises (by `start`, or at the first response):
        ConfigurationError: a verifier does not exist or says neither true nor false, or this machine cannot confine
            foreign code.
    """

    def __init__(
        self,
        verifiers: Mapping[str, str],
        code_seconds: float = 10.0,
        code_memory_mb: int = 512,
        function_seconds: float = VERIFIER_SECONDS,
        modules: Sequence[str] = (),
    ):
        workers = min(MOST_WORKERS, len(os.sched_getaffinity(0)))
        self._names = dict(verifiers)
        self._verifiers: dict[str, Verifier] = {}
        for name in sorted(set(verifiers.values())):
            if name == "code":
                self._verifiers[name] = CodeVerifier(code_seconds, code_memory_mb, workers)
            elif name == "exact":
                self._verifiers[name] = Exact()
            else:
                function = FUNCTIONS.get(name, name)
                self._verifiers[name] = WorkerPool(function, workers, function_seconds, modules=modules)
        self._counts = dict.fromkeys(Verdict, 0)  # read by other threads: its keys never change

    def start(self) -> None:
        """Start what can be started, so that a verifier that cannot work is told before any training."""
        for verifier in self._verifiers.values():
            verifier.start()

    def passed(self, task: str, responses: Sequence[str], answer: str) -> NDArray[np.bool_]:
        """Which responses to a prompt of `task` are right, [G]."""
        passed = np.zeros(len(responses), dtype=np.bool_)
        for place, verdict in enumerate(self._verifiers[self._names[task]].judge(responses, answer)):
            self._counts[verdict] += 1
            passed[place] = verdict is Verdict.PASSED
        return passed

    def metrics(self) -> dict[str, float]:
        """Since the start: responses judged, and those whose verifier timed out or crashed."""
        return {
            "verifier/judged": float(sum(self._counts.values())),
            "verifier/timeouts": float(self._counts[Verdict.TIMEOUT]),
            "verifier/crashes": float(self._counts[Verdict.CRASH]),
        }

    def cpu_seconds(self) -> float:
        """CPU time that processes of the verifiers took so far, in seconds: foreign programs and workers."""
        return sum((verifier.cpu_seconds() for verifier in self._verifiers.values()), 0.0)

    def close(self) -> None:
        """End all processes of all verifiers."""
        for verifier in self._verifiers.values():
            verifier.close()


class Exact:
    """`exact.check`, here and now: string comparison needs no process."""

    def start(self) -> None:
        """See `Verifier`."""

    def judge(self, responses: Sequence[str], answer: str) -> list[Verdict]:
        """See `Verifier`."""
        return [Verdict.PASSED if exact.check(response, answer) else Verdict.FAILED for response in responses]

    def cpu_seconds(self) -> float:
        """See `Verifier`: there are no processes."""
        return 0.0

    def close(self) -> None:
        """See `Verifier`."""
