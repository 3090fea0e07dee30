"""The one line above a run's curve: what a colleague would say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecurve.digits import as_given

from ..checks import as_float
from ..curves.margins import SURE, least_gain
from ..past.hindsight import told_by
from ..posterior.sigmoid import compute_at
from ..values import Estimate
from ..wording import apart_texts, compute_text, gain_text, interval_text, level_text, mean_text, share_text
from .advise import Advice, advise
from .case import check_question, check_target, not_to_stop, short_of_sure, when_text

if TYPE_CHECKING:
    from ..fitting.fit import Fit
    from ..past.hindsight import Hindsight

_MOST_STRETCHES = 2  # that a sentence names
_AT_LEAST = 1.5  # times the first evaluation's compute is the last one's, where that counts from the run's start


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

    Raises:
        AdviceError: a `now`, budget or target that cannot be.
    """
    check_question(fit, now=now, budget=budget)
    check_target(fit, target)
    here = fit.curve.now if now is None else as_float(now)
    if fit.withheld:
        return _misfit_sentence(fit)
    advice = None if budget is None else advise(fit, now=here, budget=budget, target=target, hindsight=hindsight)
    if not fit.ceiling_known:
        return _unknown_sentence(fit, here, budget, advice) + _set_apart(fit)
    if advice is not None and _leads_beyond(fit, here, advice):
        return _doubted_sentence(fit, advice) + _set_apart(fit)
    reached = _share_reached(fit, here)
    by_target = advice is not None and _rests_on_target(fit, here, advice, hindsight)
    cost = _cost_of_more(fit, here)
    more = _price_of_more(fit, cost, advice) + ("" if by_target else _why_stop(fit, cost, advice))
    action = "" if advice is None else f": {advice.action}"
    if by_target and target is not None:
        action += f", by its target of {as_given(as_float(target))}"
    source = "" if fit.ceiling_identified else f" by {fit.prior.name}, hardly by its own data yet"
    doubt = " The curve bends otherwise than a sigmoid: its end is less sure." if fit.misfit == "shape" else ""
    return f"Ceiling {level_text(fit.A)}{source}, {reached}; {more}{action}.{doubt}{_set_apart(fit)}"


def _rests_on_target(fit: Fit, now: float, advice: Advice, hindsight: Hindsight | None) -> bool:
    """Whether it would not be advised to stop but for the target."""
    if advice.action != "stop" or advice.numbers["target"] is None:
        return False
    return advise(fit, now=now, budget=advice.numbers["budget"], hindsight=hindsight).action != "stop"


def _set_apart(fit: Fit) -> str:
    """Which evaluations the ceiling is not read from: an early regime, and stretches far off both sides."""
    said, early = "", fit.cutoff
    if early is not None:
        before = f"{compute_text(early.compute)} {fit.unit}"
        said += f" The {early.evaluations} evaluations before {before} do not follow the curve."
    for stretch in fit.stretches[:_MOST_STRETCHES]:
        between = f"{' to '.join(apart_texts(float(stretch[0]), float(stretch[-1])))} {fit.unit}"
        said += f" The {len(stretch)} evaluations from {between} lie far off both sides and hardly count."
    return said


def _misfit_sentence(fit: Fit) -> str:
    found = fit.misfit_detail
    assert found is not None
    unit = f" {fit.unit}" if found.since is not None else ""
    return f"{found.sentence}{unit}: no ceiling can be read from this curve.{_is_counted_otherwise(fit)}"


def _is_counted_otherwise(fit: Fit) -> str:
    """What to look at first where a curve bends within a small part of its compute, as by the time of day."""
    curve = fit.curve
    if fit.misfit not in ("break", "two-phase") or curve.now >= _AT_LEAST * curve.compute[0]:
        return ""
    between = " to ".join(apart_texts(float(curve.compute[0]), curve.now))
    return f" It has evaluations from {between} {fit.unit} alone: is compute counted from the run's start?"


def _unknown_sentence(fit: Fit, now: float, budget: float | None, advice: Advice | None) -> str:
    head = f"Ceiling not identified yet ({interval_text(fit.A)})"
    if advice is not None and advice.action in ("stop", "scale"):  # what is unknown is not what this rests on
        return f"{head}, but {advice.action}. {advice.reason}"
    when = fit.decide_at()
    if when is None:
        return f"{head}: no compute near {compute_text(now)} {fit.unit} would settle it."
    if budget is not None and when > budget:
        return f"{head}: the budget of {as_given(budget)} {fit.unit} will not settle it."
    if when <= now:
        return f"{head}: decide at its next evaluation."
    return f"{head}: decide at about {when_text(when, now, budget)} {fit.unit}."


def _leads_beyond(fit: Fit, now: float, advice: Advice) -> bool:
    """Whether the end that advice goes by lies above all that the sigmoid's ceiling may be."""
    level = float(np.median(fit.all_draws.reward_at(now)[0]))
    return fit.likelier_law is not None and level + _gain(advice).median > fit.A.upper


def _doubted_sentence(fit: Fit, advice: Advice) -> str:
    """Of a run that another law describes better, which leads elsewhere."""
    law = fit.likelier_law
    assert law is not None
    doubt = f"{law.words} is more probable ({share_text(law.probability)}) and leads beyond it"
    return f"Ceiling {level_text(fit.A)} by a sigmoid, but {doubt}; {_expected(fit, advice)}: {advice.action}."


def _gain(advice: Advice) -> Estimate:
    """What advice says of the gain."""
    return Estimate(**advice.numbers["gain"])


def _expected(fit: Fit, advice: Advice) -> str:
    """`+0.14 (0.08 to 0.20) expected to 16,000 GPU-hours`, as the reason of the advice has it."""
    end = advice.numbers["measured_to"]
    where = as_given(end) if end == advice.numbers["budget"] else compute_text(end)
    return f"{gain_text(_gain(advice))} expected to {where} {fit.unit}"


def _share_reached(fit: Fit, now: float) -> str:
    """`94 % of it reached`; where rewards do not begin at 0 a share of a ceiling would be misread."""
    reward = fit.all_draws.reward_at(now)[0]
    low, least = fit.curve.bounds[0], 1e-9 * fit.curve.width
    share = float(np.median((reward - low) / np.maximum(fit.all_draws.A - low, least)))
    told = f"{min(share, 0.99):.0%}".replace("%", " %") if share < 0.995 else "over 99 %"
    return f"{told} of it reached" if low == 0 else f"{told} of the way there from {low:g}"


def _price_of_more(fit: Fit, cost: float | None, advice: Advice | None) -> str:
    """What the next hundredth of the range costs, or that it is not to be had; and what past runs had on top.

    Where that alone does not explain why the advice is to go on: what does.
    """
    step, law = least_gain(None, fit.curve), fit.likelier_law
    if advice is not None and law is not None:
        return _by_other_law(fit, advice, law.words, step)
    said = (
        f"less than +{step:g} is left" if cost is None else f"{compute_text(cost)} {fit.unit} more would buy +{step:g}"
    )
    return said + (_by_past_runs(fit, advice) or _why_go_on(advice, left=cost is not None))


def _cost_of_more(fit: Fit, now: float) -> float | None:
    """Compute that buys the next hundredth of the range, by the sigmoid; None where nothing near would."""
    d = fit.all_draws
    goal = d.reward_at(now)[0] + least_gain(None, fit.curve)
    costs = compute_at(goal, d.A, d.B, d.C_mid, d.R0)
    cost = float(np.quantile(costs, 0.5, method="inverted_cdf")) - now
    return cost if np.isfinite(cost) and cost <= 1000 * now else None


def _by_other_law(fit: Fit, advice: Advice, law: str, step: float) -> str:
    """What the budget buys where another law than the sigmoid is the more probable."""
    said, numbers = f"{_expected(fit, advice)} with {law}", advice.numbers
    if advice.action == "scale" and numbers["p_gain_below_delta"] > 0.5:
        return f"{said}, {mean_text(numbers['expected_gain_beyond'])} more by twice as much"
    return said + _though_small(advice, step)


def _though_small(advice: Advice, step: float) -> str:
    """Why the advice is to go on with a run that will probably gain too little."""
    p_small, mean = advice.numbers["p_gain_below_delta"], advice.numbers["expected_gain"]
    if advice.action != "continue" or p_small <= 0.5:
        return ""
    return f" ({short_of_sure(p_small)} sure that it gains less than {step:g}, {not_to_stop(p_small, mean)})"


def _why_go_on(advice: Advice | None, *, left: bool) -> str:
    """The same where it has been said what is left to gain; `left`: with ever more compute that would be enough."""
    if advice is None or advice.action != "continue":
        return ""
    p_small, mean = advice.numbers["p_gain_below_delta"], advice.numbers["expected_gain"]
    if p_small > 0.5:
        return f"{', the budget less' if left else ''} ({short_of_sure(p_small)} sure, {not_to_stop(p_small, mean)})"
    return "" if left else f" by its sigmoid alone, {gain_text(_gain(advice))} expected"


def _why_stop(fit: Fit, cost: float | None, advice: Advice | None) -> str:
    """Why the advice is to stop a run with something left to gain."""
    if advice is None or advice.action != "stop" or _by_past_runs(fit, advice):
        return ""
    numbers = advice.numbers
    small, by_law = numbers["p_gain_below_delta"] >= SURE, fit.likelier_law is not None
    if small if by_law else cost is None:
        return ""  # as was said, next to nothing is left
    if numbers["now"] >= numbers["budget"]:
        return ", but the budget is spent"
    return ", the budget less" if small else ""


def _by_past_runs(fit: Fit, advice: Advice | None) -> str:
    """What past runs had on top, or less, where it is as much as matters: the advice heeds it."""
    told, step = None if advice is None else advice.numbers["past_shift"], least_gain(None, fit.curve)
    if advice is None or told is None or abs(told) < step:
        return ""
    who = told_by(advice.numbers["past_runs"], advice.numbers["seeds_ahead"])
    shift = f"{mean_text(told)} on top" if told > 0 else f"{compute_text(-told)} less"
    return f" by its curve, {shift} to the end by {who}{_though_small(advice, step)}"
