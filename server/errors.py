"""Errors that carry their HTTP answer. Services raise them; one handler turns them into problem+json (RFC 9457)."""

from __future__ import annotations

from typing import Any, Self


class Problem(Exception):
    """Base of every error that a caller can act on.

    Attributes:
        status: HTTP status.
        code: stable machine-readable name; `type` in the answer is `urn:forecurve:problem:<code>`.
        detail: what happened, to which thing, and the way out.
        errors: one entry per fault with `field`, `value` and `message`.
        extra: further members of the answer, e.g. the allowed transitions.
        retry_after_s: seconds after which the same request may be answered; None where it is never.
    """

    status = 500
    code = "internal"
    title = "Internal error"
    retry_after_s: int | None = None

    def __init__(self, detail: str, *, errors: list[dict[str, Any]] | None = None, **extra: Any):
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
        self.extra = extra

    @classmethod
    def field(cls, field: str, value: Any, message: str, **extra: Any) -> Self:
        """An error about one field of the request."""
        return cls(f"{field}: {message}", errors=[{"field": field, "value": value, "message": message}], **extra)


class NotFound(Problem):
    status, code, title = 404, "not-found", "Not found"


class Invalid(Problem):
    status, code, title = 422, "invalid", "The request does not hold"


class Conflict(Problem):
    status, code, title = 409, "conflict", "The request conflicts with the present state"


class Unauthenticated(Problem):
    status, code, title = 401, "unauthenticated", "A token is needed"


class Forbidden(Problem):
    status, code, title = 403, "forbidden", "The token does not allow this"


class TooLarge(Problem):
    status, code, title = 413, "too-large", "The request is too large"
