"""A process that calls one verifier function, for `WorkerPool`: JSON lines in, JSON lines out.

    python -m trainer.verifiers.worker module:function MEMORY_MB

Whatever the function prints goes to standard error, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from collections.abc import Callable
from typing import TextIO

MEGABYTE = 1 << 20


def main(specification: str, memory_mb: int) -> None:
    """Answer requests until standard input ends; the first line out says whether the function was found."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        check = find(specification)
    except Exception as error:  # noqa: BLE001 - whatever a module does when it is imported, the user is told
        _say(answers, {"error": f"it could not be loaded: {type(error).__name__}: {error}"})
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb * MEGABYTE, memory_mb * MEGABYTE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _say(answers, {"ready": True})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            _say(answers, {"passed": bool(check(request["response"], request["answer"]))})
        except Exception as error:  # noqa: BLE001 - a verifier that raises is counted, and the next response comes
            _say(answers, {"error": f"{type(error).__name__}: {error}"[:500]})


def find(specification: str) -> Callable[[str, str], object]:
    """The function `module:function`.

    Raises:
        ImportError, AttributeError, TypeError: there is no such thing, or it cannot be called.
    """
    module, _, name = specification.partition(":")
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{specification} is a {type(function).__name__}, not a function")
    found: Callable[[str, str], object] = function
    return found


def _say(answers: TextIO, message: dict[str, object]) -> None:
    print(json.dumps(message), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
