"""How long the service itself has been well without a break.

Deadlines on trainers (silence, launch, stop) count only time in which the service could have heard them: a run must
not be judged by our own outage. The reconciler keeps one row here; Redis could be emptied, and a process's memory ends
with it. A jump of the clock, ahead or back, is an outage too: nobody knows how long it has been since the last pass.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from server.clocks import was_set_back
from server.database import Base


class Tick(Base):
    """The last time something periodic ran, and since when it has run without a gap."""

    __tablename__ = "ticks"

    name: Mapped[str] = mapped_column(primary_key=True)
    last_at: Mapped[datetime]
    healthy_since: Mapped[datetime]


def tick(session: Session, name: str, now: datetime, *, gap: timedelta) -> datetime:
    """Note that `name` ran at `now`; return since when it has run with no pause longer than `gap`."""
    row = session.scalar(select(Tick).where(Tick.name == name).with_for_update())
    if row is None:
        first = insert(Tick).values(name=name, last_at=now, healthy_since=now).on_conflict_do_nothing()
        session.execute(first)
        return now
    if _is_broken(row, now, gap):
        row.last_at = row.healthy_since = now
    row.last_at = max(now, row.last_at)
    return row.healthy_since


def healthy_since(session: Session, name: str, now: datetime, *, gap: timedelta) -> datetime:
    """As `tick` would answer at `now`, without noting anything."""
    row = session.get(Tick, name)
    return now if row is None or _is_broken(row, now, gap) else row.healthy_since


def _is_broken(row: Tick, now: datetime, gap: timedelta) -> bool:
    return now - row.last_at > gap or was_set_back(row.last_at, now)
