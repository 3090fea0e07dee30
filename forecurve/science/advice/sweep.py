"""Advice for every run of a sweep: what it should do by itself, and whether it still matters among the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forecurve.digits import as_given

from ..attribution.seeds import SeedSpread
from ..checks import as_float
from ..curves.margins import least_gain
from ..errors import AdviceError
from ..planning.groups import Arms, grouped
from ..planning.plan import check_arms, outlooks_of, spread_of, worth_draws
from ..planning.standing import enter, standing
from ..wording import compute_text, share_text
from .advise import Advice, advise
from .case import check_question

if TYPE_CHECKING:
    from ..planning.outlook import Outlook


def advise_sweep(
    arms: Arms,
    *,
    budget: float | None = None,
    delta: float | None = None,
    price: float | None = None,
    siblings: bool = True,
    seed_sd: float | SeedSpread | None = None,
) -> dict[str, Advice]:
    """Advise on each run of a sweep, by its name.

    Args:
        arms: the runs or their forecasts, in one unit of compute, on one scale of rewards, with distinct names; of an
            arm with several seeds name -> its runs, as in `plan`. What is dominated are then arms: a seed is not
            stopped for another of its arm.
        budget: compute that each run may spend; the runs are compared there, those beyond it as they stood. By default
            twice the furthest run's.
        delta: the least difference in reward that matters; by default 0.01 of the range of rewards.
        price: as in `advise`.
        siblings: let the runs inform one another where they are compared.
        seed_sd: the sd between seeds of one arm, as in `plan`.

    A run whose arm is less than 5 % likely to end within delta of the highest one is dominated, and as many of them as
    leave one within delta of it with 95 % (`planning.dominated`): the advice is to stop it, whatever it would gain by
    itself. Every other run is advised as if it were alone. The numbers have `p_best`, `p_within_delta` and `dominated`
    on top of those of `advise`.

    Raises:
        PlanError: runs that cannot be compared. CompareError: a seed_sd that cannot be. AdviceError: what is no run, a
            budget, delta or price that cannot be.
    """
    runs = grouped(arms, AdviceError)
    fits = runs.fits
    if not fits:
        return {}
    check_arms(fits)
    check_question(fits[0], budget=budget, delta=delta, price=price)
    delta = least_gain(delta, fits[0].curve)
    horizon = 2 * max(fit.curve.now for fit in fits) if budget is None else as_float(budget)
    here = standing([enter(fit, horizon) for fit in fits], horizon, siblings=siblings, sizes=runs.sizes)
    outlooks = outlooks_of(here, delta, runs.seed_of, worth_draws(here, runs.arms, spread_of(seed_sd, fits[0])))
    where = f"{compute_text(horizon) if budget is None else as_given(horizon)} {fits[0].unit}"
    best = outlooks[int(np.argmax([arm.p_best for arm in outlooks]))]
    return {
        arm.arm: _among(advise(fit, budget=budget, delta=delta, price=price), arm, best, delta, where)
        for fit, arm in zip(fits, outlooks, strict=True)
    }


def _among(alone: Advice, arm: Outlook, best: Outlook, delta: float, where: str) -> Advice:
    """The advice on one run with its place among the others."""
    numbers = {**alone.numbers, "p_best": arm.p_best, "p_within_delta": arm.p_within_delta, "dominated": arm.dominated}
    if not arm.dominated or alone.action == "stop":
        return replace(alone, numbers=numbers)
    odds = share_text(arm.p_within_delta)
    who = "" if arm.seed_of is None else f"{arm.seed_of} is "
    reason = f"Dominated: {who}{odds} likely to end within {delta:g} of the best at {where} ({best.called} leads)."
    return replace(alone, action="stop", reason=reason, numbers=numbers)
