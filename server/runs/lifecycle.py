"""The one function that moves a run between statuses: checked, guarded by the version, written to the audit log."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import or_, update
from sqlalchemy.orm import Session

from server.access.models import Token
from server.alerts.news import tell_end
from server.errors import Conflict
from server.sweeps.comparisons import ask_for_allocation

from .history import record_of
from .models import Run
from .states import TERMINAL, TRANSITIONS, Status

INGEST_GRACE = timedelta(hours=1)
"""How long the ingest tokens of a run that is over or paused stay known: a late report is answered 409 and not 401."""


def transition(
    session: Session, run: Run, to: Status | str, *, actor: str, reason: str | None, now: datetime, **evidence: Any
) -> Run:
    """Move `run` to status `to` and record event `run.status`; the caller commits.

    `reason` says in words why, and replaces `run.reason`. `evidence` is kept with the event as JSON, with the attempt.
    `started_at` is set when the run first runs, `finished_at` when it is over. Its ingest tokens run out when it is
    over or paused: what goes on after a pause is another attempt.

    Raises:
        Conflict: `to` may not follow the present status, or another process changed the run since it was read.
    """
    came_from, to = Status(run.status), Status(to)
    if to not in TRANSITIONS[came_from]:
        raise _not_allowed(run, came_from, to)
    values: dict[str, Any] = {"status": str(to), "reason": reason, "version": Run.version + 1}
    if to is Status.RUNNING and run.started_at is None:
        values["started_at"] = now
    if to in TERMINAL:
        values["finished_at"] = now
    guarded = (
        update(Run).where(Run.id == run.id, Run.version == run.version, Run.status == str(came_from)).values(**values)
    )
    if session.execute(guarded.returning(Run.id), execution_options={"synchronize_session": False}).first() is None:
        raise _changed_meanwhile(run, came_from, to)
    session.refresh(run)
    if to in TERMINAL:
        tell_end(session, run, now)
    if to in TERMINAL or to is Status.PAUSED:
        _let_ingest_tokens_expire(session, run, now)
        ask_for_allocation(session, run, now)
    record_of(
        session,
        run,
        "run.status",
        actor=actor,
        from_state=str(came_from),
        to_state=str(to),
        reason=reason,
        **{"attempt": run.attempt, **evidence},
    )
    return run


def _let_ingest_tokens_expire(session: Session, run: Run, now: datetime) -> None:
    ends = now + INGEST_GRACE
    living = Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > ends)
    session.execute(
        update(Token).where(Token.run_id == run.id, Token.kind == "ingest", *living).values(expires_at=ends)
    )


def _not_allowed(run: Run, came_from: Status, to: Status) -> Conflict:
    allowed = sorted(str(status) for status in TRANSITIONS[came_from])
    may = (
        f"from there it may become {', '.join(allowed)}"
        if allowed
        else "it is over, and nothing revives it; start a new run instead"
    )
    return Conflict(
        f"Run {run.id} is {came_from} and cannot become {to}: {may}.",
        errors=[{"field": "status", "value": str(to), "message": f"cannot follow {came_from}"}],
        state=str(came_from),
        allowed=allowed,
    )


def _changed_meanwhile(run: Run, came_from: Status, to: Status) -> Conflict:
    return Conflict(
        f"Run {run.id} was changed by another process while it was to become {to}; read it again and decide anew.",
        errors=[{"field": "version", "value": run.version, "message": "is no longer the newest"}],
        state=str(came_from),
        allowed=sorted(str(status) for status in TRANSITIONS[came_from]),
    )
