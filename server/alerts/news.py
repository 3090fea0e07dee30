"""What channels are told that is no alert: advice somebody waits for, and that a run or a sweep is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session

from server.database import new_id
from server.events.outbox import enqueue
from server.runs.models import Run
from server.runs.states import TERMINAL, UNASKED, Status
from server.sweeps.models import Sweep

from .models import ADVICE, ALERTS, OF_ADVICE, OF_ENDS, RUN_OVER, SWEEP_OVER, Channel, Delivery
from .telling import DELIVER_TASK, hearing, overtake

LAST_LOOK = timedelta(seconds=30)
"""How long the end of a run is waited with: its last evaluations are fitted and compared by then, and told with it."""

_OVER = [str(status) for status in TERMINAL]
_ANSWERED = "Overtaken: the advice is open no more."
_GOES_ON = "Overtaken: the sweep was extended."


def tell_advice(session: Session, recommendation_id: str, now: datetime) -> None:
    """That a run should be stopped, or is worth more than its budget."""
    for channel_id in session.scalars(hearing(OF_ADVICE)):
        _tell(session, channel_id, ADVICE, now, recommendation_id=recommendation_id)


def tell_newer_advice(session: Session, old_id: str, new_id: str) -> None:
    """The same advice with newer numbers: who was not told yet is told these, and nobody is told twice."""
    pending = Delivery.recommendation_id == old_id, Delivery.status == "pending"
    session.execute(update(Delivery).where(*pending).values(recommendation_id=new_id))


def tell_advice_no_more(session: Session, recommendation_id: str) -> None:
    """It was answered, or newer evaluations say something else: who was not told yet need not act on it."""
    overtake(session, Delivery.recommendation_id == recommendation_id, why=_ANSWERED)


def tell_end(session: Session, run: Run, now: datetime) -> None:
    """That a run is over, where it is of no sweep; of a sweep, once that all are. `run` is over, in this transaction.

    What came in whole was over before. That a run of its own failed, which nobody wanted to end, is an alert; whoever
    hears those is told so.
    """
    if run.import_digest is not None:
        return
    if run.sweep_id is not None:
        _tell_end_of_sweep(session, run.sweep_id, now)
        return
    heard = hearing(OF_ENDS)
    if run.status == Status.FAILED and run.desired_state in UNASKED:
        heard = heard.where(~Channel.hears.contains([ALERTS]))
    for channel_id in session.scalars(heard):
        _tell(session, channel_id, RUN_OVER, now + LAST_LOOK, run_id=run.id)


def tell_end_no_more(session: Session, sweep_id: str) -> None:
    """The sweep goes on: its end is told when it comes."""
    overtake(session, Delivery.sweep_id == sweep_id, why=_GOES_ON)


def _tell_end_of_sweep(session: Session, sweep_id: str, now: datetime) -> None:
    heard = session.scalars(hearing(OF_ENDS)).all()
    if not heard:
        return
    # Locked, for the last two of its runs may end at once: then each would see the other as going on.
    session.scalar(select(Sweep.id).where(Sweep.id == sweep_id).with_for_update(key_share=True))
    if session.scalar(select(exists().where(Run.sweep_id == sweep_id, Run.status.not_in(_OVER)))):
        return
    for channel_id in heard:
        _tell(session, channel_id, SWEEP_OVER, now + LAST_LOOK, sweep_id=sweep_id)


def _tell(session: Session, channel_id: str, event: str, at: datetime, **about: str) -> None:
    delivery = Delivery(id=new_id("dlv"), channel_id=channel_id, event=event, not_before=at, **about)
    session.add(delivery)
    enqueue(session, DELIVER_TASK, delivery.id, not_before=at)
