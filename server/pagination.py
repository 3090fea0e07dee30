"""Keyset pages: ids sort by creation time, so the cursor is the last id seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel
from sqlalchemy import Select
from sqlalchemy.orm import InstrumentedAttribute, Session

from server.database import is_id
from server.errors import Invalid

Row = TypeVar("Row")
Item = TypeVar("Item")

Limit = Annotated[int, Query(ge=1, le=1000, description="Most items on a page.")]
_ID_OR_NUMBER = "^([a-z]{3,4}_[0-9a-hjkmnp-tv-z]{26}|[0-9]{1,18})$"

Cursor = Annotated[
    str | None,
    Query(
        description="`next_cursor` of the page before, of the same list; that of another is refused.",
        json_schema_extra={"pattern": _ID_OR_NUMBER},  # said to readers; `_place` refuses in better words
    ),
]


class Page(BaseModel, Generic[Item]):
    """One page of a list, newest first."""

    items: list[Item]
    next_cursor: str | None = None


def newest_first(
    session: Session, query: Select[Row], key: InstrumentedAttribute[Any], cursor: str | None, limit: int
) -> tuple[Sequence[Row], str | None]:
    """Rows of one page and the cursor of the next, None at the end. `key` is the table's time-sorted id.

    Raises:
        Invalid: the cursor is of another list, or of none; it would give the first page again, for ever.
    """
    if cursor is not None:
        query = query.where(key < _place(key, cursor))
    rows = session.scalars(query.order_by(key.desc()).limit(limit + 1)).all()
    more = len(rows) > limit
    page = rows[:limit]
    return page, str(getattr(page[-1], key.key)) if more else None


def _place(key: InstrumentedAttribute[Any], cursor: str) -> Any:
    kind = key.type.python_type
    if kind is int:
        holds = cursor.isascii() and cursor.isdigit() and len(cursor) < 19
    else:
        made_now = key.property.columns[0].default.arg(None)  # an id as the table gives them
        holds = is_id(cursor, prefix=made_now.partition("_")[0])
    if not holds:
        raise Invalid.field("cursor", cursor, "is no cursor of this list; send `next_cursor` of the page before")
    return kind(cursor)
