"""Tables of what MLflow's clients say that runs have no column for: experiments, parameters, tags."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from server.database import Base, new_id


class MlflowExperiment(Base):
    """What MLflow groups runs by. Its tags `forecurve.*` hold for its runs that have none of their own."""

    __tablename__ = "mlflow_experiments"

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("exp"))
    name: Mapped[str] = mapped_column(unique=True)
    artifact_location: Mapped[str | None]
    tags: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())


class MlflowRun(Base):
    """A run that MLflow's client reports.

    `rule` says which of its numbers are its curve, once it has an evaluation; nothing changes that then.
    """

    __tablename__ = "mlflow_runs"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    experiment_id: Mapped[str] = mapped_column(ForeignKey("mlflow_experiments.id"), index=True)
    name: Mapped[str]  # as MLflow has it, without the experiment
    user: Mapped[str | None]
    started_at: Mapped[datetime]  # by the clock of who reports
    params: Mapped[dict[str, Any]] = mapped_column(default=dict)
    tags: Mapped[dict[str, Any]] = mapped_column(default=dict)
    rule: Mapped[dict[str, Any] | None]
    left_out: Mapped[list[Any]] = mapped_column(default=list)  # why numbers are, as events of the run say
