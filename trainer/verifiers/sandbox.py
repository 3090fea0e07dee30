"""Run foreign Python programs confined: limits on time, memory and output, no network, no processes, no files.

Each program is a process of its own session in an empty folder, with the standard library and nothing else. It gives
up its rights before its first line is read (`confined`): seccomp refuses sockets, new processes, signals and changes
to files, on every kernel; Landlock hides every file but Python's own, where the kernel has it (Linux 5.13); limits
bound memory, CPU time and what it prints; and the kernel kills it when this process is gone, however that went. Where
seccomp is missing nothing is run at all. This keeps programs from harming the machine; it does not keep a program that
goes looking in its own process from claiming that its tests passed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer.errors import ConfigurationError

from . import processes

CONFINED = Path(__file__).with_name("confined.py")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended: `well` when it came to its end, `killed` by a signal, `timed_out`; what it
    printed; and the CPU seconds of its whole process."""

    well: bool
    killed: bool
    timed_out: bool
    output: str
    cpu_seconds: float


def run(
    program: str,
    seconds: float,
    memory_mb: int,
    tests: Sequence[str] = (),
    stdin: str = "",
    name: str = "__main__",
) -> Ran:
    """Run `program` under the module name `name`, then each of `tests` in its names.

    Args:
        seconds: wall-clock limit; CPU time is bounded by the whole second after it, so that the clock is what ends
            a program without end.
        memory_mb: address space.

    Raises:
        ConfigurationError: this machine cannot confine programs.
    """
    word, unconfined_word = secrets.token_hex(16), secrets.token_hex(16)
    request = {
        "program": program,
        "tests": list(tests),
        "name": name,
        "memory_mb": memory_mb,
        "cpu_seconds": math.floor(seconds) + 1,
        "word": word,
        "unconfined_word": unconfined_word,
    }
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="program-"))
        given, fed, printed, report = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(4))
        given.write(json.dumps(request).encode())
        fed.write(stdin.encode())
        for file in (given, fed):
            file.seek(0)
        numbers = map(str, (given.fileno(), report.fileno(), os.getpid()))
        process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-S", str(CONFINED), *numbers],
            stdin=fed,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
            pass_fds=(given.fileno(), report.fileno()),
            start_new_session=True,
        )
        timed_out, spent = _ended(process, seconds)
        for file in (printed, report):
            file.seek(0)
        said = report.read().decode(errors="replace")
        output = printed.read().decode(errors="replace")
    if said == unconfined_word:
        raise ConfigurationError(
            "task.verifiers names `code`, but this machine cannot confine foreign programs (Linux with seccomp on "
            "x86-64 or 64-bit Arm is needed, and a container that allows it); verify code elsewhere"
        )
    return Ran(said == word and not timed_out, process.returncode < 0 and not timed_out, timed_out, output, spent)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> tuple[bool, float]:
    """Wait; whether the program had to be killed, and the CPU seconds that it took."""
    timed_out = True
    try:
        timed_out = not processes.ends_within(process, seconds)
    finally:
        spent = processes.end(process)
    return timed_out, spent
