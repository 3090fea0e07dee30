"""Stop, continue or scale: from the forecast's own numbers, each of which can be checked later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forecurve.digits import as_given

from ..curves.margins import SURE
from ..wording import interval_text, share_text
from .case import Case, case_of, not_to_stop, numbers_of, too_dear, when_text
from .misfit_verdict import Action, Verdict, misfit_verdict

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..fitting.fit import Fit
    from ..past.hindsight import Hindsight

LOST = 0.95


@dataclass(frozen=True)
class Advice:
    """What to do with a run.

    Attributes:
        action: stop, continue, scale or undecided.
        reason: one sentence that names the binding number.
        numbers: the figures behind it; JSON-safe.
        fit: the forecast that it rests on.
    """

    action: Action
    reason: str
    numbers: dict[str, Any] = field(default_factory=dict, repr=False)
    fit: Fit | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Action, reason and numbers."""
        return {"action": self.action, "reason": self.reason, "numbers": self.numbers}

    def plot(self) -> go.Figure:
        """A plotly figure: the gain against compute, with the least gain that matters and the price."""
        from .plot import plot

        return plot(self)


def advise(
    fit: Fit,
    *,
    now: float | None = None,
    budget: float | None = None,
    delta: float | None = None,
    price: float | None = None,
    target: float | None = None,
    hindsight: Hindsight | None = None,
) -> Advice:
    """Advise on one run.

    Args:
        fit: its forecast.
        now: compute spent; the last evaluation's when left out.
        budget: compute it may spend. Without one, gains are measured to twice `now`.
        delta: the least gain in reward that matters; by default 0.01 of the range of rewards. This, `price` and
            `target` are in the reward's own scale.
        price: the least gain in reward per unit of compute that is worth paying for.
        target: a reward to reach.
        hindsight: how forecasts of past runs at this share of the budget turned out. What they got wrong together is
            expected of this one too: it moves the gain to the budget.

    Rules, in order: a misfit speaks first; a reached target stops; a spent budget asks what twice as much would buy;
    P(gain < delta) >= 0.9 with a mean gain below delta stops, unless the end of the budget would scale and either less
    than a tenth of it is left or twice as much would buy 2 delta on average; a ceiling that is not identified (unless
    C_mid is behind us with 95 %) gives "undecided" with the compute at which to decide; a target out of reach or a gain
    per unit below the price stops; P(R(2C) - R(C) > delta) >= 0.8 at the end of the budget scales; else continue.

    After a fall or a break all gains are those of the evaluations since, forecast as a run of their own.

    Raises:
        AdviceError: a `now`, budget, delta or price that cannot be.
    """
    case = case_of(fit, now, budget, delta, price, target, hindsight)
    numbers = numbers_of(case)
    for rule in _RULES:
        verdict = rule(case)
        if verdict is not None:
            return Advice(*verdict, numbers, fit)
    return Advice("continue", _go_on(case), numbers, fit)


def _go_on(case: Case) -> str:
    """What is expected, and where that is probably too small why it is no reason to stop."""
    p_small = case.p_told_small
    why = f"; {not_to_stop(p_small, float(case.told.mean()))}" if p_small > 0.5 else ""
    return f"{case.expected_in_words}{why}."


def _target_reached(case: Case) -> Verdict:
    if case.target is None or (sure := case.p_reached) < SURE:
        return None
    return "stop", f"The target {as_given(case.target)} is reached ({share_text(sure)} sure)."


def _budget_spent(case: Case) -> Verdict:
    """At the end of the budget the question is whether more of it would pay."""
    if not case.spent:
        return None
    doubling = f"doubling to {case.where} would buy {case.gain_in_words}"
    if case.scales:
        return "scale", f"The budget is spent and {doubling}."
    if case.surely_small:
        return "stop", f"The budget is spent and {doubling}."
    if not case.known:
        return "undecided", f"The budget is spent and the ceiling is not identified ({_ceiling(case)}): {doubling}."
    if case.price is not None and not case.beyond_pays:
        dear = too_dear(float(case.beyond.mean()), case.beyond_span, case.price)
        return "stop", f"The budget is spent; {doubling}, {dear}."
    return "stop", f"The budget is spent; {doubling}, which is not surely worth it."


def _too_small(case: Case) -> Verdict:
    """Before identification is asked for: a ceiling may be unknown while what the budget still buys is known."""
    if not case.surely_small or case.is_to_scale:  # it would be advised to go on a moment later
        return None
    sure = f"{share_text(case.p_small)} sure that it is below {case.delta:g}"
    more = f"; {case.doubling_in_words}" if case.scales else ""
    return "stop", f"Only {case.gain_in_words} is left to {case.where}: {sure}{more}."


def _not_identified(case: Case) -> Verdict:
    if case.known:
        return None
    more = f"; {case.doubling_in_words}" if case.surely_small else ""  # else it would have been stopped
    return (
        "undecided",
        f"Ceiling not identified yet ({_ceiling(case)}): {_until(case)}. {case.expected_in_words}{more}.",
    )


def _until(case: Case) -> str:
    when = case.fit.decide_at()
    if when is None:
        return "keep going"
    if case.budget is not None and when >= case.budget:
        return f"keep going; it will not be known within {case.where}"
    if when <= case.now:
        return "keep going to its next evaluation, then decide"
    return f"keep going until {when_text(when, case.now, case.budget)} {case.fit.unit}, then decide"


def _target_lost(case: Case) -> Verdict:
    if case.target is None:
        return None
    above = float((case.target >= case.fit.all_draws.A).mean())
    if above < LOST or float((case.at_end >= case.target).mean()) > 1 - LOST:  # another law or past runs may reach it
        return None
    return (
        "stop",
        f"The target {as_given(case.target)} is above the ceiling ({_ceiling(case)}): "
        f"{share_text(above)} sure that its curve never reaches it.",
    )


def _too_dear(case: Case) -> Verdict:
    if case.pays or case.price is None:
        return None
    dear = too_dear(float(case.told.mean()), case.end - case.now, case.price)
    return "stop", f"{case.gain_in_words} to {case.where} is {dear}."


def _scale(case: Case) -> Verdict:
    if not case.scales:
        return None
    return "scale", f"The curve still climbs at {case.where}: {case.doubling_in_words}."


def _ceiling(case: Case) -> str:
    return interval_text(case.fit.A)


_RULES = (
    misfit_verdict,
    _target_reached,
    _budget_spent,
    _too_small,
    _not_identified,
    _target_lost,
    _too_dear,
    _scale,
)
