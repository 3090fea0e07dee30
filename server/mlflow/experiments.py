"""Experiments: MLflow's groups of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from server.database import new_id
from server.errors import NotFound

from .curves import settle_waiting
from .models import MlflowExperiment
from .route import ThereAlready
from .rule import PREFIX, said_of
from .schemas import ExperimentCreate, ExperimentTag

DEFAULT_ID, DEFAULT = "0", "Default"
"""The experiment of runs that name none, as MLflow has it."""


def get(session: Session, experiment_id: str) -> MlflowExperiment:
    """The experiment of that id; `0` or none is the one that every store has."""
    if experiment_id in ("", DEFAULT_ID):
        _have_default(session)
    found = session.get(MlflowExperiment, experiment_id or DEFAULT_ID)
    if found is None:
        raise NotFound.field("experiment_id", experiment_id, "no such experiment")
    return found


def by_name(session: Session, name: str) -> MlflowExperiment:
    if name == DEFAULT:
        _have_default(session)
    found = session.scalar(select(MlflowExperiment).where(MlflowExperiment.name == name))
    if found is None:
        raise NotFound.field("experiment_name", name, "no such experiment; `experiments/create` makes it")
    return found


def every(session: Session) -> Sequence[MlflowExperiment]:
    """All of them, the newest first."""
    _have_default(session)
    return session.scalars(
        select(MlflowExperiment).order_by(MlflowExperiment.created_at.desc(), MlflowExperiment.id)
    ).all()


def create(session: Session, body: ExperimentCreate) -> MlflowExperiment:
    """
    Raises:
        ThereAlready: there is one of that name.
        Invalid: a tag `forecurve.*` does not hold.
    """
    if body.name == DEFAULT:
        _have_default(session)
    tags = {tag.key: tag.value for tag in body.tags}
    said_of(tags)
    values = {"id": new_id("exp"), "name": body.name, "artifact_location": body.artifact_location or None, "tags": tags}
    made = insert(MlflowExperiment).values(**values).on_conflict_do_nothing().returning(MlflowExperiment)
    found = session.scalar(made)
    if found is None:
        raise ThereAlready.field("name", body.name, "there is an experiment of this name already")
    return found


def set_tag(session: Session, body: ExperimentTag, *, now: datetime) -> None:
    """One tag. Where it tells runs' curves, runs that have none yet get theirs, of what they have logged.

    Raises:
        NotFound: no such experiment.
        Invalid: a tag `forecurve.*` does not hold.
    """
    found = get(session, body.experiment_id)
    session.refresh(found, with_for_update={"key_share": True})
    tags = {**found.tags, body.key: body.value}
    if body.key.startswith(PREFIX):
        said_of(tags)
    found.tags = tags
    session.flush()
    if body.key.startswith(PREFIX):
        settle_waiting(session, found, now=now)


def _have_default(session: Session) -> None:
    session.execute(insert(MlflowExperiment).values(id=DEFAULT_ID, name=DEFAULT, tags={}).on_conflict_do_nothing())
