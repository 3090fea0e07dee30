"""Comparing the arms of a sweep with its control: claim, read, compare outside any transaction, write down."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import CurveError, Fit, SeedSpread, compare, fit, rank
from forecurve.science.attribution.comparison import ArmVerdict
from forecurve.science.attribution.wording import needs_text
from forecurve.science.ranking import ranking_sentence
from server.database import transaction
from server.events.outbox import enqueue
from server.events.service import record
from server.forecasts.past_runs import PastRun, past_runs
from server.metrics.curve import Point, validation_curves
from server.runs.models import Run
from server.settings import Settings
from server.sweeps.comparisons import COMPARE_TASK
from server.sweeps.models import SweepComparison

from .curves import MIN_POINTS, curve_of, rising
from .siblings import seeds_of

log = logging.getLogger(__name__)

COMPARED = "comparison"
MOST_RUNS = 300
"""Of a sweep whose comparison is made by itself: about a third of what a task has time for on one busy core."""

_TOO_MANY = f"More than {MOST_RUNS} runs are not compared by themselves; `forecurve compare` takes them from a file."

_RESTS = 10.0
"""Times what it took: however many arms a sweep has, its comparison takes no more than a tenth of one core."""


@dataclass(frozen=True)
class Claim:
    """A sweep whose comparison is ours."""

    sweep_id: str
    lease: str
    dirty_at: datetime | None


@dataclass(frozen=True)
class Compared:
    """The runs of a sweep as (arm, name, points); `control` is the control's arm, `budget` the largest of the runs'.

    `past` are runs of other sweeps, which tell how far seeds lie apart.
    """

    control: str | None
    unit: str
    budget: float | None
    runs: list[tuple[str, str, list[Point]]]
    past: list[PastRun]


@dataclass(frozen=True)
class Found:
    """A comparison in JSON, or a note that says why there is none."""

    result: dict[str, Any] | None
    note: str | None
    seconds: float


def compare_sweep(sessions: sessionmaker[Session], settings: Settings, sweep_id: str, now: datetime) -> None:
    """Compare a sweep that has forecasts its comparison has not seen.

    As with refits, at most one is in flight, what comes meanwhile asks for another, and one that dies is taken up again
    when its lease ends. Only a changed result is an event, for which open pages refresh.
    """
    with transaction(sessions) as session:
        claim = _claim(session, settings, sweep_id, now)
    if claim is None:
        return
    with transaction(sessions) as session:  # the claim is committed: refits of the sweep do not wait for this
        compared = _read(session, sweep_id)
    found = _find(compared)
    with transaction(sessions) as session:
        _finish(session, settings, claim, found, now)


def _find(compared: Compared) -> Found:
    try:
        return find(compared)
    except Exception as error:  # the same runs would fail the same way at every lease's end
        log.exception("a sweep with control %s could not be compared", compared.control)
        why = f"{type(error).__name__}: {error}"
        return Found(None, f"The comparison failed unexpectedly ({why}); the worker's log has more.", 0.0)


def find(compared: Compared) -> Found:
    """The arms against the control, each with the runs that have evaluations enough."""
    began = time.perf_counter()
    if compared.control is None:
        return Found(None, "No run is the control, so nothing is compared.", 0.0)
    if len(compared.runs) > MOST_RUNS:
        return Found(None, _TOO_MANY, 0.0)
    arms: dict[str, list[Fit]] = {}  # each fitted once, for both questions
    for arm, name, points in compared.runs:
        kept = rising(points)
        if len(kept) >= MIN_POINTS:
            _add(arms, arm, name, compared.unit, kept)
    if compared.control not in arms or len(arms) < 2:
        return Found(None, _too_short(compared.control in arms), time.perf_counter() - began)
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


def _too_short(control: bool) -> str:
    return f"Arms are compared once {'they have' if control else 'the control has'} {MIN_POINTS} evaluations."


def _would_decide(arm: ArmVerdict, unit: str) -> str | None:
    return needs_text(arm, unit) if arm.verdict == "undecided" else None


def _claim(session: Session, settings: Settings, sweep_id: str, now: datetime) -> Claim | None:
    lease = secrets.token_hex(8)
    rested = or_(SweepComparison.not_before.is_(None), SweepComparison.not_before <= now)
    free = or_(SweepComparison.lease.is_(None), SweepComparison.lease_expires_at <= now)
    mine = SweepComparison.sweep_id == sweep_id, SweepComparison.dirty_at.is_not(None)
    claim = update(SweepComparison).where(*mine, rested, free)
    ends = now + timedelta(seconds=settings.lease_s)
    row = session.execute(claim.values(lease=lease, lease_expires_at=ends).returning(SweepComparison.dirty_at)).first()
    return Claim(sweep_id, lease, row.dirty_at) if row is not None else None


def _read(session: Session, sweep_id: str) -> Compared:
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep_id).order_by(Run.id)).all()
    curves = validation_curves(session, [run.id for run in runs])
    control = next((run for run in runs if run.is_control), None)
    past = past_runs(session, control, of_its_sweep=False) if control is not None else []
    unit = runs[0].compute_unit  # of all, by the plan of the sweep
    budget = max((run.budget_compute for run in runs if run.budget_compute is not None), default=None)
    ours = [(_arm(run), run.name, curves[run.id]) for run in runs]
    return Compared(None if control is None else _arm(control), unit, budget, ours, past)


def _arm(run: Run) -> str:
    return run.arm or run.name


def _finish(session: Session, settings: Settings, claim: Claim, found: Found, now: datetime) -> None:
    row = session.get_one(SweepComparison, claim.sweep_id, with_for_update=True, populate_existing=True)
    if row.lease != claim.lease:
        return  # the lease ran out and another worker has taken over
    row.lease = row.lease_expires_at = None
    row.not_before = now + timedelta(seconds=max(settings.refit_every_s, _RESTS * found.seconds))
    if row.dirty_at == claim.dirty_at:
        row.dirty_at = None
    else:  # more has come: stay dirty
        enqueue(session, COMPARE_TASK, claim.sweep_id, not_before=row.not_before)
    news = (row.result, row.note) != (found.result, found.note)
    row.compared_at, row.seconds, row.result, row.note = now, found.seconds, found.result, found.note
    if news:
        reason = found.note if found.result is None else found.result["sentence"]
        record(session, COMPARED, actor="compare", sweep_id=claim.sweep_id, reason=reason)
