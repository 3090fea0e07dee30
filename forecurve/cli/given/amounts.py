"""Numbers given with a flag, held against what can be meant: every other one is refused by its flag and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE

from ..errors import bad_input

if TYPE_CHECKING:
    from forecurve.science import Curve

_LEAST_SHARE = 1e-9  # of the range of rewards: no evaluation tells less


def check_compute(flag: str, value: float | None, of: str = "file") -> None:
    """An amount of compute that is more than none, in the unit of what it is `of`."""
    _check(flag, value, LEAST_COMPUTE, MOST_COMPUTE, "compute", f"give it in the {of}'s unit of compute")


def check_difference(flag: str, value: float | None, curves: Sequence[Curve]) -> None:
    """A difference between rewards of these curves."""
    width = _width(curves)
    way_out = f"rewards here have a range of {width:g} (--range)"
    _check(flag, value, _LEAST_SHARE * width, width, "a difference of rewards", way_out)


def check_price(flag: str, value: float | None, curves: Sequence[Curve]) -> None:
    """A gain in reward for a unit of compute."""
    width = _width(curves)
    way_out = "give the least gain in reward for one unit of compute, e.g. 1e-6"
    _check(flag, value, width / MOST_COMPUTE, width / LEAST_COMPUTE, "a gain in reward", way_out)


def _width(curves: Sequence[Curve]) -> float:
    low, high = curves[0].bounds
    return high - low


def _check(flag: str, value: float | None, least: float, most: float, what: str, way_out: str) -> None:
    if value is None or least <= value <= most:
        return
    needed = "a positive number" if not value > 0 else f"{what} from {least:g} to {most:g}"
    raise bad_input(f"{flag}: {needed} is needed, got {value:g}; {way_out}")
