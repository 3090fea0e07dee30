"""Stop, continue or scale: from the forecast's own numbers, each of which can be checked later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import FloatArray
from .sigmoid import reward_at
from .values import Estimate, estimate_of, jsonable
from .wording import compute_text, gain_text, share_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from .fitting import Fit

SURE = 0.9
SCALE_SURE = 0.8
ACTIONS = ("stop", "continue", "scale", "undecided")


@dataclass(frozen=True)
class Advice:
    """What to do with a run.

    Attributes:
        action: stop | continue | scale | undecided.
        reason: one sentence that names the binding number.
        numbers: the figures behind it; JSON-safe.
        fit: the forecast that it rests on.
    """

    action: str
    reason: str
    numbers: dict[str, Any] = field(default_factory=dict)
    fit: Fit | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Action, reason and numbers."""
        return {"action": self.action, "reason": self.reason, "numbers": self.numbers}

    def plot(self) -> go.Figure:
        """A plotly figure: the gain against compute, with the least gain that matters and the price."""
        from .advice_plot import plot

        return plot(self)


@dataclass(frozen=True, eq=False)
class _Case:
    """Everything a rule looks at."""

    fit: Fit
    now: float
    budget: float | None
    end: float  # where the gain is measured to
    delta: float
    price: float | None
    target: float | None
    gain: FloatArray
    beyond: FloatArray
    at_now: FloatArray
    at_end: FloatArray

    @property
    def p_small(self) -> float:
        return float((self.gain < self.delta).mean())

    @property
    def p_beyond(self) -> float:
        return float((self.beyond > self.delta).mean())

    @property
    def known(self) -> bool:
        """The ceiling is identified, or the bend is behind us."""
        return self.fit.ceiling_identified or float((self.fit.posterior.C_mid < self.now).mean()) >= 0.95

    @property
    def where(self) -> str:
        return f"{compute_text(self.end)} {self.fit.unit}"


def advise(
    fit: Fit,
    *,
    now: float | None = None,
    budget: float | None = None,
    delta: float = 0.01,
    price: float | None = None,
    target: float | None = None,
) -> Advice:
    """Advise on one run.

    Args:
        fit: its forecast.
        now: compute spent; the last evaluation's when left out.
        budget: compute it may spend. Without one, gains are measured to twice `now`.
        delta: the least gain in reward that matters.
        price: the least gain in reward per unit of compute that is worth paying for.
        target: a reward to reach.

    Rules, in order: a misfit speaks first; a reached target stops; a ceiling that is not identified (unless
    C_mid is behind us with 95 %) gives "undecided" with the compute at which to decide; P(gain < delta) >= 0.9
    or a gain per unit below the price stops; P(R(2C) - R(C) > delta) >= 0.8 at the end of the budget scales; else
    continue.
    """
    case = _case(fit, now, budget, delta, price, target)
    numbers = _numbers(case)
    for rule in (_misfit, _target_reached, _budget_spent, _not_identified, _target_lost, _too_small, _too_dear, _scale):
        verdict = rule(case)
        if verdict is not None:
            return Advice(*verdict, numbers, fit)
    return Advice("continue", f"{_expected(case)}.", numbers, fit)


def _case(
    fit: Fit, now: float | None, budget: float | None, delta: float, price: float | None, target: float | None
) -> _Case:
    if not delta > 0:
        raise ValueError(f"delta: a positive gain is needed, got {delta}; give the least gain that matters, e.g. 0.01")
    here = fit.curve.now if now is None else float(now)
    if budget is not None and not (np.isfinite(budget) and budget > 0):
        raise ValueError(f"budget: a positive compute is needed, got {budget}; give it in {fit.unit}")
    end = 2 * here if budget is None or budget <= here else float(budget)
    d = fit.all_draws
    far = 2 * (end if budget is not None and budget > here else here)
    at = reward_at(np.array([here, end, far]), d.A, d.B, d.C_mid, d.R0)
    spent = budget is not None and budget <= here
    beyond = at[1] - at[0] if spent or budget is None else at[2] - at[1]
    return _Case(fit, here, budget, end, delta, price, target, at[1] - at[0], beyond, at[0], at[1])


def _numbers(case: _Case) -> dict[str, Any]:
    span = case.end - case.now
    numbers: dict[str, Any] = {
        "now": case.now,
        "budget": case.budget,
        "measured_to": case.end,
        "delta": case.delta,
        "gain": estimate_of(case.gain).to_dict(),
        "expected_gain": float(case.gain.mean()),
        "gain_per_unit": float(case.gain.mean() / span) if span > 0 else None,
        "gain_per_1k": float(1000 * case.gain.mean() / span) if span > 0 else None,
        "gain_per_1k_beyond": float(1000 * case.beyond.mean() / case.end),
        "p_gain_below_delta": case.p_small,
        "p_doubling_gains_delta": case.p_beyond,
        "regret_stop": float(np.maximum(case.gain - case.delta, 0.0).mean()),
        "regret_continue": float(span * case.p_small),
        "identified_A": case.fit.identified["A"],
        "decide_at": None if case.known else case.fit.decide_at(),
        "price": case.price,
        "target": case.target,
    }
    if case.target is not None:
        numbers["p_target_at_budget"] = float((case.at_end >= case.target).mean())
        numbers["target_reach"] = case.fit.compute_to_reach(case.target).to_dict()
    return dict(jsonable(numbers))


Verdict = tuple[str, str] | None


def _misfit(case: _Case) -> Verdict:
    found = case.fit.misfit_detail
    if found is None or found.name == "residuals":
        return None  # residual runs widen the interval; they do not change the question
    if found.fallen:
        width = case.fit.curve.bounds[1] - case.fit.curve.bounds[0]
        # stopping cannot be taken back at once; a fall of a few times what matters may be waited out
        action = "stop" if found.size >= max(5 * case.delta, 0.05 * width) else "undecided"
        return (
            action,
            f"{found.sentence} {case.fit.unit}: the forecast assumes growth; go back to the checkpoint before it.",
        )
    if found.name == "pinned" and found.size == case.fit.curve.bounds[1]:
        return "stop", f"{found.sentence}: nothing is left to gain on these prompts."
    if found.name == "two-phase":
        return (
            "undecided",
            f"{found.sentence} {case.fit.unit}: one ceiling cannot be read from it; another rise may come.",
        )
    if found.name == "break":
        return (
            "undecided",
            f"{found.sentence} {case.fit.unit}: one sigmoid cannot describe both sides; fit what came after it.",
        )
    return "undecided", f"{found.sentence}: keep going until it moves, or look at the reward."


def _target_reached(case: _Case) -> Verdict:
    if case.target is None or float((case.at_now >= case.target).mean()) < SURE:
        return None
    return "stop", f"The target {case.target:g} is reached ({share_text((case.at_now >= case.target).mean())} sure)."


def _budget_spent(case: _Case) -> Verdict:
    """At the end of the budget the question is whether more of it would pay."""
    if case.budget is None or case.now < case.budget:
        return None
    doubling = f"doubling to {case.where} would buy {_gain(case)}"
    if case.p_beyond >= SCALE_SURE and _pays(case):
        return "scale", f"The budget is spent and {doubling}."
    if case.p_small >= SURE and case.known:
        return "stop", f"The budget is spent and {doubling}."
    if not case.known:
        return "undecided", f"The budget is spent and the ceiling is not identified ({_ceiling(case)}): {doubling}."
    return "stop", f"The budget is spent; {doubling}, which is not surely worth it."


def _not_identified(case: _Case) -> Verdict:
    if case.known:
        return None
    when = case.fit.decide_at()
    until = "keep going" if when is None else f"keep going until {compute_text(when)} {case.fit.unit}, then decide"
    if when is not None and case.budget is not None and when >= case.budget:
        until = f"keep going; it will not be known within {case.where}"
    return "undecided", f"Ceiling not identified yet ({_ceiling(case)}): {until}. {_expected(case)}."


def _target_lost(case: _Case) -> Verdict:
    if case.target is None:
        return None
    never = case.fit.compute_to_reach(case.target).p_never
    if never < 0.95:
        return None
    return (
        "stop",
        f"The target {case.target:g} is above the ceiling ({_ceiling(case)}): "
        f"{share_text(never)} sure that it is never reached.",
    )


def _too_small(case: _Case) -> Verdict:
    if case.p_small < SURE:
        return None
    return (
        "stop",
        f"Only {_gain(case)} is left to {case.where}: {share_text(case.p_small)} sure that it is below {case.delta:g}.",
    )


def _too_dear(case: _Case) -> Verdict:
    if _pays(case) or case.price is None:
        return None
    per_unit = case.gain.mean() / (case.end - case.now)
    return (
        "stop",
        f"{_gain(case)} to {case.where} is {per_unit:.2g} per unit of compute, below the price of {case.price:.2g}.",
    )


def _scale(case: _Case) -> Verdict:
    if case.budget is None or case.p_beyond < SCALE_SURE:
        return None
    more = estimate_of(case.beyond)
    if case.price is not None and case.beyond.mean() / case.end < case.price:
        return None
    return "scale", (
        f"The curve still climbs at {case.where}: twice as much would buy {gain_text(more)}, "
        f"{share_text(case.p_beyond)} sure that it is above {case.delta:g}."
    )


def _pays(case: _Case) -> bool:
    span = case.end - case.now
    return case.price is None or (span > 0 and float(case.gain.mean()) / span >= case.price)


def _gain(case: _Case) -> str:
    return gain_text(estimate_of(case.gain))


def _expected(case: _Case) -> str:
    likely = share_text(1 - case.p_small)
    return f"{_gain(case)} expected to {case.where}, {likely} sure that it is above {case.delta:g}"


def _ceiling(case: _Case) -> str:
    ceiling: Estimate = case.fit.A
    return f"{ceiling.lower:.2f} to {ceiling.upper:.2f}"
