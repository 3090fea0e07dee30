"""Everything that a rule of advice looks at: the gains under each posterior draw, and the figures made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forecurve.digits import as_given

from .. import errors
from ..arrays import FloatArray
from ..checks import as_float, check_compute, check_difference, check_kind, check_positive, number, short
from ..curves.margins import SURE, least_gain, surely_below
from ..departures.misfit import CHANGED, SHAPELESS
from ..fitting.aftermath import Change, p_lasts, sure_from
from ..fitting.fit import Fit
from ..past.hindsight import Hindsight, told_by
from ..posterior.evenly import Axis, normals
from ..values import estimate_of, jsonable
from ..wording import apart_texts, compute_text, gain_text, mean_text, share_text, short_of_text
from .growth import growth
from .reaching import told_levels

SCALE_SURE = 0.8
LITTLE, CLEARLY = 0.1, 2.0
WAITING = (*CHANGED, *SHAPELESS)


@dataclass(frozen=True, eq=False)
class Case:
    """One question about one run.

    Attributes:
        fit: its forecast.
        now, budget: compute spent and allowed.
        end: compute to which gains are measured.
        delta, price, target: as in `advise`.
        change: its fall or break, None without one. Gains are those of what came after it, see `later`.
        hindsight: how forecasts of past runs turned out, None where it is not known or not about these gains.
        gain: from now to the end, (K,), see `growth`: what the rule to stop goes by.
        told: the same as the forecast of the end has it, (K,): what is said of the gain, see `_told`.
        beyond: what more than the budget buys, (K,): from its end to twice as much, or where none of it is left, or
            there is none, from now on.
        at_end: the curve there, (K,). With hindsight it, and so `gain`, is what past runs make of it.
    """

    fit: Fit
    now: float
    budget: float | None
    end: float
    delta: float
    price: float | None
    target: float | None
    change: Change | None
    hindsight: Hindsight | None
    gain: FloatArray
    told: FloatArray
    beyond: FloatArray
    at_end: FloatArray

    @property
    def later(self) -> Fit | None:
        """The forecast of what came after a fall or a break, None without one or while it is too short."""
        return None if self.change is None else self.change.later

    @property
    def since(self) -> float:
        """Of the fall or break, else 0."""
        return 0.0 if self.change is None else self.change.since

    @property
    def spent(self) -> bool:
        """Whether there is a budget and none of it is left."""
        return self.budget is not None and self.now >= self.budget

    @property
    def p_small(self) -> float:
        """P(gain < delta), by the curve."""
        return float((self.gain < self.delta).mean())

    @property
    def by_forecast(self) -> bool:
        """Whether what is said of the gain is the forecast's, and not the curve's."""
        return self.told is not self.gain

    @property
    def surely_small(self) -> bool:
        """The gain is below delta with 90 %, and its mean too: one chance in ten of a large gain is not small."""
        return self.p_small >= SURE and float(self.gain.mean()) < self.delta

    @property
    def p_reached(self) -> float:
        """P(the run is at the target now), as `target_reach` has it."""
        if self.target is None:
            return 0.0
        level = told_levels(self.fit, np.array([self.now]), self.budget, self.hindsight)[0]
        return float((level >= self.target).mean())

    @property
    def stands_still(self) -> bool:
        """Whether the run waits for something to happen: it fell, broke or never moved."""
        return self.fit.misfit in WAITING

    @property
    def p_stays(self) -> float:
        """P(nothing new begins before the end), from how long nothing has, and whether nearly all was lost."""
        return p_lasts(self.now - self.since, self.end - self.now, self._for_good)

    @property
    def _for_good(self) -> float:
        return 0.0 if self.change is None else self.change.for_good

    @property
    def p_beyond(self) -> float:
        """P(twice the compute gains more than delta)."""
        return float((self.beyond > self.delta).mean())

    @property
    def scales(self) -> bool:
        """More than the budget would buy more than delta with 80 %, at no less than the price."""
        return self.budget is not None and self.p_beyond >= SCALE_SURE and self.beyond_pays

    @property
    def is_to_scale(self) -> bool:
        """A stop would save next to nothing of a run that is to be scaled, or forgo what is clearly worth more."""
        if self.budget is None or not self.scales:
            return False
        return self.budget - self.now < LITTLE * self.budget or float(self.beyond.mean()) >= CLEARLY * self.delta

    @property
    def doubling_in_words(self) -> str:
        """What more than the budget would buy, and how sure it is that it matters."""
        more = gain_text(estimate_of(self.beyond))
        return f"twice as much would buy {more}, {share_text(self.p_beyond)} sure that it is above {self.delta:g}"

    @property
    def beyond_span(self) -> float:
        """Compute in which `beyond` is gained."""
        return self.end if self.budget is not None and self.budget > self.now else self.end - self.now

    @property
    def known(self) -> bool:
        """The ceiling is identified, or told narrowly by past runs, or the bend is behind us."""
        return self.fit.ceiling_known or float((self.fit.posterior.C_mid < self.now).mean()) >= 0.95

    @property
    def pays(self) -> bool:
        """The mean gain per unit of compute is at least the price."""
        span = self.end - self.now
        return self.price is None or (span > 0 and float(self.told.mean()) / span >= self.price)

    @property
    def beyond_pays(self) -> bool:
        """What more than the budget buys is worth its price on average."""
        return self.price is None or float(self.beyond.mean()) / self.beyond_span >= self.price

    @property
    def decide_at(self) -> float | None:
        """The compute at which to ask again; None where nothing is to be waited for."""
        if self.stands_still:
            when = sure_from(self.since, self.end, SURE, self._for_good)
            return when if self.now < when < self.end else None
        return None if self.known else self.fit.decide_at()

    @property
    def where(self) -> str:
        """The end in words."""
        end = as_given(self.end) if self.end == self.budget else compute_text(self.end)
        return f"{end} {self.fit.unit}"

    @property
    def gain_in_words(self) -> str:
        """Median and interval, and whether past runs, or another law than the sigmoid, have a say in it."""
        past = "" if self.hindsight is None else _by_what(self.hindsight)
        return f"{gain_text(estimate_of(self.told))}{past}{'' if self.law is None else f' with {self.law}'}"

    @property
    def law(self) -> str | None:
        """What gains are read from beside a sigmoid that begins with the run."""
        other = (self.later or self.fit).likelier_law
        return None if other is None else other.words

    @property
    def p_told_small(self) -> float:
        """P(gain < delta) as it is said: 0.9 or more only where `p_small` is."""
        return float((self.told < self.delta).mean())

    @property
    def expected_in_words(self) -> str:
        """The gain, and how sure it is that it matters, or that it does not: what is the more likely."""
        p_small = self.p_told_small
        likely = short_of_sure(p_small) if p_small > 0.5 else share_text(1 - p_small)
        side = "below" if p_small > 0.5 else "above"
        return f"{self.gain_in_words} expected to {self.where}, {likely} sure that it is {side} {self.delta:g}"


def _by_what(hindsight: Hindsight) -> str:
    seeds = hindsight.seeds_ahead
    return f" by what {told_by(hindsight.runs, seeds)} {'tell' if seeds else 'gained'}"


def case_of(
    fit: Fit,
    now: float | None,
    budget: float | None,
    delta: float | None,
    price: float | None,
    target: float | None,
    hindsight: Hindsight | None,
) -> Case:
    """The case of one question. Raises AdviceError for a number that is not positive."""
    check_kind("fit", fit, Fit, "pass fit(curve)", errors.AdviceError)
    if hindsight is not None:
        check_kind("hindsight", hindsight, Hindsight, "pass Siblings(curves).hindsight(...)", errors.AdviceError)
    check_question(fit, now=now, budget=budget, delta=delta, price=price)
    check_target(fit, target)
    budget, price, target = (None if one is None else as_float(one) for one in (budget, price, target))
    delta = least_gain(delta, fit.curve)
    here = fit.curve.now if now is None else as_float(now)
    open_budget = budget is not None and budget > here
    end = budget if budget is not None and open_budget else 2 * here
    change = _change_of(fit)
    later = None if change is None else change.later
    origin = 0.0 if change is None or later is None else change.since
    level, (to_end, to_twice) = growth(later or fit, here - origin, np.array([end, 2 * end]) - origin)
    beyond = to_twice - to_end if open_budget else to_end
    past = hindsight if open_budget and not fit.withheld and hindsight is not None and hindsight.runs else None
    last = level + to_end
    if past is not None:
        last = np.clip(last + _moved(past, len(last)), *fit.curve.bounds)
    gain = last - level
    by_curve = later is not None or not open_budget or fit.withheld
    told = gain if by_curve else _told(fit, gain, delta, np.array([here, end]), past)
    return Case(fit, here, budget, end, delta, price, target, change, past, gain, told, beyond, last)


def _told(fit: Fit, gain: FloatArray, delta: float, compute: FloatArray, past: Hindsight | None) -> FloatArray:
    """Draws of what is said of the gain between these two.

    The forecast's, which knows that runs leave their curves: its interval holds what comes. Where one of the two has
    the gain below delta with 90 % the curve's: that is what a stop rests on, and it is right about that. Also after a
    fall, and where no budget is open: what lies beyond one is the curve's too.
    """
    if surely_below(gain, delta):
        return gain
    level = np.clip(told_levels(fit, compute, float(compute[1]), past), *fit.curve.bounds)
    told = np.asarray(level[1] - level[0])
    return gain if surely_below(told, delta) else told


def not_to_stop(p_small: float, mean: float) -> str:
    """Why a gain that is probably too small is no reason to stop: what `surely_small` still asks for.

    >>> not_to_stop(0.8, 0.004), not_to_stop(0.92, 0.0123)
    ('a stop takes 90 %', 'but it is +0.012 on average')
    """
    return f"a stop takes {share_text(SURE)}" if p_small < SURE else f"but it is {mean_text(mean)} on average"


def too_dear(gain: float, span: float, price: float) -> str:
    """How far a mean gain in so much compute is below the price.

    >>> too_dear(0.24, 686.0, 0.053)
    '0.00035 per unit of compute, below the price of 0.053'
    """
    return f"{short_of_text(gain / span, price)} per unit of compute, below the price of {as_given(price)}"


def when_text(when: float, now: float, budget: float | None) -> str:
    """The compute at which to decide, told as later than now and, where it is, as within the budget.

    >>> when_text(13_260, 13_000, None), when_text(10.7, 7.2, 10.8), when_text(17_301, 3_100, 3_300)
    ('13,300', '10.7', '17,000')
    """
    ends = [now] if budget is None or budget <= when else [now, budget]
    return max((apart_texts(end, when)[1] for end in ends), key=len)


def short_of_sure(p_small: float) -> str:
    """`80 %`; what is not enough is not rounded to what would be.

    >>> short_of_sure(0.8), short_of_sure(0.897), short_of_sure(0.92)
    ('80 %', '89 %', '92 %')
    """
    return share_text(min(p_small, SURE - 0.01) if p_small < SURE else p_small)


def _moved(hindsight: Hindsight, count: int) -> FloatArray:
    """Draws of how much higher the run will end than its own data say, (count,): evenly spread, without chance."""
    return hindsight.shift + hindsight.sd * normals(Axis.PAST, count)


def check_question(fit: Fit, **given: float | None) -> None:
    """What is given of a question is positive and finite, and compute such as runs can have."""
    ways_out = {
        "delta": "give the least gain that matters, in the reward's own scale",
        "price": f"give the least gain in reward per {fit.unit}, or leave it out",
    }
    for name, value in given.items():
        if value is not None and name in ways_out:
            check_positive(name, value, errors.AdviceError, ways_out[name])
        elif value is not None:
            check_compute(name, value, errors.AdviceError, f"give compute in {fit.unit}")
    check_difference("delta", given.get("delta"), fit.curve.width, errors.AdviceError)


def check_target(fit: Fit, target: float | None) -> None:
    """A target is a reward: one beyond their range is a slip of the unit, not something that is never reached."""
    if target is None:
        return
    if isinstance(target, str):
        raise errors.AdviceError("target", short(target), "numbers are needed", "give a reward")
    (low, high), wanted = fit.curve.bounds, number("target", target)
    if not np.isfinite(wanted):
        raise errors.RewardRange("target", target, "a finite reward is needed", "give one inside the range")
    if not low <= wanted <= high:
        way_out = f"rewards of this run are from {low:g} to {high:g}"
        raise errors.AdviceError("target", target, "no reward can be that", way_out)


def _change_of(fit: Fit) -> Change | None:
    """The fall or break of a run, None without one; a second rise is none."""
    return fit.change if fit.misfit in CHANGED else None


def numbers_of(case: Case) -> dict[str, Any]:
    """The figures behind an advice; JSON-safe."""
    span, other = case.end - case.now, (case.later or case.fit).other_rise
    numbers: dict[str, Any] = {
        "now": case.now,
        "budget": case.budget,
        "measured_to": case.end,
        "delta": case.delta,
        "gain": estimate_of(case.told).to_dict(),
        "gain_from": "forecast" if case.by_forecast else "curve",
        "expected_gain": float(case.told.mean()),
        "gain_per_unit": float(case.told.mean() / span) if span > 0 else None,
        "gain_per_1k": float(1000 * case.told.mean() / span) if span > 0 else None,
        "expected_gain_beyond": float(case.beyond.mean()),
        "gain_per_1k_beyond": float(1000 * case.beyond.mean() / case.beyond_span),
        "p_gain_below_delta": case.p_told_small,
        "p_doubling_gains_delta": case.p_beyond,
        "regret_stop": float(np.maximum(case.told - case.delta, 0.0).mean()),
        "regret_continue": float(span * case.p_told_small),
        "identified_A": case.fit.identified["A"],
        "p_slower_end": None if other is None else other.p_slower_end,
        "p_late_start": None if other is None else other.p_late_start,
        "decide_at": case.decide_at,
        "misfit": case.fit.misfit,
        "since": case.since if case.stands_still else None,
        "p_stays": case.p_stays if case.stands_still else None,
        "past_runs": 0 if case.hindsight is None else case.hindsight.runs,
        "past_shift": None if case.hindsight is None else case.hindsight.shift,
        "seeds_ahead": 0 if case.hindsight is None else case.hindsight.seeds_ahead,
        "price": case.price,
        "target": case.target,
    }
    if case.target is not None:
        reach = case.fit.compute_to_reach(case.target, case.budget, case.hindsight)
        numbers["target_reach"] = None if case.fit.withheld else reach.to_dict()
    return dict(jsonable(numbers))
