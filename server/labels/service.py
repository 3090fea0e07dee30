"""Labels change, things are found by them, and what was changed is told for the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal_column, select
from sqlalchemy.orm import Session

from forecurve.limits import MOST_TAGS
from server.errors import Invalid

from .models import Labels
from .schemas import LabelChange

MOST_OFFERED = 200
"""Tags that are told of at once; who has more looks for them by name."""


_NONE: ColumnElement[list[str]] = literal_column("'{}'")
"""As the index of tags has it, which is of those that have some: Postgres takes it for a query that says so too."""


@dataclass(frozen=True)
class Relabelled:
    """One event that a change makes: its kind after the dot, and what it says."""

    kind: str
    said: dict[str, Any] = field(default_factory=dict)


def relabel(thing: Labels, change: LabelChange) -> list[Relabelled]:
    """Change the labels of `thing`, which is locked; what there is to record. The same ones change nothing.

    Raises:
        Invalid: it would have too many tags.
    """
    return [*_retag(thing, change), *_renote(thing, change)]


def _retag(thing: Labels, change: LabelChange) -> list[Relabelled]:
    before, tags = list(thing.tags), _tags_after(thing, change)
    if tags == before:
        return []
    if len(tags) > MOST_TAGS:
        message = f"it would have {len(tags)} tags, and has {MOST_TAGS} at most; remove some"
        raise Invalid.field("add_tags", change.add_tags, message)
    thing.tags = tags
    return [Relabelled("tagged", {"from_state": _listed(before), "to_state": _listed(tags), "tags": tags})]


def _tags_after(thing: Labels, change: LabelChange) -> list[str]:
    if "tags" in change.model_fields_set:
        return change.tags
    kept = [tag for tag in thing.tags if tag not in change.remove_tags]
    return list(dict.fromkeys([*kept, *(tag for tag in change.add_tags if tag not in change.remove_tags)]))


def _renote(thing: Labels, change: LabelChange) -> list[Relabelled]:
    note = change.note or None
    if "note" not in change.model_fields_set or note == thing.note:
        return []
    thing.note = note
    return [Relabelled("noted", {"note": note})]


def _listed(tags: Sequence[str]) -> str:
    return ", ".join(tags) or "no tags"


def has_tag(kind: type[Labels], tag: str) -> ColumnElement[bool]:
    return and_(kind.tags.contains([tag]), kind.tags != _NONE)


def tags_of(session: Session, query: Select[Any], kind: type[Labels]) -> list[str]:
    """The tags of what is in `query`, those that most have first."""
    each = query.with_only_columns(func.unnest(kind.tags).label("tag")).where(kind.tags != _NONE).subquery()
    counted = select(each.c.tag).group_by(each.c.tag).order_by(func.count().desc(), each.c.tag)
    return list(session.scalars(counted.limit(MOST_OFFERED)))
