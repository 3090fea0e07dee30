"""How many digits a number deserves: the one rule of sentences, tables, pages and messages."""

from __future__ import annotations


def decimals(width: float) -> int:
    """Digits after the point that an interval of this width supports: two, three below 0.02, four below 0.002; one
    from 2 on and none from 20 on, which only rewards in percent and the like have."""
    if width >= 2:
        return 1 if width < 20 else 0
    return 2 if width >= 0.02 else 3 if width >= 0.002 else 4


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
