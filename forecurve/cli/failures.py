"""From an exception to a line, an exit code and a JSON body."""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from forecurve.client.errors import ApiError, ClientError
from forecurve.client.lock import InUse
from forecurve.recipes import RecipeError
from forecurve.recipes.wording import in_words

from .asking.commands_for_calls import fault_in_commands, in_commands
from .asking.flags_for_fields import called_by, in_flags, name_of
from .errors import BAD_INPUT, FAILURE, CliError

Failure = tuple[str, int, dict[str, Any]]

CONFLICT = 409


def describe(error: Exception, arguments: Sequence[str] = ()) -> Failure | None:
    """What to say of an error that a caller can understand; None for a bug. `arguments` are those of the command."""
    if isinstance(error, CliError):
        body = _body(_code(error.exit_code), errors=_faulty_flag(str(error), arguments)) | error.body
        return _in_flags(str(error), error.body.get("errors", ()), arguments), error.exit_code, body
    if isinstance(error, ApiError):
        return _api(error, arguments)
    if isinstance(error, RecipeError):
        return "; ".join(error.lines), BAD_INPUT, _body(_code(BAD_INPUT), errors=error.problems)
    if isinstance(error, InUse):  # until its writer has ended
        return str(error), FAILURE, _body(_code(FAILURE))
    if isinstance(error, ClientError):
        return str(error), BAD_INPUT, _body(_code(BAD_INPUT), errors=error.errors)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"could not be written: {error.strerror}", FAILURE, _body(_code(FAILURE))
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give it less at once", FAILURE, _body(_code(FAILURE))
    return _usage(error, arguments)


def _body(code: str, *, status: int | None = None, errors: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """What every error has with --json beside its text: the same members as the service's problems."""
    return {"code": code, "status": status, "errors": [dict(fault) for fault in errors]}


def _code(exit_code: int) -> str:
    """The service's word for bad input; a failure here has none of its own."""
    return "invalid" if exit_code == BAD_INPUT else "failed"


def _api(error: ApiError, arguments: Sequence[str]) -> Failure:
    """A conflict is a failure: the command was right, and may go through once what it is about has changed."""
    body = _body(error.code, status=error.status, errors=[fault_in_commands(fault) for fault in error.errors])
    if error.status == CONFLICT:
        return in_commands(_in_flags(" ".join(error.detail.split()), error.errors, arguments)), FAILURE, body
    called = called_by(arguments) if error.errors else str
    told = ApiError(error.detail, errors=[fault | {"field": called(str(fault.get("field")))} for fault in error.errors])
    return in_commands(told.sentence()) + _when(error), BAD_INPUT if error.is_bad_input else FAILURE, body


def _in_flags(text: str, faults: Sequence[Mapping[str, Any]], arguments: Sequence[str]) -> str:
    return in_flags(text, faults, called_by(arguments)) if faults else text


def _when(error: ApiError) -> str:
    """How long to wait, where the service's text does not say it."""
    seconds = None if error.retry_after_s is None else f"{max(1, math.ceil(error.retry_after_s))} s"
    return "" if seconds is None or f" {seconds}" in error.sentence() else f"; try again in {seconds}"


def _usage(error: Exception, arguments: Sequence[str]) -> Failure | None:
    """Errors of the command line itself; newer Typers carry their own click, so they are known by their shape."""
    name = type(error).__name__
    if name == "Abort":
        return "", 130, {}
    if name == "Exit":
        return "", int(getattr(error, "exit_code", 0)), {}
    if name == "NoArgsIsHelpError":
        return str(error.format_message()), BAD_INPUT, _body("usage")  # type: ignore[attr-defined]
    if hasattr(error, "format_message"):
        text = _plain(error, " ".join(str(error.format_message()).split()))
        given = _given(getattr(error, "param", None), arguments, text)
        if given is not None and repr(given) not in text:
            text = f"{text.rstrip('.')} (got {given!r})"
        context = getattr(error, "ctx", None)
        text += _where_a_recipe_goes(context, text)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        code = int(getattr(error, "exit_code", BAD_INPUT))
        return f"{text}{hint}", code, _body("usage", errors=_faulty_parameter(error, text, given))
    return None


def _where_a_recipe_goes(context: Any, text: str) -> str:
    """A file or a preset without a flag is what other commands take; those with --recipe take no argument."""
    takes = {flag for parameter in context.command.params for flag in parameter.opts} if context is not None else set()
    is_too_many = text.startswith("Got unexpected extra argument")
    return "; give a recipe's file by --recipe, a preset by --preset" if is_too_many and "--recipe" in takes else ""


def _plain(error: Exception, text: str) -> str:
    """The message without the words of pydantic, which newer Typers read values with."""
    faults = getattr(error.__cause__, "errors", None)
    if faults is None:
        return text
    fault = faults()[0]
    said = " ".join(fault["msg"].split())
    return text.replace(said, in_words(fault["type"], fault.get("ctx", {}), said.removeprefix("Value error, ")))


def _given(parameter: Any, arguments: Sequence[str], told: str) -> str | None:
    """What stands behind a flag on the command line; the message of a value that does not hold leaves it out.

    Of a flag that is given several times the value that is told of counts, else the last, as for the command itself.
    """
    return _behind(
        [] if parameter is None else [name for name in parameter.opts if name.startswith("-")], arguments, told
    )


def _behind(flags: Sequence[str], arguments: Sequence[str], told: str) -> str | None:
    values: list[str] = []
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag in flags:
            values += [value] if equals else arguments[at + 1 : at + 2]
    return next((value for value in values if repr(value) in told), values[-1] if values else None)


def _faulty_flag(text: str, arguments: Sequence[str]) -> list[dict[str, Any]]:
    """The flag that an error of ours begins with, and what was given with it."""
    found = re.match(r"(--[a-z-]+): ", text)
    if found is None:
        return []
    return [{"field": found[1], "value": _behind([found[1]], arguments, text), "message": text}]


def _faulty_parameter(error: Exception, text: str, given: str | None) -> list[dict[str, Any]]:
    """The flag or argument at fault, where the error is about one."""
    field = name_of(getattr(error, "param", None)) or getattr(error, "option_name", None)
    return [] if field is None else [{"field": field, "value": given, "message": text}]
