"""A process that calls one verifier function, for `WorkerPool`: JSON lines in, JSON lines out.

    python -m trainer.verifiers.worker LIFELINE module:function MEMORY_MB
    python -m trainer.verifiers.worker LIFELINE registered-name MEMORY_MB MODULE...

LIFELINE is the reading end of a pipe whose other end only the trainer has: it closes when the trainer is gone.

Whatever the function prints goes to standard error, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from forecurve.recipes.schema.tasks import VERIFIERS
from forecurve.verifiers import VerifierError, registered

MEGABYTE = 1 << 20


def main(lifeline: int, specification: str, memory_mb: int, modules: Sequence[str]) -> None:
    """Answer requests until standard input ends; the first line out says whether the function was found."""
    end_with(lifeline)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        check = find(specification, modules)
    except VerifierError as error:
        _say(answers, {"error": str(error)})
        return
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module does when it is imported, we say so
        _say(answers, {"error": f"it could not be loaded: {type(error).__name__}: {error}"})
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb * MEGABYTE, memory_mb * MEGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _say(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _say(answers, _told(check(request["response"], request["answer"])))
        except Exception as error:  # noqa: BLE001 - a verifier that raises is counted, and the next response comes
            _say(answers, {"error": f"{type(error).__name__}: {error}"[:500]})


def end_with(lifeline: int) -> None:
    """Have the kernel kill this process and all that it starts when the other end of the pipe closes.

    A thread of ours could not: a hung verifier may never let go of the interpreter. The kernel's own signal for a
    parent's death comes when the thread that started this process ends.
    """
    os.set_inheritable(lifeline, False)
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # closed before the kernel was asked to tell
        os.killpg(0, signal.SIGKILL)


def _told(verdict: Any) -> dict[str, object]:
    """What a verifier returned, None for false. A reward or a text, true in Python whatever it says, is no verdict."""
    if verdict is None or verdict == bool(verdict):
        return {"passed": bool(verdict)}
    return {"no_verdict": f"{verdict!r:.60}"}


def find(specification: str, modules: Sequence[str] = ()) -> Callable[[str, str], object]:
    """The function `module:function`, or the one that one of `modules` registers under this name.

    Raises:
        ImportError, AttributeError, TypeError: there is no such function, or it cannot be called.
        VerifierError: a module cannot be imported, or none of them registers the name.
    """
    if ":" not in specification:
        return _find_registered(specification, modules)
    module, _, name = specification.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{specification} is a {type(function).__name__}, not a function")
    found: Callable[[str, str], object] = function
    return found


def _find_registered(name: str, modules: Sequence[str]) -> Callable[[str, str], object]:
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            reason = f"{type(error).__name__}: {error}"
            raise VerifierError(f"task.verifier_modules names {module!r}, and its import fails: {reason}") from None
    known = registered()
    if name not in known:
        raise VerifierError(
            f"no verifier is registered under that name; known are {', '.join([*VERIFIERS, *sorted(known)])}. Put "
            f'`@forecurve.verifiers.register("{name}")` above a function of (response, answer), and its module into '
            "task.verifier_modules"
        )
    return known[name]


def _say(answers: TextIO, message: dict[str, object]) -> None:
    """One line, with the CPU seconds that this process and the children it waited for took so far."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = sum(of.ru_utime + of.ru_stime for of in used)
    print(json.dumps(message | {"cpu_seconds": spent}), file=answers, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
