"""Errors of the science room. Each names the field, the value and the way out."""

from __future__ import annotations

from typing import Any


class FieldError(ValueError):
    """An argument that cannot be.

    Attributes:
        field: the argument at fault, e.g. `compute`.
        value: the offending value.
        way_out: what to do about it.
        message: what is wrong.
        at: where one evaluation is at fault, its place among those that were given, from 0.
    """

    def __init__(self, field: str, value: Any, message: str, way_out: str, at: int | None = None):
        self.at = at
        self.field = field
        self.value = value
        self.way_out = way_out
        self.message = message
        super().__init__(f"{field}: {message}, got {value}; {way_out}")


class CurveError(FieldError):
    """A curve that cannot be fitted."""


class TooFewPoints(CurveError):
    """Fewer evaluations than the model needs."""


class TooManyPoints(CurveError):
    """More evaluations than a validation curve can sensibly have."""


class UnequalLengths(CurveError):
    """Two columns of one curve have different lengths."""


class NotFinite(CurveError):
    """A NaN or an infinity where a number is needed."""


class ComputeOrder(CurveError):
    """Compute is negative, repeated or decreasing."""


class RewardRange(CurveError):
    """A reward outside the stated range."""


class BadCount(CurveError):
    """Prompts, samples, counts or a variance that cannot be."""


class PriorError(FieldError):
    """A prior that does not exist or cannot be used with this curve."""


class FrozenError(FieldError):
    """A forecast that cannot be frozen or read back, or evaluations that do not follow it."""


class AdviceError(FieldError):
    """A question about a run that has no answer."""


class CompareError(FieldError):
    """Runs that cannot be compared."""


class PlanError(FieldError):
    """A sweep that cannot be planned."""
