"""Numbers in sentences: never with more digits than the interval supports, and no sign before what is rounded to 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecurve.digits import as_given, decimals, short_exponent

from .values import Estimate

_PLAIN = (1e-6, 1e12)  # numbers that are written without an exponent
_MOST_DIGITS = 10


def interval_text(estimate: Estimate) -> str:
    """`0.77 to 0.80`; a metric's thousands stand apart, `1,020 to 1,150`."""
    places = decimals(estimate.width)
    return f"{estimate.lower:z,.{places}f} to {estimate.upper:z,.{places}f}"


def level_text(estimate: Estimate) -> str:
    """`0.78 (90 %: 0.77 to 0.80)`."""
    return f"{estimate.median:z,.{decimals(estimate.width)}f} (90 %: {interval_text(estimate)})"


def beside_text(value: float, estimate: Estimate, finer: int = 0) -> str:
    """A reward with the digits of the estimate that it is told beside: `0.60` would be outside of `0.582 to 0.599`.
    `finer`: so many digits more, in a column that is to be ranked.

    >>> beside_text(0.5968, Estimate(0.590, 0.582, 0.599)), beside_text(0.5968, Estimate(0.590, 0.582, 0.599), finer=1)
    ('0.597', '0.5968')
    """
    return f"{value:z,.{decimals(estimate.width) + finer}f}"


def reward_text(value: float, width: float) -> str:
    """A reward without an interval, to a hundredth of the range of rewards, which is this wide, or finer.

    >>> reward_text(0.364, 1.0), reward_text(36.4, 100.0), reward_text(0.00364, 0.01)
    ('0.36', '36.4', '0.0036')
    """
    return f"{value:z,.{decimals(width / 50)}f}"


def gain_text(estimate: Estimate) -> str:
    """`+0.03 (0.01 to 0.05)`.

    >>> gain_text(Estimate(2e-7, -1e-17, 0.0004))
    '+0.0000 (0.0000 to 0.0004)'
    """
    return f"{estimate.median:+z,.{decimals(estimate.width)}f} ({interval_text(estimate)})"


def mean_text(value: float) -> str:
    """An amount of reward without an interval: a sign and two significant digits.

    >>> mean_text(0.0123), mean_text(-0.0000731), mean_text(157.3)
    ('+0.012', '-0.000073', '+160')
    """
    return f"{'-' if value < 0 else '+'}{compute_text(abs(value))}"


def short_of_text(value: float, limit: float) -> str:
    """Two significant digits, or as many as show that it is below the limit.

    >>> short_of_text(0.00121, 0.00534), short_of_text(0.001196, 0.0012), short_of_text(15.2, 130)
    ('0.0012', '0.001196', '15')
    """
    enough = (digits for digits in range(2, _MOST_DIGITS) if float(f"{value:.{digits}g}") < limit)
    return compute_text(value, next(enough, _MOST_DIGITS))


def compute_text(value: float, digits: int = 2) -> str:
    """Two significant digits: `0.41`, `3.4`, `38`, `2,300`; with an exponent where that is shorter: `3.2e+25`."""
    if value == 0 or not np.isfinite(value) or not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return short_exponent(f"{value:.{digits}g}")
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.{places}f}".rstrip("0").rstrip(".") if places else f"{rounded:,.0f}"


def further_text(to: float, start: float) -> str:
    """The compute to which a run goes on from `start`: two digits, or as many as lie beyond that, as it is and as told
    beside it in two digits (`apart_texts` tells both alike).

    >>> further_text(640, 510), further_text(12.398, 11.927), further_text(10_430, 10_400)
    ('640', '12.4', '10,430')
    """
    least = max(start, float(f"{start:.2g}"))
    enough = (digits for digits in range(2, _MOST_DIGITS) if float(f"{to:.{digits}g}") > least)
    return compute_text(to, next(enough, _MOST_DIGITS))


def apart_texts(*computes: float) -> list[str]:
    """Computes of one sentence: two digits, or as many as the least difference between two of them has.

    >>> apart_texts(480, 16_000), apart_texts(27_010, 27_130), apart_texts(5.0, 5.0)
    (['480', '16,000'], ['27,000', '27,100'], ['5', '5'])
    """
    gap = min(np.diff(np.unique(computes)), default=np.inf)
    beyond = 2 if not np.isfinite(gap) else int(np.floor(np.log10(max(computes))) - np.floor(np.log10(gap))) + 1
    return [compute_text(compute, int(np.clip(beyond, 2, _MOST_DIGITS))) for compute in computes]


def names_text(names: Sequence[str], most: int = 5) -> str:
    """Names in a row; of many the first, and how many more there are.

    >>> names_text(["a", "b", "c"]), names_text(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b and 1 more')
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def share_text(share: float) -> str:
    """`97 %`; never 0 or 100 %, which no finite number of draws supports."""
    if share >= 0.995:
        return "over 99 %"
    return "under 1 %" if share < 0.005 else f"{share:.0%}".replace("%", " %")


def ending_text(end: Estimate, rests_on: str, budget: float, unit: str) -> str:
    """How a run is expected to end at its budget, and what the interval rests on.

    >>> ending_text(Estimate(0.615, 0.603, 0.627), "adjusted by 5 past runs", 16_000, "GPU-hours")
    'Expected to end at 0.61 (90 %, adjusted by 5 past runs: 0.60 to 0.63) when 16,000 GPU-hours are spent.'
    """
    level = f"{end.median:z,.{decimals(end.width)}f} (90 %, {rests_on}: {interval_text(end)})"
    return f"Expected to end at {level} when {as_given(budget)} {unit} are spent."
