"""What an attempt only says once more, as that of a log that is sent anew: it has thrown nothing away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from .models import Evaluation


def says_else(attempt: ColumnElement[Any] | InstrumentedAttribute[int | None]) -> Sequence[ColumnElement[bool]]:
    """Of evaluations: of a later attempt than this, and they say something else than those up to it."""
    older = aliased(Evaluation)
    same = older.compute == Evaluation.compute, older.reward == Evaluation.reward
    said_before = exists().where(older.run_id == Evaluation.run_id, older.attempt <= attempt, *same)
    return Evaluation.attempt > attempt, ~said_before


def only_repeats(session: Session, run_id: str) -> bool:
    """Whether all that the run's newest attempt has said had been said before it."""
    mine = Evaluation.run_id == run_id
    newest = select(func.max(Evaluation.attempt)).where(mine).scalar_subquery()
    return session.scalar(select(Evaluation.run_id).where(mine, *says_else(newest - 1)).limit(1)) is None
