"""Refitting one run: claim, read, fit outside any transaction, write down what follows from it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from celery.exceptions import SoftTimeLimitExceeded
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import CurveError, Revision
from server.alerts.models import BELOW_FORECAST, FELL
from server.alerts.service import note_back, open_alert, resolve_if_over, resolve_superseded, settled_at
from server.database import transaction
from server.events.models import Event
from server.events.outbox import enqueue
from server.forecasts.fitted import MIN_POINTS
from server.forecasts.models import Forecast
from server.forecasts.past_runs import arm_of, has_seeds, past_runs, telling_runs
from server.forecasts.recommendations import recommend, supersede_if_over
from server.forecasts.saying import json_safe
from server.forecasts.service import record_forecast, withdraw_if_gone
from server.forecasts.track_record import past_forecasts
from server.metrics.curve import Point, validation_curve
from server.metrics.dirty import REFIT_TASK
from server.metrics.models import Evaluation
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.service import is_over, lock_run
from server.settings import Settings
from server.sweeps.comparisons import ask_for_allocation, ask_for_comparison

from .assessment import Alarm, Assessment, FreezeRule, Watched, assess
from .clocks import is_past, is_reached, lease_of
from .early_fall import early_fall, recovered_since
from .tries import Tries, is_due_again, tries_after, tries_after_death
from .verdicts import Verdicts

log = logging.getLogger(__name__)

_verdicts = Verdicts()

REVISED = "forecast.revised"
UNFITTED = "forecast.failed"
WAITING = "forecast.waiting"
PUT_OFF = timedelta(minutes=5)
_PUT_OFF = "put off"
"""The lease of a run that nobody is fitting, and nobody is to for a while."""
_DIED = "The worker that was fitting ended before it was done, each time, as when memory runs out"


@dataclass(frozen=True)
class Unfitted:
    """Why nothing can be said of a curve, in words; and whether that may be the machine's fault, not the curve's."""

    why: str
    unexpected: bool = False


@dataclass(frozen=True)
class Claim:
    """A run whose refit is ours. `dirty_at` moves with every batch of evaluations, and tells what we have not seen."""

    run_id: str
    lease: str
    dirty_at: datetime | None


def longest_claim(settings: Settings) -> timedelta:
    """How long a run may stay claimed: a fit that took too long is put off by keeping it so."""
    return max(lease_of(settings), PUT_OFF)


def refit(sessions: sessionmaker[Session], settings: Settings, run_id: str, now: datetime) -> None:
    """Refit a run that has evaluations no forecast has seen.

    At most one refit of a run is in flight: a second call returns at once, and what arrives meanwhile leaves the run
    dirty and asks for another refit. A refit that dies is taken up again when its lease ends; a curve that cannot be
    fitted waits for its next evaluation, and the run's history says why. What failed unexpectedly is tried again a few
    times, at growing distances: the evaluations of a run that is over are its last.
    """
    with transaction(sessions) as session:
        claim = _claim(session, settings, run_id, now)
    if claim is None:
        return
    with transaction(sessions) as session:  # the claim is committed: ingest and heartbeats do not wait for this
        seen = session.get_one(Run, run_id).dirty_at  # before the evaluations are read: what came by now is among them
        subject = _subject(session, run_id)
    claim, subject = replace(claim, dirty_at=seen), replace(subject, earlier=_verdicts.last(run_id))
    try:
        found = _assess(run_id, subject, settings)
    except SoftTimeLimitExceeded:
        log.warning("the fit of run %s took too long", subject.name)
        with transaction(sessions) as session:
            _put_off(session, claim, now)
        return
    with transaction(sessions) as session:
        _finish(session, settings, claim, subject, found, now)


def _assess(run_id: str, subject: Watched, settings: Settings) -> Assessment | Unfitted | None:
    """What is to be said; why nothing can be; None while there is too little."""
    try:
        found = assess(subject, FreezeRule(settings.freeze_fraction, settings.freeze_min_points))
        if found is not None and found.verdict is not None:
            _verdicts.keep(run_id, found.verdict)
        return found
    except CurveError as error:
        log.warning("run %s cannot be fitted: %s", subject.name, error)
        return Unfitted(str(error))
    except SoftTimeLimitExceeded:
        raise  # says nothing of the curve: a machine with much else to do is slow
    except Exception:  # its words are for the log only: they may hold paths, or what nobody but us understands
        log.exception("run %s (%s) could not be fitted", run_id, subject.name)
        return Unfitted(f"The fit failed unexpectedly; the worker's log says why, at {run_id}", unexpected=True)


def _claim(session: Session, settings: Settings, run_id: str, now: datetime) -> Claim | None:
    rested = or_(Run.fitted_at.is_(None), is_past(Run.fitted_at, now, timedelta(seconds=settings.refit_every_s)))
    free = or_(Run.fit_lease.is_(None), is_reached(Run.fit_lease_expires_at, now, longest_claim(settings)))
    wanted = or_(Run.dirty_at.is_not(None), is_due_again(Run.refit_at, now))
    mine = select(Run).where(Run.id == run_id, wanted, rested, free).with_for_update(key_share=True)
    run = session.scalar(mine.execution_options(populate_existing=True))
    if run is None:
        _ask_again_when_rested(session, settings, run_id)
        return None
    if run.fit_lease not in (None, _PUT_OFF) and not _survives(session, run, now):
        return None
    run.fit_lease, run.fit_lease_expires_at = secrets.token_hex(8), now + lease_of(settings)
    return Claim(run_id, run.fit_lease, run.dirty_at)


def _survives(session: Session, run: Run, now: datetime) -> bool:
    """Whether a run is to be fitted at once though its last fit ended with the worker, without a word."""
    tries = tries_after_death(run.refit_tries, now)
    if tries.again_at == now:
        run.refit_tries = tries.number
        return True
    run.fit_lease = run.fit_lease_expires_at = run.dirty_at = run.dirty_since = None
    _note_tries(session, run, tries, tries.said(_DIED))
    _settle_if_over(session, run, now)
    return False


def _subject(session: Session, run_id: str) -> Watched:
    run = session.get_one(Run, run_id)
    frozen = session.get(Forecast, run.frozen_forecast_id) if run.frozen_forecast_id else None
    points = validation_curve(session, run_id)
    arm, past = arm_of(session, run), past_runs(session, run, points)
    siblings = telling_runs(session, run, past, points)
    finished = [one for one in siblings if one.tells_the_end(run.budget_compute)]
    return Watched(
        name=run.name,
        unit=run.compute_unit,
        budget=run.budget_compute,
        points=points,
        frozen=(frozen.state, frozen.at_compute) if frozen else None,
        past=past_forecasts(session, run, past, informed=False, known=has_seeds(past, arm)),
        past_informed=past_forecasts(session, run, past, informed=True, known=has_seeds(finished, arm)),
        siblings=siblings,
        arm=arm,
        settled=settled_at(session, run_id, BELOW_FORECAST),
    )


def _ask_again_when_rested(session: Session, settings: Settings, run_id: str) -> None:
    """A dirty run that was fitted a moment ago comes back when it may be fitted again."""
    run = session.get(Run, run_id)
    if run is None or run.dirty_at is None or run.fitted_at is None or run.fit_lease is not None:
        return
    enqueue(session, REFIT_TASK, run_id, not_before=run.fitted_at + timedelta(seconds=settings.refit_every_s))


def _put_off(session: Session, claim: Claim, now: datetime) -> None:
    """Try again later: the lease is kept until then, and the run stays dirty."""
    run = lock_run(session, claim.run_id)
    if run.fit_lease != claim.lease:
        return
    run.fit_lease, run.fit_lease_expires_at = _PUT_OFF, now + PUT_OFF
    why = f"The fit took too long; it is tried again in {PUT_OFF.seconds // 60} minutes."
    if why != run.unfitted:
        record_of(session, run, WAITING, actor="refit", reason=why)
    run.unfitted = why


def _finish(
    session: Session,
    settings: Settings,
    claim: Claim,
    subject: Watched,
    found: Assessment | Unfitted | None,
    now: datetime,
) -> None:
    run = lock_run(session, claim.run_id)  # as the ingest does: no evaluation arrives behind our back
    if run.fit_lease != claim.lease:
        return  # the lease ran out and another worker has taken over
    run.fit_lease = run.fit_lease_expires_at = None
    run.fitted_at = now
    if run.dirty_at == claim.dirty_at:
        run.dirty_at = run.dirty_since = None
    else:  # more has come: stay dirty
        run.dirty_since = now
        enqueue(session, REFIT_TASK, run.id, not_before=now + timedelta(seconds=settings.refit_every_s))
    _note_failure(session, run, found if isinstance(found, Unfitted) else None, now, anew=claim.dirty_at is not None)
    resolve_superseded(session, run, actor="watch", now=now)
    if isinstance(found, Assessment):
        _write_down(session, run, subject, found, now)
    else:
        withdraw_if_gone(session, run, subject.points, now)
        ask_for_allocation(session, run, now)  # what it has spent may be all that its sweep has
    if found is None:  # open pages learn of it by its event
        why = f"Evaluations so far: {len(subject.points)}; a forecast takes {MIN_POINTS}."
        record_of(session, run, WAITING, actor="refit", reason=why)
    _settle_if_over(session, run, now)


def _settle_if_over(session: Session, run: Run, now: datetime) -> None:
    """Nothing is left to act on once the last evaluations of a run are judged, or given up."""
    resolve_if_over(session, run, actor="watch", now=now)
    supersede_if_over(session, run, now)


def _note_failure(session: Session, run: Run, unfitted: Unfitted | None, now: datetime, *, anew: bool) -> None:
    """Why there is no forecast, if so, and when it is tried again. `anew`: there were evaluations nobody had tried."""
    unexpected = unfitted is not None and unfitted.unexpected
    tries = tries_after(run.refit_tries, now, failed=unexpected, anew=anew)
    why = None if unfitted is None else tries.said(unfitted.why) if unexpected else unfitted.why
    _note_tries(session, run, tries, why)


def _note_tries(session: Session, run: Run, tries: Tries, why: str | None) -> None:
    run.refit_tries, run.refit_at = tries.number, tries.again_at
    if run.refit_at is not None:
        enqueue(session, REFIT_TASK, run.id, not_before=run.refit_at)
    if why is not None and why != run.unfitted:
        record_of(session, run, UNFITTED, actor="refit", reason=why)
    run.unfitted = why


def _write_down(session: Session, run: Run, subject: Watched, assessment: Assessment, now: datetime) -> None:
    said, to_freeze = assessment.said, assessment.to_freeze
    if to_freeze is not None and to_freeze is not said:
        record_forecast(session, run, to_freeze, frozen=True, newest=False, now=now)
    forecast = record_forecast(session, run, said, frozen=to_freeze is said, newest=True, now=now)
    if run.import_digest is None:
        _tell(session, run, subject, assessment, forecast, now)
    if run.sweep_id is not None:
        ask_for_comparison(session, run.sweep_id, now)


def _tell(
    session: Session, run: Run, subject: Watched, assessment: Assessment, forecast: Forecast, now: datetime
) -> None:
    """Alarm, revision and advice: what somebody may act on, so nothing of a run that was over before it came here."""
    if _has_gone_on(session, run, subject.points):
        return
    resolved_meanwhile = settled_at(session, run.id, BELOW_FORECAST) != subject.settled
    if assessment.alarm is not None and not resolved_meanwhile:
        _sound(session, run, BELOW_FORECAST, assessment.alarm, subject.points, now)
    elif run.frozen_forecast_id is None and assessment.advice.fit is not None:
        settled = settled_at(session, run.id, FELL)
        fall = early_fall(subject.name, subject.points, assessment.advice.fit, subject.budget, settled)
        if fall is not None:
            _sound(session, run, FELL, fall, subject.points, now)
    if assessment.has_no_fall:
        upto = subject.points[-1].compute
        since = partial(recovered_since, points=subject.points)
        above = assessment.verdict is not None and assessment.verdict.is_above
        note_back(session, run, since, above=above, upto=upto, actor="watch", now=now)
    if assessment.revised is not None:
        _note_revision(session, run, assessment.revised)
    advice = assessment.advice
    recommend(
        session,
        run,
        forecast,
        action=advice.action,
        reason=advice.reason,
        numbers=json_safe(advice.numbers),
        now=now,
    )


def _has_gone_on(session: Session, run: Run, points: Sequence[Point]) -> bool:
    """Whether a later attempt has reported meanwhile: what was found may be of a branch that it has thrown away, and
    the refit that it has asked for tells."""
    newest = session.scalar(select(func.max(Evaluation.attempt)).where(Evaluation.run_id == run.id))
    return newest is not None and newest > points[-1].attempt


def _sound(session: Session, run: Run, kind: str, alarm: Alarm, points: Sequence[Point], now: datetime) -> None:
    """Open the alert, or raise it. Of a run that is over a warning is nothing to wait on: no evaluation will tell."""
    if alarm.level == "WARN" and is_over(run):
        return
    session.flush()  # the forecast that was frozen just now gets its row before the alert names it
    open_alert(
        session,
        run,
        kind=kind,
        level=alarm.level,
        title=alarm.title,
        text=alarm.text,
        now=now,
        since_compute=alarm.since_compute,
        back_since=alarm.back_since,
        above=alarm.above,
        at_compute=alarm.at_compute,
        attempt=points[-1].attempt,
        evidence={"frozen_forecast": run.frozen_forecast_id, **alarm.evidence},
    )


def _note_revision(session: Session, run: Run, revised: Revision) -> None:
    """Write a slow, legitimate change of the forecast into the run's history: once per frozen forecast and direction.

    It is no alert: nothing is wrong with the run.
    """
    mine = (
        Event.run_id == run.id,
        Event.kind == REVISED,
        Event.evidence["frozen_forecast"].astext == run.frozen_forecast_id,
    )
    latest = session.scalar(select(Event.to_state).where(*mine).order_by(Event.id.desc()).limit(1))
    if latest == revised.direction:
        return
    record_of(
        session,
        run,
        REVISED,
        actor="watch",
        from_state=latest,
        to_state=revised.direction,
        reason=revised.sentence,
        frozen_forecast=run.frozen_forecast_id,
        **revised.to_dict(),
    )
