"""A question before what cannot be taken back."""

from __future__ import annotations

import sys

from ..errors import CliError, bad_input


def confirm(consequence: str) -> None:
    """Go on only when a person agrees; where nobody can be asked, --yes is needed."""
    import typer

    if not sys.stdin.isatty():
        raise bad_input(f"{consequence}; give --yes, for there is nobody here to ask")
    if not typer.confirm(f"{consequence[0].upper()}{consequence[1:]}. Go on?", err=True):
        raise CliError("nothing was changed")
