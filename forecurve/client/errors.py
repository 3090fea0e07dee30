"""Errors of the client. They are raised at start-up and by the API client; a training loop never sees one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ClientError(RuntimeError):
    """The client cannot be set up: something is missing or wrong in how it was called. The text says the way out.

    Attributes:
        errors: one entry per fault, each with `field`, `value` and `message`, where fields are at fault.
    """

    def __init__(self, text: str = "", errors: Sequence[Mapping[str, Any]] = ()):
        super().__init__(text)
        self.errors = [dict(fault) for fault in errors]


class ApiError(RuntimeError):
    """The service refused or could not be reached.

    Attributes:
        status: HTTP status, or None when no answer came.
        code: stable machine-readable name of the problem (`superseded`, `invalid`, `unreachable`, ...).
        detail: what happened and the way out.
        errors: one entry per fault, each with `field`, `value` and `message`.
        request_id: names the request in the service's log.
        retry_after_s: seconds after which to ask again, where the service said so.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        code: str = "unknown",
        errors: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
        body: dict[str, Any] | None = None,
        retry_after_s: float | None = None,
    ):
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.code = code
        self.errors = errors or []
        self.request_id = request_id
        self.body = body or {}
        self.retry_after_s = retry_after_s

    @property
    def is_bad_input(self) -> bool:
        """True when the caller can mend the request; False when access or the service is at fault."""
        return self.status is not None and 400 <= self.status < 500 and self.status not in (401, 403, 408, 425, 429)

    @property
    def is_away(self) -> bool:
        """No answer, or one that says nothing of what was asked for."""
        status = self.status or 0
        return self.code == "unreachable" or status >= 500 or status in (408, 425, 429)

    def sentence(self) -> str:
        """One line: every fault with its field and value, or the detail."""
        faults = [_fault(fault) for fault in self.errors]
        return "; ".join(faults) if faults else " ".join(self.detail.split())


def _fault(fault: dict[str, Any]) -> str:
    value = fault.get("value")
    shown = "" if value is None else f" (got {_short(value)})"
    return f"{fault.get('field')}: {fault.get('message')}{shown}"


def _short(value: Any, limit: int = 80) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
