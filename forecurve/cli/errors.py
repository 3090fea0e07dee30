"""What a command says when it cannot do its work: one line with the way out, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BAD_INPUT = 2
FAILURE = 1


class CliError(Exception):
    """Ends a command with one line on stderr.

    Attributes:
        exit_code: 2 when the caller can mend the input, 1 when the work failed.
        body: members that `--json` prints beside `error`, over those that every error has.
    """

    def __init__(self, text: str, *, exit_code: int = FAILURE, body: dict[str, Any] | None = None):
        super().__init__(text)
        self.exit_code = exit_code
        self.body = body or {}


def bad_input(text: str, *, errors: Sequence[dict[str, Any]] = ()) -> CliError:
    """The caller gave something that does not hold; `errors` say it by field, value and message."""
    return CliError(text, exit_code=BAD_INPUT, body={"errors": list(errors)} if errors else {})
