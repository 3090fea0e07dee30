"""Taking a numbered batch: whole or not at all, once however often it comes, and only while it is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, text, union_all
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from forecurve.reports import pass_rate
from server.errors import Conflict
from server.runs.fencing import check_reporter, check_wanted
from server.runs.history import record_of
from server.runs.models import Run
from server.runs.reports import TRAINER, mark_alive
from server.runs.service import current_attempt, lock_run

from .checks import check_batch
from .dirty import mark_dirty
from .models import Evaluation, IngestBatch
from .schemas import Batch, BatchAnswer, EvaluationIn, Point
from .variance import known_variance


def take_batch(session: Session, run_id: str, batch: Batch, *, now: datetime) -> BatchAnswer:
    """Store a batch of metric points and evaluations, and mark the run for a refit.

    Raises:
        NotFound: no such run.
        Conflict: another batch has this number; Superseded, Over: the attempt is no longer wanted.
        Invalid: something in it does not hold. Nothing of the batch is stored then.
    """
    run = lock_run(session, run_id)  # batches of one run come one after the other
    check_reporter(run, batch)
    digest = digest_of(batch)
    if _taken_before(session, run, batch, digest):
        return BatchAnswer(seq=batch.seq, accepted=0, duplicate=True)
    check_wanted(run, batch)
    check_batch(batch, _around(session, run, batch))
    mark_alive(session, run, current_attempt(session, run), now)
    size = len(batch.points) + len(batch.evaluations)
    numbered = {"run_id": run.id, "attempt": batch.attempt, "seq": batch.seq, "digest": digest, "points": size}
    session.add(IngestBatch(**numbered, received_at=now))
    session.flush()
    accepted = store_points(session, run, batch.attempt, batch.points, now)
    store_evaluations(session, run, batch.attempt, batch.evaluations, now)
    return BatchAnswer(seq=batch.seq, accepted=accepted + len(batch.evaluations), duplicate=False)


def digest_of(batch: Batch) -> str:
    """sha256 of the batch's content, whoever sent it, whatever the spacing and order of fields it came with; `details`
    keep theirs."""
    return hashlib.sha256(batch.model_dump_json(exclude={"handed_in_by"}).encode()).hexdigest()


def _taken_before(session: Session, run: Run, batch: Batch, digest: str) -> bool:
    stored = session.get(IngestBatch, (run.id, batch.attempt, batch.seq))
    if stored is None:
        return False
    if stored.digest != digest:
        mine = IngestBatch.run_id == run.id, IngestBatch.attempt == batch.attempt
        newest = session.scalar(select(func.max(IngestBatch.seq)).where(*mine)) or 0
        message = f"attempt {batch.attempt} has sent another batch {batch.seq}; the next free number is {newest + 1}"
        raise Conflict.field("seq", batch.seq, message, next_seq=newest + 1)
    return True


def _around(session: Session, run: Run, batch: Batch) -> dict[int, float]:
    """Step to compute of the evaluations that the attempt has reported among those of the batch, of the last before
    them and of the first behind them: the others are in order with these, and a long run has many."""
    if not batch.evaluations:
        return {}
    steps = [evaluation.step for evaluation in batch.evaluations]
    first, last, step = min(steps), max(steps), Evaluation.step
    mine = select(step, Evaluation.compute).where(Evaluation.run_id == run.id, Evaluation.attempt == batch.attempt)
    before = mine.where(step < first).order_by(step.desc()).limit(1)
    behind = mine.where(step > last).order_by(step).limit(1)
    found = union_all(mine.where(step.between(first, last)), before.subquery().select(), behind.subquery().select())
    return dict(session.execute(found).all())


_INSERT_POINTS = text("""
    INSERT INTO metric_points (run_id, metric, attempt, step, compute, value, time)
    SELECT :run_id, metric, :attempt, step, compute, value, time
    FROM unnest(
      CAST(:metrics AS text[]), CAST(:steps AS int[]), CAST(:computes AS float8[]),
      CAST(:values AS float8[]), CAST(:times AS timestamptz[])
    ) AS point (metric, step, compute, value, time)
    ORDER BY metric, step  -- one order for all writers, so that none waits for another in a circle
    ON CONFLICT (run_id, metric, attempt, step) DO UPDATE
      SET compute = excluded.compute, value = excluded.value, time = excluded.time
    RETURNING xmax = 0  -- a row that was not there
""")


def store_points(session: Session, run: Run, attempt: int, points: Sequence[Point], now: datetime) -> int:
    """One statement for all, no two of which are of one metric and step; of a step that is there already the value
    logged last counts. Answers how many are new."""
    if not points:
        return 0
    columns: dict[str, Any] = {
        "metrics": [point.metric for point in points],
        "steps": [point.step for point in points],
        "computes": [point.compute for point in points],
        "values": [point.value for point in points],
        "times": [point.time or now for point in points],
    }
    return sum(session.scalars(_INSERT_POINTS, {"run_id": run.id, "attempt": attempt, **columns}))


def store_evaluations(
    session: Session, run: Run, attempt: int, evaluations: Sequence[EvaluationIn], now: datetime
) -> None:
    """Evaluations that hold, beside those that are there (`check_batch`), of a run that is locked; it is forecast
    anew."""
    if not evaluations:
        return
    ordered = sorted(evaluations, key=lambda evaluation: evaluation.step)
    rows = [{"run_id": run.id, "attempt": attempt, **_row(evaluation, now)} for evaluation in ordered]
    session.execute(insert(Evaluation), rows)
    last = rows[-1]
    record_of(
        session,
        run,
        "evaluation",
        actor=TRAINER,
        attempt=attempt,
        evaluations=len(rows),
        step=last["step"],
        compute=last["compute"],
        reward=last["reward"],
    )
    _sum_up(session, run)
    mark_dirty(session, run, now)


def reward_of(evaluation: EvaluationIn) -> float:
    """As it is stored, of an evaluation that holds: by its counts where it has them."""
    if evaluation.counts is not None and evaluation.samples is not None:
        return pass_rate(evaluation.counts, evaluation.samples)
    assert evaluation.reward is not None  # checked
    return evaluation.reward


def _row(evaluation: EvaluationIn, now: datetime) -> dict[str, Any]:
    counts, samples = evaluation.counts, evaluation.samples
    prompts = len(counts) if counts is not None else evaluation.prompts
    return {
        "step": evaluation.step,
        "compute": evaluation.compute,
        "reward": reward_of(evaluation),
        "prompts": prompts,
        "samples": samples,
        "counts": counts,
        "variance": known_variance(samples, counts),
        "details": evaluation.model_dump(mode="json", include={"details"})["details"],
        "time": evaluation.time or now,
    }


def _sum_up(session: Session, run: Run) -> None:
    """The run's newest evaluation, in the run's own row: the last step of the newest attempt that has any."""
    last = select(Evaluation.step, Evaluation.compute, Evaluation.reward).where(Evaluation.run_id == run.id)
    run.last_step, run.last_compute, run.last_reward = session.execute(
        last.order_by(Evaluation.attempt.desc(), Evaluation.step.desc()).limit(1)
    ).one()
