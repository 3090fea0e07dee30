"""Arms compared with a control: what is asked of a sweep and of any chosen runs alike. Without database or network."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from forecurve.science import CurveError, Fit, SeedSpread, compare, fit, rank
from forecurve.science.attribution.comparison import ArmVerdict, Comparison
from forecurve.science.attribution.wording import needs_text
from forecurve.science.planning.ranking import ranking_sentence
from server.forecasts.fitted import MIN_POINTS, curve_of, rising
from server.forecasts.past_runs import PastRun
from server.forecasts.siblings import seeds_of
from server.metrics.curve import Point
from server.runs.models import Run
from server.runs.service import is_over

log = logging.getLogger(__name__)

MOST_RUNS = 300
"""Of a sweep whose comparison is made by itself: about a third of what a task has time for on one busy core."""

_TOO_MANY = f"More than {MOST_RUNS} runs are not compared by themselves; `forecurve compare` takes them from a file."

RESTS = 10.0
"""Times what it took: however many arms there are, their comparison takes no more than a tenth of one core."""


class Entrant(NamedTuple):
    """A run that is to be compared; `over`: it gets no further evaluation."""

    id: str
    arm: str
    name: str
    points: Sequence[Point]
    over: bool

    @classmethod
    def of(cls, run: Run, arm: str, points: Sequence[Point]) -> Entrant:
        return cls(run.id, arm, run.name, points, is_over(run))


@dataclass(frozen=True)
class Compared:
    """What is compared; `control` is the control's arm, `budget` the largest of the runs'.

    `past` are other runs that are over, which tell how far seeds lie apart.
    """

    control: str | None
    unit: str
    budget: float | None
    runs: list[Entrant]
    past: list[PastRun]


@dataclass(frozen=True)
class Found:
    """A comparison in JSON, or a note that says why there is none, and whether that may be the machine's fault.

    `left_out` says by run why it is not compared, and `fits` are those of the others; `seed_sd` is how far seeds of an
    arm lie apart, by them and by past sweeps, where they were compared.
    """

    result: dict[str, Any] | None
    note: str | None
    seconds: float
    unexpected: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    fits: dict[str, Fit] = field(default_factory=dict)
    seed_sd: SeedSpread | None = None


def attempted(find: Callable[[Compared], Found], compared: Compared, what: str) -> Found:
    """What `find` finds; where it fails, a note of that, and in the log the reason at the words `what`."""
    began = time.perf_counter()
    try:
        return find(compared)
    except Exception:  # its words are for the log only: they may hold paths, or what nobody but us understands
        log.exception("the comparison of %s failed", what)
        said = f"The comparison failed unexpectedly; the log says why, at {what}."
        return Found(None, said, time.perf_counter() - began, unexpected=True)


def too_many(runs: int) -> bool:
    """Whether so many runs are not compared, so that nobody need read their curves."""
    return runs > MOST_RUNS


def find(compared: Compared) -> Found:
    """The arms against the control, each with the runs that have evaluations enough."""
    began = time.perf_counter()
    if too_many(len(compared.runs)):
        return Found(None, _TOO_MANY, 0.0)
    found = {run.id: _fitted(run, compared.unit) for run in compared.runs}  # once, for all that is asked of them
    fits = {run_id: fitted for run_id, fitted in found.items() if isinstance(fitted, Fit)}
    left_out = {run_id: why for run_id, why in found.items() if isinstance(why, str)}
    arms = _arms(compared, fits)
    comparison = _compared(compared, arms)
    if isinstance(comparison, str):
        return Found(None, comparison, time.perf_counter() - began, left_out=left_out, fits=fits)
    result = _result(compared, arms, comparison)
    seconds = time.perf_counter() - began
    return Found(result, None, seconds, left_out=left_out, fits=fits, seed_sd=comparison.seed_spread)


def _arms(compared: Compared, fits: Mapping[str, Fit]) -> dict[str, list[Fit]]:
    """The runs of each arm that have a fit."""
    arms: dict[str, list[Fit]] = {}
    for run in compared.runs:
        if run.id in fits:
            arms.setdefault(run.arm, []).append(fits[run.id])
    return arms


def _compared(compared: Compared, arms: Mapping[str, Sequence[Fit]]) -> Comparison | str:
    """Or why there is none."""
    if compared.control is None:
        return "No run is the control, so nothing is compared."
    if compared.control not in arms or len(arms) < 2:
        return _why_none(compared.runs, compared.control)
    seeds = seeds_of(compared.past, compared.unit)
    return compare(arms, compared.control, seed_sd=seeds.ceiling, seed_sd_log_compute=seeds.log_compute)


def _result(compared: Compared, arms: Mapping[str, Sequence[Fit]], comparison: Comparison) -> dict[str, Any]:
    """In JSON."""
    result = comparison.to_dict()
    needs = {arm.arm: _would_decide(arm, comparison) for arm in comparison.arms}
    result["arms"] = [arm | {"would_decide": needs[arm["arm"]]} for arm in result["arms"]]
    result["ranking"] = _ranking(compared, arms, comparison.seed_spread)
    return result


def _ranking(compared: Compared, arms: Mapping[str, Sequence[Fit]], seed_sd: SeedSpread) -> dict[str, Any]:
    """Which arm is best at the budget, or where the furthest run is when there is none."""
    horizon = compared.budget or max(one.curve.now for fits in arms.values() for one in fits)
    ranks = rank(arms, horizon, seed_sd=seed_sd)
    said = ranking_sentence(ranks, horizon, compared.unit, given=compared.budget is not None)
    return {"horizon": horizon, "arms": [one.to_dict() for one in ranks], "sentence": said}


def _fitted(run: Entrant, unit: str) -> Fit | str:
    """Its fit, or why there is none."""
    kept = rising(run.points)
    if len(kept) < MIN_POINTS:
        return f"it has {_evaluations(len(kept))}, and {MIN_POINTS} are needed"
    try:
        return fit(curve_of(run.name, unit, kept))
    except CurveError as error:
        log.warning("run %s cannot be compared: %s", run.name, error)
        return f"its evaluations are no curve: {error}"


def _evaluations(count: int) -> str:
    return {0: "no evaluation", 1: "1 evaluation"}.get(count, f"{count} evaluations")


def _why_none(runs: Sequence[Entrant], control: str) -> str:
    """What a comparison waits for, or why there is none to wait for."""
    ours = [run for run in runs if run.arm == control]
    others = [run for run in runs if run.arm != control]
    if not others:
        return "There is no other arm to compare with the control."
    has_control, has_other = _is_long(ours), _is_long(others)
    if has_control and has_other:
        return "Nothing is compared: the evaluations of the control, or those of every other arm, are no curve."
    if not has_control and _is_over(ours):
        return f"Nothing is compared: the control ended with fewer than {MIN_POINTS} evaluations; choose another one."
    if not has_other and _is_over(others):
        return f"Nothing is compared: no arm beside the control came to {MIN_POINTS} evaluations."
    wanted = "one beside the control has" if has_control else "the control has"
    if not has_control and not has_other:
        wanted = "the control and another one have"
    return f"Arms are compared as soon as {wanted} {MIN_POINTS} evaluations."


def _is_long(runs: Sequence[Entrant]) -> bool:
    return any(len(rising(run.points)) >= MIN_POINTS for run in runs)


def _is_over(runs: Sequence[Entrant]) -> bool:
    return all(run.over for run in runs)


def _would_decide(arm: ArmVerdict, comparison: Comparison) -> str | None:
    return needs_text(arm, comparison) if arm.verdict == "undecided" else None
