"""What a plan says: one sentence for the whole, one reason for each allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecurve.digits import as_given

from ..curves.margins import SETTLED
from ..departures.misfit import HOLDS
from ..wording import compute_text, further_text, gain_text, mean_text, share_text

if TYPE_CHECKING:
    from ..values import Estimate
    from .outlook import Outlook
    from .plan import Plan

_NAMED = 3  # arms that a sentence names before it counts


def plan_sentence(plan: Plan) -> str:
    """Who is likely best, what to run next, and who can be dropped."""
    where, lead = f"{horizon_text(plan.horizon, given=plan.horizon_given)} {plan.unit}", plan.chosen
    doubt = "" if reaches(lead.now, plan.horizon) else _caveat(lead)  # where it stands is known, whatever its curve
    if len({arm.called for arm in plan.arms}) == 1:
        reached = lead.now + plan.budget
        short = "" if reaches(reached, plan.horizon) else f"; the budget ends at {compute_text(reached)}"
        only = f"{lead.called} is the only arm{'' if lead.seed_of is None else f', {lead.arm} the run to take'}"
        return f"{only}: {gain_text(lead.gain)} expected to {where}{short}{doubt}{_stays(plan)}."
    head = f"{_leads(plan, where)}{doubt}"
    if plan.settled:
        act = _settled(plan)
    elif plan.look_again is None and any(plan.going.values()):
        act = "what is under way will tell more"
    elif plan.look_again is None:
        enough = "" if plan.price is None else " enough for its price"
        act = f"no look that the budget allows would change the choice{enough}"
    else:
        arm, to = plan.look_again
        start = next(row.start for row in plan.allocation if row.arm == arm)
        act = f"run {arm} to {further_text(to, start)} {plan.unit}, then look again"
    return f"{head}: {act}{_stays(plan)}{_dropped(plan.arms)}."


def _settled(plan: Plan) -> str:
    little = f"less than {as_given(SETTLED * plan.delta)}"
    if plan.regret_with_seeds <= SETTLED * plan.delta:
        return f"choosing it now is expected to lose {little}"
    lost = f"{plan.regret_with_seeds:.2g}"
    return (
        f"choosing it now is expected to lose {lost}, of which these runs would tell {little}, further seeds the rest"
    )


def _stays(plan: Plan) -> str:
    return "" if plan.not_run_on is None else f"; {plan.choice} is not run on, as {plan.not_run_on}"


def reaches(compute: float, horizon: float) -> bool:
    """Whether a run that has spent this much is at the horizon."""
    return compute >= horizon * (1 - 1e-9)


def horizon_text(horizon: float, *, given: bool) -> str:
    """The compute at which arms are compared; one that a person gave is found with all its digits."""
    return as_given(horizon) if given else compute_text(horizon)


def _leads(plan: Plan, where: str) -> str:
    """Which arm is chosen: that with the highest expected end, which need not be the likeliest to end highest."""
    lead, likeliest = plan.chosen, max(plan.arms, key=lambda arm: arm.p_best)
    seeds = sum(arm.called == lead.called for arm in plan.arms)
    mean = f", the mean of {seeds} seeds" if seeds > 1 else ""
    if share_text(lead.p_best) == share_text(likeliest.p_best):
        return f"{lead.called}{mean and f'{mean},'} ends highest at {where} with {share_text(lead.p_best)}"
    odds = f"{lead.called} with {share_text(lead.p_best)}, {likeliest.called} with {share_text(likeliest.p_best)}"
    return f"{lead.called} has the highest expected end at {where}{mean}; {odds} to end highest"


def _dropped(arms: tuple[Outlook, ...]) -> str:
    names = list(dict.fromkeys(arm.called for arm in arms if arm.dominated))
    if not names:
        return "; no arm can be dropped yet"
    every = len({arm.called for arm in arms})
    shown = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} of {every} arms"
    return f"; {shown} can be dropped"


def look_reason(arms: tuple[Outlook, ...], arm: int, best: int, value: float) -> str:
    """Why a run goes on before the choice."""
    own = arms[arm]
    odds = f"{share_text(own.p_best)} to end highest"
    if own.called == arms[best].called:
        role = f"the present choice ({odds})" if arm == best else f"a seed of the present choice ({odds})"
    else:
        role = f"{'' if own.seed_of is None else 'its arm, '}with {odds}, may pass {arms[best].called}"
    return f"{role}; knowing it better is worth {mean_text(value)} of expected reward at the end{_caveat(own)}"


def _caveat(own: Outlook) -> str:
    if own.misfit not in HOLDS:
        return f"; its curve is no sigmoid ({own.misfit}), so that its end is hardly known"
    return ""


def finish_reason(own: Outlook, gain: Estimate, start: float, to: float, short_of: str, unit: str) -> str:
    """Why the choice is run on, and as far as that: `gain` is what it is expected to gain on the way. `short_of` is
    the horizon in words where the budget does not reach it, else empty."""
    short = short_of and f"; the budget does not reach {short_of}"
    role = "the choice" if own.seed_of is None else f"the run to take of {own.seed_of}, the choice"
    return f"{role}: {gain_text(gain)} expected on the way to {further_text(to, start)} {unit}{short}{_caveat(own)}"
