"""Errors of the science room. Each names the field, the value and the way out."""

from __future__ import annotations

from typing import Any


class FieldError(ValueError):
    """An argument that cannot be.

    Attributes:
        field: the argument at fault, e.g. `compute`.
        value: the offending value.
        way_out: what to do about it.
    """

    def __init__(self, field: str, value: Any, message: str, way_out: str):
        self.field = field
        self.value = value
        self.way_out = way_out
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


class PriorError(ValueError):
    """A prior that does not exist or cannot be used."""


class FrozenError(ValueError):
    """A stored frozen forecast that cannot be read, or evaluations that do not follow it."""


class CompareError(FieldError):
    """Runs that cannot be compared."""


class PlanError(FieldError):
    """A sweep that cannot be planned."""
