"""Sentences: what a colleague would say, never with more digits than the interval supports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from forecurve.digits import decimals, short_exponent

from .margins import least_gain
from .sigmoid import compute_at
from .values import Estimate

if TYPE_CHECKING:
    from .advice import Advice
    from .fitting import Fit
    from .hindsight import Hindsight

_PLAIN = (1e-6, 1e12)  # numbers that are written without an exponent


def interval_text(estimate: Estimate) -> str:
    """`0.77 to 0.80`."""
    places = decimals(estimate.width)
    return f"{estimate.lower:.{places}f} to {estimate.upper:.{places}f}"


def level_text(estimate: Estimate) -> str:
    """`0.78 (90 %: 0.77 to 0.80)`."""
    return f"{estimate.median:.{decimals(estimate.width)}f} (90 %: {interval_text(estimate)})"


def gain_text(estimate: Estimate) -> str:
    """`+0.03 (0.01 to 0.05)`."""
    places = decimals(estimate.width)
    return f"{estimate.median:+.{places}f} ({estimate.lower:.{places}f} to {estimate.upper:.{places}f})"


def compute_text(value: float) -> str:
    """Two significant digits: `0.41`, `3.4`, `38`, `2,300`; with an exponent where that is shorter: `3.2e+25`."""
    if value == 0 or not np.isfinite(value) or not _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return short_exponent(f"{value:.2g}")
    places = max(0, 1 - int(np.floor(np.log10(abs(value)))))
    rounded = float(f"{value:.2g}")
    return f"{rounded:.{places}f}".rstrip("0").rstrip(".") if places else f"{rounded:,.0f}"


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


def sentence(
    fit: Fit,
    now: float | None = None,
    budget: float | None = None,
    target: float | None = None,
    hindsight: Hindsight | None = None,
) -> str:
    """The one line above a run's curve.

    Args:
        fit: the forecast.
        now: compute spent; the last evaluation's when left out.
        budget: compute that it may spend; adds the advice.
        target: a reward to reach, which the advice then heeds.
        hindsight: as in `advise`.
    """
    here = fit.curve.now if now is None else float(now)
    if fit.misfit_detail is not None and fit.misfit_detail.withheld:
        return _misfit_sentence(fit)
    advice = None if budget is None else _advice(fit, here, budget, target, hindsight)
    if not fit.ceiling_known:
        return _unknown_sentence(fit, here, budget, advice)
    reached = _share_reached(fit, here)
    more = _price_of_more(fit, here) + _by_past_runs(fit, advice)
    action = "" if advice is None else f": {advice.action}"
    source = "" if fit.ceiling_identified else f" by {fit.prior.name}, hardly by its own data yet"
    doubt = " The curve bends otherwise than a sigmoid: its end is less sure." if fit.misfit == "shape" else ""
    return f"Ceiling {level_text(fit.A)}{source}, {reached} of it reached; {more}{action}.{doubt}"


def _misfit_sentence(fit: Fit) -> str:
    found = fit.misfit_detail
    assert found is not None
    unit = f" {fit.unit}" if found.since is not None else ""
    return f"{found.sentence}{unit}: no ceiling can be read from this curve."


def _unknown_sentence(fit: Fit, now: float, budget: float | None, advice: Advice | None) -> str:
    head = f"Ceiling not identified yet ({interval_text(fit.A)})"
    if advice is not None and advice.action in ("stop", "scale"):  # what is unknown is not what this rests on
        return f"{head}, but {advice.action}. {advice.reason}"
    when = fit.decide_at()
    if when is None:
        return f"{head}: no compute near {compute_text(now)} {fit.unit} would settle it."
    if budget is not None and when > budget:
        return f"{head}: the budget of {compute_text(budget)} {fit.unit} will not settle it."
    return f"{head}: decide at about {compute_text(when)} {fit.unit}."


def _share_reached(fit: Fit, now: float) -> str:
    reward = fit.all_draws.reward_at(now)[0]
    low = fit.curve.bounds[0]
    share = float(np.median((reward - low) / np.maximum(fit.all_draws.A - low, 1e-9)))
    return f"{min(share, 0.99):.0%}".replace("%", " %") if share < 0.995 else "over 99 %"


def _price_of_more(fit: Fit, now: float) -> str:
    """Compute that the next hundredth of the range costs, or that it is not to be had."""
    step = least_gain(None, fit.curve)
    d = fit.all_draws
    goal = d.reward_at(now)[0] + step
    costs = compute_at(goal, d.A, d.B, d.C_mid, d.R0)
    cost = float(np.quantile(costs, 0.5, method="inverted_cdf")) - now
    if not np.isfinite(cost) or cost > 1000 * now:
        return f"less than +{step:g} is left"
    return f"{compute_text(cost)} {fit.unit} more would buy +{step:g}"


def _by_past_runs(fit: Fit, advice: Advice | None) -> str:
    """What past runs had on top, where it is as much as matters: the advice heeds it."""
    told = None if advice is None else advice.numbers["past_shift"]
    if advice is None or told is None or abs(told) < least_gain(None, fit.curve):
        return ""
    return f" by its own data, {told:+.2g} on top by {advice.numbers['past_runs']} past runs"


def _advice(fit: Fit, now: float, budget: float, target: float | None, hindsight: Hindsight | None) -> Advice:
    from .advice import advise

    return advise(fit, now=now, budget=budget, target=target, hindsight=hindsight)
