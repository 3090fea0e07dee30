"""A run that is over elsewhere comes in whole: the run and all of its evaluations in one request, once.

One that came in before it was over comes in again with more: it is the same run, with what has come since. As a second
run it would count twice among the past of its task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.room import Room
from server.runs.service import create_run, current_attempt, lock_run
from server.runs.states import Status

from .checks import check_batch
from .curve import validation_curves
from .ingest import digest_of as digest_of_batch
from .ingest import reward_of, store_evaluations, take_batch
from .models import IngestBatch
from .schemas import Batch, RunImport

IMPORTED = "Imported: it was over."
TELLS_A_RUN = 4
"""Evaluations that are alike in one run only: the first may be the same in all runs of a model."""


@dataclass(frozen=True)
class Imported:
    """The run, whether it was there before, and how many of its evaluations are new."""

    run: Run
    was_there: bool
    added: int = 0


def import_run(session: Session, body: RunImport, *, actor: str, now: datetime) -> Imported:
    """A run of a user's own that has succeeded, with its whole curve. The very same one again changes nothing; one with
    more evaluations behind those that it came in with gets these.

    Raises:
        Invalid: something of the run or of an evaluation does not hold. Nothing is stored then.
    """
    check_batch(Batch(attempt=1, seq=1, evaluations=body.evaluations), {})
    in_order = sorted(body.evaluations, key=lambda one: one.step)
    body, batch = body.model_copy(update={"evaluations": in_order}), Batch(attempt=1, seq=1, evaluations=in_order)
    digest = digest_of(body)
    kind = json.dumps([body.task, body.seed, body.compute_unit])  # what may be one run has in common: one waits
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(kind, 0))))
    there = _same(session, body, batch, digest)
    if there is not None:
        return Imported(there, was_there=True)
    begun = _begun(session, body)
    if begun is not None:
        return Imported(begun, was_there=True, added=_go_on(session, begun, body, batch, now))
    run = create_run(session, body.as_new(), Room(), actor=actor, now=now, reports=False).run
    run.import_digest = digest
    take_batch(session, run.id, batch, now=now)
    attempt = current_attempt(session, run)
    attempt.outcome, attempt.ended_at = "succeeded", now
    run = transition(session, run, Status.SUCCEEDED, actor=actor, reason=IMPORTED, now=now)
    return Imported(run, was_there=False, added=len(in_order))


def _begun(session: Session, body: RunImport) -> Run | None:
    """The run that came in under this name as far as it was then, or further than this goes; it is locked."""
    came_in = Run.import_digest.is_not(None), Run.arm.is_not_distinct_from(body.arm), *_of_its_kind(body)
    given = [(one.step, one.compute, reward_of(one)) for one in body.evaluations]
    for run in session.scalars(select(Run).where(*came_in).order_by(Run.id)).all():
        if _series(run.name, run.seed) != _series(body.name, body.seed):
            continue
        lock_run(session, run.id)
        there = [(one.step, one.compute, one.reward) for one in validation_curves(session, [run.id])[run.id]]
        shared = min(len(there), len(given))
        if shared >= TELLS_A_RUN and there[:shared] == given[:shared]:
            return run
    return None


def _go_on(session: Session, run: Run, body: RunImport, batch: Batch, now: datetime) -> int:
    """Give it the evaluations behind its last, and make it known as what it is now; how many these are."""
    more = [one for one in batch.evaluations if run.last_step is None or one.step > run.last_step]
    if not more:
        return 0
    store_evaluations(session, run, 1, more, now)
    run.import_digest = digest_of(body)
    whole = session.get_one(IngestBatch, (run.id, 1, 1))
    whole.digest, whole.points = digest_of_batch(batch), len(batch.evaluations)
    run.budget_compute = body.budget_compute or max(run.budget_compute or 0.0, more[-1].compute)
    return len(more)


def _same(session: Session, body: RunImport, batch: Batch, digest: str) -> Run | None:
    """The run that came in as this one, or was reported here; also where it was told since that it is of another task
    or has another name, or where it comes in by the name that it goes out with: that is all that a file of curves has
    of its arm."""
    as_it_came = session.scalar(select(Run).where(Run.import_digest == digest))
    if as_it_came is not None:
        return as_it_came
    told = _of_its_kind(body)
    curve = exists().where(IngestBatch.run_id == Run.id, IngestBatch.digest == digest_of_batch(batch))
    alike = session.scalars(select(Run).where(Run.import_digest.is_not(None), *told, curve).order_by(Run.id))
    found = next((run for run in alike if run.arm == body.arm or _is_called(run, body)), None)
    return found or _reported(session, body, told)


def _reported(session: Session, body: RunImport, told: Sequence[ColumnElement[bool]]) -> Run | None:
    """The run that was reported here while it went on, and comes in as it goes out: files of curves have no steps."""
    last = body.evaluations[-1]
    ends_so = Run.last_compute == last.compute, Run.last_reward == reward_of(last)
    alike = session.scalars(select(Run).where(Run.import_digest.is_(None), *told, *ends_so).order_by(Run.id)).all()
    called = [run for run in alike if _is_called(run, body)]
    curves = validation_curves(session, [run.id for run in called])
    curve = [(one.compute, reward_of(one)) for one in body.evaluations]
    return next((run for run in called if [(one.compute, one.reward) for one in curves[run.id]] == curve), None)


def _of_its_kind(body: RunImport) -> list[ColumnElement[bool]]:
    return [getattr(Run, name).is_not_distinct_from(getattr(body, name)) for name in ("task", "seed", "compute_unit")]


def _is_called(run: Run, body: RunImport) -> bool:
    """Whether the series as which it goes out is the same, or comes into a project: another arm may have measured the
    same."""
    series, comes_as = _series(run.name, run.seed), _series(body.name, body.seed)
    goes_out_as = series, f"{series} ({run.id})"
    in_a_project = comes_as.endswith(tuple(f"/{one}" for one in goes_out_as))
    return in_a_project or not {body.arm, comes_as}.isdisjoint(goes_out_as)


def _series(name: str, seed: int | None) -> str:
    """What its runs with other seeds are called too, as in files of curves."""
    return name.removesuffix(f" (seed {seed})")


def digest_of(body: RunImport) -> str:
    """sha256 of what makes it that run, which its name and its budget do not."""
    told = body.model_dump(mode="json", include={"task", "arm", "seed", "compute_unit", "evaluations"})
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
