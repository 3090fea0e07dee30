"""Keyset pages: ids sort by creation time, so the cursor is the last id seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

Row = TypeVar("Row")
Item = TypeVar("Item")

Limit = Annotated[int, Query(ge=1, le=1000, description="Most items on a page.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]


class Page(BaseModel, Generic[Item]):
    """One page of a list, newest first."""

    items: list[Item]
    next_cursor: str | None = None


def newest_first(
    session: Session, query: Select[Row], key: InstrumentedAttribute[Any], cursor: str | None, limit: int
) -> tuple[Sequence[Row], str | None]:
    """Rows of one page and the cursor of the next, None at the end. `key` is the table's time-sorted id."""
    if cursor is not None:
        query = query.where(key < key.type.python_type(cursor))
    rows = session.scalars(query.order_by(key.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    page = rows[:limit]
    return page, str(getattr(page[-1], key.key)) if more else None
