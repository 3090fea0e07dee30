"""The order of a list, as it stands in its URL: `sort=rate` rises, `sort=-rate` falls; else newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Select, func
from sqlalchemy.orm import Session

from server.pagination import newest_first
from server.runs.models import Run
from server.runs.service import get_runs
from server.sweeps.outline import Said, said_of

from .formats import knows_ceiling

COLUMNS: dict[str, Any] = {
    "name": func.lower(Run.name),
    "state": Run.status,
    "rate": Run.last_reward,
    "ceiling": Run.forecast_id,  # which says it: `_by_ceiling`
    "spent": Run.last_compute,
    "updated": Run.updated_at,
}
"""What a list can be sorted by. A ceiling that is not shown as one is none; what has no value comes last."""

_DIGITS = 9
"""Of how many rows came before; more of them are nobody's, and beyond what Postgres counts."""

RISING_FIRST = ("name", "state")
"""Columns whose first press sorts upwards; figures are wanted from the highest down."""

ORDERS = (
    ("name", "by name"),
    ("state", "by state"),
    ("-rate", "highest pass rate first"),
    ("-ceiling", "highest ceiling first"),
    ("-spent", "most compute first"),
    ("-updated", "last updated first"),
)
"""What a list without heads is offered to be sorted by: what the first press on each head gives."""


def sorted_page(
    session: Session, query: Select[Any], sort: str | None, cursor: str | None, limit: int
) -> tuple[Sequence[Run], str | None]:
    """One page of the runs of `query`, and the cursor of the next: how many came before it, where `sort` is given."""
    wanted = (sort or "").lstrip("-")
    column = COLUMNS.get(wanted)
    if column is None:
        return newest_first(session, query, Run.id, cursor, limit)
    falls = bool(sort and sort.startswith("-"))
    before = int(cursor) if cursor and cursor.isdecimal() and len(cursor) <= _DIGITS else 0
    if wanted == "ceiling":
        rows = get_runs(session, _by_ceiling(session, query, falls)[before : before + limit + 1])
    else:
        order = column.desc() if falls else column.asc()
        ordered = query.order_by(order.nulls_last(), Run.id.desc())
        rows = list(session.scalars(ordered.offset(before).limit(limit + 1)))
    return rows[:limit], str(before + limit) if len(rows) > limit else None


def _by_ceiling(session: Session, query: Select[Any], falls: bool) -> list[str]:
    """The ids of all runs of `query`. What their forecasts say is kept in memory, for it is long and does not change:
    to sort by it the database would read all that is said of each run, at every look at an open page."""
    rows = session.execute(query.with_only_columns(Run.id, Run.forecast_id).order_by(Run.id.desc())).all()
    said = said_of(session, (row.forecast_id for row in rows if row.forecast_id))
    ceilings = [(row.id, _ceiling(said.get(row.forecast_id))) for row in rows]
    known = [(id_, ceiling) for id_, ceiling in ceilings if ceiling is not None]
    known.sort(key=lambda one: one[1], reverse=falls)
    return [id_ for id_, _ in known] + [id_ for id_, ceiling in ceilings if ceiling is None]


def _ceiling(said: Said | None) -> float | None:
    return said.ceiling.median if said is not None and said.ceiling is not None and knows_ceiling(said) else None


def next_sort(column: str, sort: str | None) -> str:
    """What a press on the head of a column sorts by, where the list is sorted by `sort` now."""
    first, second = (column, f"-{column}") if column in RISING_FIRST else (f"-{column}", column)
    return second if sort == first else first


def direction(column: str, sort: str | None) -> str:
    """The `aria-sort` of a column's head."""
    return {column: "ascending", f"-{column}": "descending"}.get(sort or "", "none")


def offered(orders: Sequence[tuple[str, str]], sort: str) -> Sequence[tuple[str, str]]:
    """The orders to choose from, and the present one where it is one of them turned round."""
    labels = dict(orders)
    turned = sort.removeprefix("-") if sort.startswith("-") else f"-{sort}"
    return [*orders, (sort, f"{labels[turned]}, reversed")] if turned in labels else orders


def heads(columns: Iterable[str], sort: str | None, to: Callable[[str], str]) -> dict[str, tuple[str, str]]:
    """Of each column's head: where a press on it leads, and its `aria-sort`; `to` gives the address of an order."""
    return {column: (to(next_sort(column, sort)), direction(column, sort)) for column in columns}
