"""The `forecurve` command."""

from __future__ import annotations

import io
import json
import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run a command line; the exit code: 0 done, 2 bad input, 1 failure or conflict, 130 interrupted.

    docs/reference/cli.md says when which.
    """
    code = _run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on (`... | head -1`), as the framework says of what is longer than a buffer
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left when the process ends
        return code or 1
    return code


def _run(arguments: list[str]) -> int:
    from .app import build

    _print_anything()
    try:
        code = build()(arguments, prog_name="forecurve", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - a bug is raised again by _report
        return _report(error, arguments)
    return code if isinstance(code, int) else 0


def _print_anything() -> None:
    """A terminal that is not UTF-8 shows names of another alphabet as `\\u65e5`; no command fails for them."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _report(error: Exception, arguments: list[str]) -> int:
    """One line on stderr (or one object with --json) for what a caller can understand; else the traceback."""
    from forecurve.signs import visible

    from .failures import describe

    failure = describe(error, arguments)
    if failure is None:
        raise error
    text, code, body = failure
    if text and "--json" in arguments:
        print(json.dumps({"error": text, **body}), file=sys.stderr)
    elif text:
        said = "\n".join(visible(line) for line in text.split("\n"))  # names of files and fields come from anywhere
        print(said if "\n" in said else f"forecurve: {said}", file=sys.stderr)  # a command's help has several lines
    return code
