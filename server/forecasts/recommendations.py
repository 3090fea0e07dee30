"""Recommendations: opened when a forecast's advice says something new, then accepted, dismissed or superseded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from forecurve.science.departures.misfit import FALLEN, HOLDS
from server.alerts.models import Delivery
from server.alerts.news import tell_advice, tell_advice_no_more, tell_newer_advice
from server.errors import Conflict, NotFound
from server.pagination import newest_first
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.service import is_over, lock_run, may_follow, request_stop
from server.runs.states import UNASKED, DesiredState
from server.sweeps.models import Sweep

from .models import Forecast, Recommendation

BINDING = {
    "stop": "expected_gain",
    "continue": "expected_gain",
    "scale": "expected_gain_beyond",
    "undecided": "decide_at",
}
"""The number of `science.Advice.numbers` that an action rests on."""

_MATTERS = {"stop": 0.1, "continue": 1.0, "scale": 1.0, "undecided": 0.0}
"""By how many deltas it must have moved at least, where it is a gain."""

_OVER, _NEWER = "The run is over.", "Newer evaluations say something else."
_GONE = "The evaluations that it rests on are on the curve no more."
_IN_SIGHT = ~exists().where(Run.id == Recommendation.run_id, Run.archived_at.is_not(None))

POLICY = "policy"
"""The actor when a sweep's policy `auto` follows advice by itself."""


def recommend(
    session: Session,
    run: Run,
    forecast: Forecast,
    *,
    action: str,
    reason: str,
    numbers: Mapping[str, Any],
    now: datetime,
) -> Recommendation | None:
    """Open a recommendation when the advice says something new; the one that was open is superseded.

    The same action is not said again while the number it rests on stands, also when a person has answered it:
    dismissed advice comes back only when that number has moved, or the run fell, broke or reached the end of its
    budget meanwhile (`is_news`), whatever was said in between. Of a run that is over only what can still be followed
    is worth saying. Under policy `auto` the advice to stop is followed at once, or once the run goes on that was to
    pause.
    """
    session.flush()
    opened = _open_one(session, run)
    if not may_follow(run, action):
        _supersede(session, run, opened, now, _OVER)
        return None
    said = _newest(session, run, Recommendation.action == action, Recommendation.status != "superseded")
    if said is not None and not is_news(action, said.numbers, numbers):
        if said is opened:
            _follow(session, run, said, now)
        else:
            _supersede(session, run, opened, now, _NEWER)
        return None
    renews = opened is not None and _says_the_same(opened, action, numbers)
    _supersede(session, run, opened, now, _NEWER, renewed=renews)
    advice = Recommendation(
        run_id=run.id, forecast_id=forecast.id, action=action, reason=reason, numbers=dict(numbers), created_at=now
    )
    session.add(advice)
    session.flush()
    if opened is not None and renews:
        tell_newer_advice(session, opened.id, advice.id)
    _record(session, run, advice, actor="refit", reason=reason)
    _follow(session, run, advice, now)
    if not renews and _waits(session, run, advice) and not _was_told(session, run, advice):
        tell_advice(session, advice.id, now)
    return advice


def supersede_if_over(session: Session, run: Run, now: datetime) -> None:
    """Take back what is advised for a run that is over, once its last evaluations are judged, unless it can still be
    followed (`may_follow`). `run` is locked."""
    if not is_over(run) or run.dirty_at is not None:
        return
    session.flush()
    opened = _open_one(session, run)
    if opened is not None and not may_follow(run, opened.action):
        _supersede(session, run, opened, now, _OVER)


def withdraw_advice(session: Session, run: Run, now: datetime) -> None:
    """Take back what is advised from evaluations that a later attempt has thrown away. `run` is locked."""
    _supersede(session, run, _open_one(session, run), now, _GONE)


def list_recommendations(
    session: Session, *, run_id: str | None, status: str | None, cursor: str | None, limit: int
) -> tuple[Sequence[Recommendation], str | None]:
    """One page of recommendations, newest first: of one run, or of all that are not archived."""
    query = select(Recommendation).where(_IN_SIGHT if run_id is None else Recommendation.run_id == run_id)
    if status is not None:
        query = query.where(Recommendation.status == status)
    return newest_first(session, query, Recommendation.id, cursor, limit)


def get_recommendation(session: Session, recommendation_id: str) -> Recommendation:
    advice = session.get(Recommendation, recommendation_id)
    if advice is None:
        raise _unknown(recommendation_id)
    return advice


def accept(
    session: Session, recommendation_id: str, *, actor: str, reason: str | None, now: datetime
) -> Recommendation:
    """Follow the advice. `stop` stops the run (Conflict when it is over); the others are only written down."""
    advice, run = _take_open(session, recommendation_id)
    _decide(session, run, advice, "accepted", actor, reason, now)
    if advice.action == "stop":
        request_stop(session, run, actor=actor, reason=reason or advice.reason)
    return advice


def dismiss(session: Session, recommendation_id: str, *, actor: str, reason: str, now: datetime) -> Recommendation:
    """Do not follow the advice, and say why."""
    advice, run = _take_open(session, recommendation_id)
    _decide(session, run, advice, "dismissed", actor, reason, now)
    return advice


def is_news(action: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether the same action is worth saying again: the run is in another situation, or the number that the action
    rests on has moved enough.

    A quarter of its value is enough; of a gain, more than what matters besides (`delta`), or than a tenth of it where
    the advice is to stop as less is left.
    """
    if _situation(old) != _situation(new):
        return True
    before, after = old.get(BINDING[action]), new.get(BINDING[action])
    if before is None or after is None:
        return before is not after
    return not math.isclose(before, after, rel_tol=0.25, abs_tol=_MATTERS[action] * (new.get("delta") or 0.01))


def _situation(numbers: Mapping[str, Any]) -> tuple[str | None, bool]:
    """What the words of an advice go by beside its number: whether the run fell or is no sigmoid otherwise, and whether
    its budget is spent. One and the same fall may be a collapse at one refit and a decline at the next."""
    misfit, budget = numbers.get("misfit"), numbers.get("budget")
    changed = None if misfit in HOLDS else "fall" if misfit in FALLEN else "change"
    return changed, budget is not None and numbers.get("now", 0.0) >= budget


def _says_the_same(opened: Recommendation, action: str, numbers: Mapping[str, Any]) -> bool:
    """But for a number that has moved: who was told of the one that is open knows what to do."""
    return opened.action == action and _situation(opened.numbers) == _situation(numbers)


def _open_one(session: Session, run: Run) -> Recommendation | None:
    # not the newest by its id: workers' clocks may differ
    mine = Recommendation.run_id == run.id, Recommendation.status == "open"
    return session.scalar(select(Recommendation).where(*mine))


def _newest(session: Session, run: Run, *wanted: ColumnElement[bool]) -> Recommendation | None:
    mine = select(Recommendation).where(Recommendation.run_id == run.id, *wanted)
    return session.scalar(mine.order_by(Recommendation.id.desc()).limit(1))


def _follow(session: Session, run: Run, advice: Recommendation, now: datetime) -> None:
    """Stop the run where that is the advice and its sweep's policy follows it by itself."""
    if advice.action == "stop" and run.desired_state == DesiredState.RUN and _is_followed(session, run):
        reason = f"The sweep's policy is auto. {advice.reason}"
        accept(session, advice.id, actor=POLICY, reason=reason, now=now)


def _is_followed(session: Session, run: Run) -> bool:
    """Whether the policy of its sweep follows the advice to stop it by itself."""
    return run.sweep_id is not None and session.get_one(Sweep, run.sweep_id).policy == "auto"


def _waits(session: Session, run: Run, advice: Recommendation) -> bool:
    """Whether a person is to answer it: to scale, or to stop what neither is to end anyhow nor is stopped by a policy
    (of a run that is to pause: once it goes on). How far a run trains on that shares its sweep's compute is not theirs
    to say."""
    if advice.status != "open" or run.archived_at is not None or run.allocated:
        return False
    if advice.action == "stop":
        return run.desired_state in UNASKED and not _is_followed(session, run)
    return advice.action == "scale"


def _was_told(session: Session, run: Run, advice: Recommendation) -> bool:
    """Whether the same arrived before, as news: a run that is close to where its advice changes may have it to and fro,
    and nobody was told of what it said between."""
    mine = Recommendation.run_id == run.id, Recommendation.action == advice.action
    of_it = exists().where(Delivery.recommendation_id == Recommendation.id, Delivery.status == "delivered")
    last = session.scalar(select(Recommendation).where(*mine, of_it).order_by(Recommendation.id.desc()).limit(1))
    return last is not None and not is_news(advice.action, last.numbers, advice.numbers)


def _supersede(
    session: Session, run: Run, opened: Recommendation | None, now: datetime, why: str, *, renewed: bool = False
) -> None:
    if opened is None:
        return
    opened.status, opened.decided_at = "superseded", now
    session.flush()  # before the next one is opened: the index allows one open per run
    if not renewed:
        tell_advice_no_more(session, opened.id)
    _record(session, run, opened, actor="refit", reason=why)


def _take_open(session: Session, recommendation_id: str) -> tuple[Recommendation, Run]:
    # The run is locked first, as a refit does, so that an answer and newer advice come one after the other.
    run_id = session.scalar(select(Recommendation.run_id).where(Recommendation.id == recommendation_id))
    if run_id is None:
        raise _unknown(recommendation_id)
    run = lock_run(session, run_id)
    advice = session.get_one(Recommendation, recommendation_id, populate_existing=True)
    if advice.status != "open":
        way_out = f"`GET /v1/recommendations?run_id={run_id}&status=open` has the run's present one"
        message = f"only an open one can be answered; {way_out}"
        raise Conflict(
            f"Recommendation {advice.id} is {advice.status} already; {way_out}.",
            errors=[{"field": "status", "value": advice.status, "message": message}],
        )
    return advice, run


def _unknown(recommendation_id: str) -> NotFound:
    message = "no such recommendation; `GET /v1/recommendations` lists them"
    return NotFound.field("recommendation_id", recommendation_id, message)


def _decide(
    session: Session, run: Run, advice: Recommendation, status: str, actor: str, reason: str | None, now: datetime
) -> None:
    advice.status, advice.decided_by, advice.decided_reason, advice.decided_at = status, actor, reason, now
    session.flush()
    tell_advice_no_more(session, advice.id)
    _record(session, run, advice, actor=actor, reason=reason)


def _record(session: Session, run: Run, advice: Recommendation, *, actor: str, reason: str | None) -> None:
    record_of(
        session,
        run,
        "recommendation",
        actor=actor,
        to_state=advice.status,
        reason=reason,
        recommendation=advice.id,
        action=advice.action,
    )
