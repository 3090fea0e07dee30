"""What a verifier says of a response."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Protocol


class Verdict(Enum):
    """`TIMEOUT` and `CRASH` are the verifier's, or of the program it ran; both count as not passed."""

    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CRASH = "crash"


class Verifier(Protocol):
    """Checks responses against a known answer, whatever the responses are."""

    def start(self) -> None:
        """Make sure that it can work; ConfigurationError when it cannot. Need not be called."""

    def judge(self, responses: Sequence[str], answer: str) -> Iterable[Verdict]:
        """One verdict a response, in order, each as soon as it and those before it are there."""

    def cpu_seconds(self) -> float:
        """CPU time that processes of the verifier took so far, in seconds, as far as it knows by the last verdict."""

    def close(self) -> None:
        """End all processes of the verifier."""
