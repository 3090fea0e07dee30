"""Verifier functions in processes of their own, so that one that hangs, crashes or eats memory costs one response.

Each worker is a fresh interpreter without torch (`trainer.verifiers.worker`). It is killed with all its children when
it takes longer than its limit, and started again for the next response; also when this process is gone, however it
went.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

from trainer.errors import ConfigurationError
from trainer.search_path import search_path

from . import processes
from .verdict import Verdict

START_SECONDS = 60.0
"""A worker imports its verifier once; sympy takes seconds on a busy machine."""
MEMORY_MB = 2048


class WorkerPool:
    """Up to `workers` processes that call a `function(response, answer) -> bool`; see `Verifier`.

    Args:
        specification: `module:function`, or the name under which one of `modules` registers it.
        workers: processes at most.
        seconds: wall-clock limit of one response.
        modules: imported before a registered name is looked up.

    Raises (by `start`, or at a response):
        ConfigurationError: there is no such function, it cannot be imported, or what it returns is neither true nor
            false.
    """

    def __init__(
        self,
        specification: str,
        workers: int,
        seconds: float,
        modules: Sequence[str] = (),
    ):
        self._seconds = seconds
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._specification = specification
        self._workers = [_Worker(specification, modules) for _ in range(workers)]
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="verifier")

    def start(self) -> None:
        """See `Verifier`. Starts one worker."""
        try:
            self._workers[0].start()
        except (OSError, EOFError) as error:
            self._workers[0].stop()
            late = isinstance(error, TimeoutError)
            fate = f"was not ready within {START_SECONDS:.0f} s" if late else "ended"
            raise ConfigurationError(
                f"task.verifiers names {self._specification!r}, but the process that imports it {fate}; import its "
                "module by hand to see why"
            ) from None

    def judge(self, responses: Sequence[str], answer: str) -> Iterable[Verdict]:
        """See `Verifier`."""
        return self._threads.map(lambda response: self._judge(response, answer), responses)

    def cpu_seconds(self) -> float:
        """See `Verifier`."""
        return sum(worker.cpu_seconds for worker in self._workers)

    def close(self) -> None:
        """See `Verifier`."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._workers:
            worker.stop()

    def _judge(self, response: str, answer: str) -> Verdict:
        worker = self._idle.get()
        try:
            return worker.ask({"response": response, "answer": answer}, self._seconds)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process; started when it is first asked, and again after it was killed."""

    def __init__(self, specification: str, modules: Sequence[str]):
        self._specification = specification
        self._arguments = [specification, str(MEMORY_MB), *modules]
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1  # writing end of a pipe: the worker ends when it closes, as it does when we are no more
        self._before = self._told = 0.0  # CPU seconds: of processes that ended, and what the present one says

    @property
    def cpu_seconds(self) -> float:
        """Of all processes so far."""
        return self._before + self._told

    def ask(self, request: dict[str, str], seconds: float) -> Verdict:
        try:
            process = self.start()
            answer = self._exchange(process, json.dumps(request).encode() + b"\n", seconds)
        except TimeoutError:
            self.stop()
            return Verdict.TIMEOUT
        except (OSError, EOFError):
            self.stop()
            return Verdict.CRASH
        if "error" in answer:
            return Verdict.CRASH
        if "no_verdict" in answer:
            raise ConfigurationError(
                f"task.verifiers names {self._specification!r}, which returned {answer['no_verdict']} for a response; "
                "return True or False, a score compared with what it takes to pass"
            )
        return Verdict.PASSED if answer["passed"] else Verdict.FAILED

    def start(self) -> subprocess.Popen[bytes]:
        if self._process is not None and processes.has_ended(self._process):
            self.stop()  # died since its last verdict, which is no fault of this response
        if self._process is None:
            self._process = self._started()
            ready = self._exchange(self._process, b"", START_SECONDS)
            if "error" in ready:
                self.stop()
                raise ConfigurationError(f"task.verifiers names {self._specification!r}, but {ready['error']}")
        return self._process

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._before, self._told = self._before + max(processes.end(process), self._told), 0.0
        process.communicate()
        os.close(self._lifeline)

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, seconds: float) -> dict[str, Any]:
        answer = _exchange(process, request, seconds)
        self._told = answer["cpu_seconds"]
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        reading, self._lifeline = os.pipe()
        try:
            return subprocess.Popen(
                [sys.executable, "-m", "trainer.verifiers.worker", str(reading), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                pass_fds=(reading,),
                start_new_session=True,
            )
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(reading)


def _exchange(process: subprocess.Popen[bytes], request: bytes, seconds: float) -> dict[str, Any]:
    """One line out, one line back. TimeoutError, or EOFError when the process ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request)
    process.stdin.flush()
    line, deadline = b"", time.monotonic() + seconds
    while not line.endswith(b"\n"):
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            raise EOFError
        line += piece
    answer: dict[str, Any] = json.loads(line)
    return answer


def _environment() -> dict[str, str]:
    return dict(os.environ, PYTHONPATH=search_path(), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
