"""What the tests of the science share."""

from __future__ import annotations

import pytest

from forecurve.science.compiled import compile_at_once


@pytest.fixture(autouse=True, scope="session")
def loops_are_compiled() -> None:
    """Where a loop has changed since it was compiled, too: numpy would do its work for the first half a minute."""
    compile_at_once()
