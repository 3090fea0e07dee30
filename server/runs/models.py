"""Tables of runs (one arm with one seed) and attempts (one launch of a run)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, false, func, text
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id
from server.labels.models import Labels

from .states import DesiredState, Status


def _one_of(column: str, values: type[DesiredState] | type[Status]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(str(v)) for v in values)})", name=column)


class Run(Labels, Base):
    """A run. `version` rises with every guarded change; `dirty_at` marks evaluations that no forecast has seen yet."""

    __tablename__ = "runs"
    __table_args__ = (
        _one_of("desired_state", DesiredState),
        _one_of("status", Status),
        CheckConstraint("executor IN ('ray', 'external')", name="executor"),
        CheckConstraint("num_nonnulls(parent_run_id, parent_checkpoint_id, parent_step) IN (0, 3)", name="parent"),
        Index("ix_runs_active", "status", postgresql_where=text("status NOT IN ('stopped', 'succeeded', 'failed')")),
        Index("ix_runs_task", "task", postgresql_where=text("task IS NOT NULL")),
        Index(
            "ix_runs_import_digest", "import_digest", unique=True, postgresql_where=text("import_digest IS NOT NULL")
        ),
        Index("ix_runs_tags", "tags", postgresql_using="gin", postgresql_where=text("tags <> '{}'")),
        Index("ix_runs_dirty", "dirty_at", postgresql_where=text("dirty_at IS NOT NULL")),
        Index("ix_runs_refit_at", "refit_at", postgresql_where=text("refit_at IS NOT NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("run"))
    name: Mapped[str]
    sweep_id: Mapped[str | None] = mapped_column(ForeignKey("sweeps.id"), index=True)
    recipe_id: Mapped[str | None] = mapped_column(
        ForeignKey("recipes.id"), index=True
    )  # none for a run that is only tracked
    task: Mapped[str | None]  # what a run without a recipe is of; runs of one task tell of one another
    import_digest: Mapped[str | None]  # of a run that came in whole: what it was made of
    arm: Mapped[str | None]  # in its sweep; without a recipe what it has in common with its other seeds
    changes: Mapped[dict[str, Any]] = mapped_column(
        default=dict
    )  # dotted field -> value, against the sweep's base recipe or a fork's parent
    is_control: Mapped[bool] = mapped_column(default=False)
    seed: Mapped[int | None]
    executor: Mapped[str] = mapped_column(default="ray")  # external: launched by the user, only tracked here

    # of a fork: where it begins, all three or none
    parent_run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.id"), index=True)
    parent_checkpoint_id: Mapped[str | None]
    parent_step: Mapped[int | None]

    compute_unit: Mapped[str]
    budget_compute: Mapped[float | None]

    desired_state: Mapped[str] = mapped_column(default=DesiredState.RUN)
    desired_reason: Mapped[str | None]  # why, in the words of who wants it
    status: Mapped[str] = mapped_column(default=Status.QUEUED)
    reason: Mapped[str | None]  # why the status is what it is, in words
    version: Mapped[int] = mapped_column(default=1)
    attempt: Mapped[int] = mapped_column(default=0)  # number of the current attempt; 0 before the first
    excused_attempts: Mapped[int] = mapped_column(default=0, server_default="0")  # lost by no fault of the run's
    not_before: Mapped[datetime | None]  # a queued run waits until then (retry back-off)
    allocated: Mapped[bool] = mapped_column(default=False, server_default=false())  # its sweep says how far it trains
    goes_to: Mapped[float | None]  # compute to which that lets it train now, 0 until its first forecast; none: held

    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())
    archived_at: Mapped[datetime | None]  # put away by a person, see archive.py

    # the validation curve, summed up for lists
    last_step: Mapped[int | None]
    last_compute: Mapped[float | None]
    last_reward: Mapped[float | None]

    dirty_at: Mapped[datetime | None]
    dirty_since: Mapped[datetime | None]  # dirty_at moves with every report
    fitted_at: Mapped[datetime | None]
    unfitted: Mapped[str | None]  # why the newest evaluations could not be fitted, or there are none, in words
    refit_tries: Mapped[int] = mapped_column(default=0, server_default="0")  # unexpected failures with the same ones
    refit_at: Mapped[datetime | None]  # when they are tried again
    fit_lease: Mapped[str | None]
    fit_lease_expires_at: Mapped[datetime | None]
    forecast_id: Mapped[str | None]  # newest forecast
    frozen_forecast_id: Mapped[str | None]  # the one the live run is judged against


class Attempt(Base):
    """One launch of a run. Its number fences: reports of an older attempt are refused."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("run_id", "number"),
        Index("ix_attempts_last_at", text("(coalesce(ended_at, created_at))")),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("att"))
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"))
    number: Mapped[int]
    external_ref: Mapped[str | None]  # the executor's name for it: `{run}-a{number}` on Ray
    observed: Mapped[str | None]  # last state the executor reported
    observed_at: Mapped[datetime | None]
    unreachable_since: Mapped[datetime | None]  # the executor has not answered since then
    outcome: Mapped[str | None]  # what the trainer itself reported: succeeded, stopped, failed or lost
    outcome_reason: Mapped[str | None]
    exit_code: Mapped[int | None]
    log_tail: Mapped[str | None]
    last_heartbeat_at: Mapped[datetime | None]
    patience_s: Mapped[float | None]  # silence that tells nothing, of who reports without heartbeats
    progress: Mapped[dict[str, Any]] = mapped_column(default=dict)  # step, compute, message of the last heartbeat
    stop_requested_at: Mapped[datetime | None]  # when the cooperative stop began
    stop_forced_at: Mapped[datetime | None]  # when the executor was told to stop it
    lease: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    submitted_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
