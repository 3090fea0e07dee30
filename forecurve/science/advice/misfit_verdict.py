"""Advice on a run that one sigmoid does not describe.

A fall may pass: instabilities recover. It is no reason to stop by itself, but one to look: go back to the checkpoint
before it, or wait. What came since is a run of its own (aftermath.py), and is stopped when two things are sure: what
that run is growing to is not worth the rest, and nothing new will begin within it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..checks import MIN_POINTS
from ..curves.margins import SURE
from ..departures.misfit import CHANGED, HOLDS, Misfit
from ..wording import compute_text, further_text, share_text
from .case import Case

Action = Literal["stop", "continue", "scale", "undecided"]
Said = tuple[Action, str]
Verdict = Said | None


def misfit_verdict(case: Case) -> Verdict:
    """(action, reason) where a misfit speaks first, else None."""
    found = case.fit.misfit_detail
    if found is None or found.name in HOLDS:
        return _just_begun(case)
    if found.name == "two-phase":
        phases = f"{found.sentence} {case.fit.unit}{_if_spent(case)}"
        return "undecided", f"{phases}: one ceiling cannot be read from it; another rise may come."
    if found.since is None:
        return _shapeless(case, found)
    return _fallen(case, found) if found.fallen else _broken(case, found)


def _fallen(case: Case, found: Misfit) -> Said:
    fell = f"{found.sentence} {case.fit.unit}"
    if case.spent and _surely_grows(case):
        grows = f"what began then still grows: {case.expected_in_words}"
        return "undecided", f"{fell}, and the budget is spent; {grows}. Give it more, or {_way_back(case, found)}."
    if case.spent:
        return "stop", f"{fell}, and the budget is spent; {_way_back(case, found)}."
    if _surely_over(case):
        return "stop", f"{fell}, and {_little(case)}; {_way_back(case, found)}."
    stays = f"{share_text(case.p_stays)} that it stays so to {case.where}"
    return "undecided", f"{fell}: it may recover ({stays}). {_way_back(case, found).capitalize()}, or {_wait(case)}."


def _way_back(case: Case, found: Misfit) -> str:
    if found.since is not None and found.since > case.fit.curve.compute[0]:
        return "go back to the checkpoint before it"
    return "look at how its first evaluation was made"


def _broken(case: Case, found: Misfit) -> Said:
    broke = f"{found.sentence} {case.fit.unit}"
    if case.spent:
        return _broken_and_spent(case, broke)
    if _surely_over(case):
        return "stop", f"{broke}; {_little(case)}."
    return "undecided", f"{broke}: one sigmoid cannot describe both sides; {_wait(case)}."


def _broken_and_spent(case: Case, broke: str) -> Said:
    if case.later is None:
        return "undecided", f"{broke}, and the budget is spent; what came since is too short to tell."
    action: Action = "stop" if case.surely_small else "undecided"
    return action, f"{broke}, and the budget is spent; by what came since {case.expected_in_words}."


def _shapeless(case: Case, found: Misfit) -> Said:
    """Pinned at an end of the range, or constant."""
    if found.name == "pinned" and found.size == case.fit.curve.bounds[1]:
        return "stop", f"{found.sentence}: nothing is left to gain on these prompts."
    if case.spent:
        return "stop", f"{found.sentence}, and the budget is spent; look at the reward."
    if _surely_over(case):
        return "stop", f"{found.sentence}, and {_little(case)}."
    return "undecided", f"{found.sentence}: keep going until it moves, or look at the reward."


def _just_begun(case: Case) -> Verdict:
    """A run that left the bottom of the range less than 3 evaluations ago: no forecast of what it began can be made."""
    curve = case.fit.curve
    moved = np.flatnonzero(curve.reward > curve.bounds[0])
    idle = int(moved[0]) if len(moved) else curve.points
    if idle < MIN_POINTS or curve.points - idle >= MIN_POINTS:
        return None
    since = f"{compute_text(float(curve.compute[idle - 1]))} {case.fit.unit}"
    begun = f"The reward was {curve.bounds[0]:g} until {since} and has just begun to move{_if_spent(case)}"
    return "undecided", f"{begun}: {'give it more' if case.spent else 'keep going'}."


def _if_spent(case: Case) -> str:
    return ", and the budget is spent" if case.spent else ""


def _surely_grows(case: Case) -> bool:
    """What has begun since a fall gains something with 90 %."""
    return case.later is not None and case.p_small <= 1 - SURE


def _surely_over(case: Case) -> bool:
    """What has begun gains little, and nothing new will begin: both with 90 %."""
    if case.spent or (case.later is None and case.fit.misfit in CHANGED):
        return False
    return case.surely_small and case.p_stays >= SURE


def _little(case: Case) -> str:
    return f"only {case.gain_in_words} is left to {case.where}: {share_text(case.p_stays)} sure that it stays so"


def _wait(case: Case) -> str:
    if case.budget is None or case.decide_at is None:
        return "wait for more evaluations"
    return f"wait until {further_text(case.decide_at, case.now)} {case.fit.unit}, then decide"
