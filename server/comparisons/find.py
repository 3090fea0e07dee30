"""Arms compared with a control: what is asked of a sweep and of any chosen runs alike. Without database or network."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forecurve.science import CurveError, Fit, SeedSpread, compare, fit, rank
from forecurve.science.attribution.comparison import ArmVerdict
from forecurve.science.attribution.wording import needs_text
from forecurve.science.planning.ranking import ranking_sentence
from server.forecasts.fitted import MIN_POINTS, curve_of, rising
from server.forecasts.past_runs import PastRun
from server.forecasts.siblings import seeds_of
from server.metrics.curve import Point

log = logging.getLogger(__name__)

MOST_RUNS = 300
"""Of a sweep whose comparison is made by itself: about a third of what a task has time for on one busy core."""

_TOO_MANY = f"More than {MOST_RUNS} runs are not compared by themselves; `forecurve compare` takes them from a file."

RESTS = 10.0
"""Times what it took: however many arms there are, their comparison takes no more than a tenth of one core."""


@dataclass(frozen=True)
class Compared:
    """The runs as (arm, name, points); `control` is the control's arm, `budget` the largest of the runs'.

    `past` are other runs that are over, which tell how far seeds lie apart.
    """

    control: str | None
    unit: str
    budget: float | None
    runs: list[tuple[str, str, list[Point]]]
    past: list[PastRun]


@dataclass(frozen=True)
class Found:
    """A comparison in JSON, or a note that says why there is none, and whether that may be the machine's fault."""

    result: dict[str, Any] | None
    note: str | None
    seconds: float
    unexpected: bool = False


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
    if compared.control is None:
        return Found(None, "No run is the control, so nothing is compared.", 0.0)
    if too_many(len(compared.runs)):
        return Found(None, _TOO_MANY, 0.0)
    arms: dict[str, list[Fit]] = {}  # each fitted once, for both questions
    most: dict[str, int] = {}  # evaluations of the furthest run of each arm
    for arm, name, points in compared.runs:
        kept = rising(points)
        most[arm] = max(most.get(arm, 0), len(kept))
        if len(kept) >= MIN_POINTS:
            _add(arms, arm, name, compared.unit, kept)
    if compared.control not in arms or len(arms) < 2:
        return Found(None, _too_short(most, compared.control), time.perf_counter() - began)
    seeds = seeds_of(compared.past, compared.unit)
    comparison = compare(arms, compared.control, seed_sd=seeds.ceiling, seed_sd_log_compute=seeds.log_compute)
    result = comparison.to_dict()
    needs = {arm.arm: _would_decide(arm, comparison.unit) for arm in comparison.arms}
    result["arms"] = [arm | {"would_decide": needs[arm["arm"]]} for arm in result["arms"]]
    result["ranking"] = _ranking(compared, arms, comparison.seed_spread)
    return Found(result, None, time.perf_counter() - began)


def _ranking(compared: Compared, arms: Mapping[str, Sequence[Fit]], seed_sd: SeedSpread) -> dict[str, Any]:
    """Which arm is best at the budget, or where the furthest run is when there is none."""
    horizon = compared.budget or max(one.curve.now for fits in arms.values() for one in fits)
    ranks = rank(arms, horizon, seed_sd=seed_sd)
    said = ranking_sentence(ranks, horizon, compared.unit)
    return {"horizon": horizon, "arms": [one.to_dict() for one in ranks], "sentence": said}


def _add(arms: dict[str, list[Fit]], arm: str, name: str, unit: str, points: list[Point]) -> None:
    try:
        found = fit(curve_of(name, unit, points))
    except CurveError as error:
        log.warning("run %s cannot be compared: %s", name, error)
        return
    arms.setdefault(arm, []).append(found)


def _too_short(most: Mapping[str, int], control: str) -> str:
    """What a comparison waits for; `most` are evaluations of each arm's furthest run."""
    others = [count for arm, count in most.items() if arm != control]
    if not others:
        return "There is no other arm to compare with the control."
    has_control, has_other = most.get(control, 0) >= MIN_POINTS, max(others) >= MIN_POINTS
    if has_control and has_other:
        return "Nothing is compared: the evaluations of the control, or those of every other arm, are no curve."
    wanted = "one beside the control has" if has_control else "the control has"
    if not has_control and not has_other:
        wanted = "the control and another one have"
    return f"Arms are compared as soon as {wanted} {MIN_POINTS} evaluations."


def _would_decide(arm: ArmVerdict, unit: str) -> str | None:
    return needs_text(arm, unit) if arm.verdict == "undecided" else None
