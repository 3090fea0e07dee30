"""Verifiers of your own, by name: what a recipe's `task.verifiers` may name beside math, code and exact.

    from forecurve.verifiers import register

    @register("riddle")
    def riddle(response: str, answer: str) -> bool:
        return answer.lower() in response.lower()

The recipe names the module in `task.verifier_modules`, and the name in `task.verifiers`. Every process that judges
responses imports the module by itself, so that nothing but the recipe has to travel.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from forecurve.recipes.schema.tasks import REGISTERED_NAME, VERIFIERS

Check = Callable[[str, str], object]
"""Takes a response and the known answer; returns True or False (1, 0 and None serve too). A run ends by name where it
returns anything else: a score such as -1 would be true."""
F = TypeVar("F", bound=Check)

_registered: dict[str, Check] = {}


class VerifierError(ValueError):
    """A verifier that cannot be registered, or a name under which none is."""


def register(name: str) -> Callable[[F], F]:
    """Make a function the verifier `name`: letters, digits, `_`, `.` and `-`. The function itself stays as it is.

    Raises:
        VerifierError: the name is not such a name or is taken, or the function does not take a response and an answer.
    """
    if not REGISTERED_NAME.fullmatch(name):
        raise VerifierError(f"a verifier cannot be registered as {name!r}: use letters, digits, `_`, `.` and `-`")
    if name in VERIFIERS:
        raise VerifierError(
            f"a verifier cannot be registered as {name!r}, which comes with the trainer; choose another"
        )

    def keep(function: F) -> F:
        _refuse_signature(name, function)
        taken = _registered.get(name)
        if taken is not None and _place(taken) != _place(function):  # a module may be loaded again
            raise VerifierError(
                f"two verifiers are registered as {name!r}: {_place(taken)} and {_place(function)}; rename one"
            )
        _registered[name] = function
        return function

    return keep


def registered() -> dict[str, Check]:
    """What this process has registered so far, by name."""
    return dict(_registered)


def _refuse_signature(name: str, function: Check) -> None:
    try:
        inspect.signature(function).bind("response", "answer")
    except TypeError as error:
        raise VerifierError(f"verifier {name!r}, {_place(function)}, must take (response, answer): {error}") from None
    except ValueError:  # written in C, and silent about what it takes
        return


def _place(function: Check) -> str:
    """Where a function is from, for a person."""
    return f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}"
