"""From an exception to a line, an exit code and a JSON body."""

from __future__ import annotations

import errno
from typing import Any

from forecurve.client.errors import ApiError, ClientError
from forecurve.recipes import RecipeError

from .errors import BAD_INPUT, FAILURE, CliError

Failure = tuple[str, int, dict[str, Any]]


def describe(error: Exception) -> Failure | None:
    """What to say of an error that a caller can understand; None for a bug."""
    if isinstance(error, CliError):
        return str(error), error.exit_code, error.body
    if isinstance(error, ApiError):
        return _api(error)
    if isinstance(error, RecipeError):
        return "; ".join(error.lines), BAD_INPUT, {"errors": error.problems}
    if isinstance(error, ClientError):
        return str(error), BAD_INPUT, {}
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"could not be written: {error.strerror}", FAILURE, {}
    return _usage(error)


def _api(error: ApiError) -> Failure:
    code = BAD_INPUT if error.is_bad_input else FAILURE
    return error.sentence(), code, {"code": error.code, "status": error.status, "errors": error.errors}


def _usage(error: Exception) -> Failure | None:
    """Errors of the command line itself; newer Typers carry their own click, so they are known by their shape."""
    name = type(error).__name__
    if name == "Abort":
        return "", 130, {}
    if name == "Exit":
        return "", int(getattr(error, "exit_code", 0)), {}
    if name == "NoArgsIsHelpError":
        return str(error.format_message()), BAD_INPUT, {}  # type: ignore[attr-defined]
    if hasattr(error, "format_message"):
        text = " ".join(str(error.format_message()).split())
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        return f"{text}{hint}", int(getattr(error, "exit_code", BAD_INPUT)), {}
    return None
