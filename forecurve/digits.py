"""How many digits a number deserves: the one rule of sentences, tables, pages and messages."""

from __future__ import annotations

import math

_MOST = 9  # digits after the point
_OF_A_POINT = 4  # where an interval has no width


def decimals(width: float) -> int:
    """Digits after the point that an interval of this width supports: two, three below 0.02, one more for each further
    tenth; one from 2 on and none from 20 on, which only rewards in percent and the like have.

    >>> [decimals(width) for width in (30, 2, 0.3, 0.02, 0.019, 0.0019, 3e-6, 0)]
    [0, 1, 2, 2, 3, 4, 6, 4]
    """
    if width >= 2:
        return 1 if width < 20 else 0
    if width <= 0:
        return _OF_A_POINT
    return 2 if width >= 0.02 else min(2 + math.ceil(math.log10(0.02 / width)), _MOST)


def short_exponent(written: str) -> str:
    """A number as Python writes it, without the zeros before its exponent, as scripts do: `3e-7` for `3e-07`."""
    mantissa, _, exponent = written.partition("e")
    return f"{mantissa}e{int(exponent):+d}" if exponent else mantissa


def as_given(value: float) -> str:
    """What a person gave, a budget say, with all its digits.

    >>> as_given(1250.0), as_given(0.7512), as_given(3.25e25)
    ('1,250', '0.7512', '3.25e+25')
    """
    return short_exponent(f"{value:,.10g}")
