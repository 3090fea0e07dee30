"""Runs are compared, planned and told of one another in one unit of compute and one range of the reward."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import FieldError
from .curve import Curve


def check_one_unit(curves: Iterable[Curve], error: type[FieldError], needed: str, way_out: str) -> None:
    """That all curves, if there are any, count compute in one unit.

    Args:
        curves: the runs.
        error: what is raised.
        needed, way_out: what it says.

    Raises:
        FieldError: `error`, of the field `unit`.
    """
    units = sorted({curve.unit for curve in curves})
    if len(units) > 1:
        raise error("unit", ", ".join(units), needed, way_out)


def check_one_range(curves: Iterable[Curve], error: type[FieldError], needed: str, way_out: str) -> None:
    """That the rewards of all curves, if there are any, have one range.

    Args:
        curves, error, needed, way_out: as in `check_one_unit`.

    Raises:
        FieldError: `error`, of the field `bounds`.
    """
    ranges = sorted({curve.bounds for curve in curves})
    if len(ranges) > 1:
        raise error("bounds", ranges, needed, way_out)
