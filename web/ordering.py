"""The order of a list, as it stands in its URL: `sort=rate` rises, `sort=-rate` falls; else newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Select, and_, case, func, or_
from sqlalchemy.orm import Session

from forecurve.science.departures.misfit import HOLDS
from server.forecasts.models import Forecast
from server.pagination import newest_first
from server.runs.models import Run

_said = Forecast.summary
_known = and_(
    _said["ceiling_known"].as_boolean(),
    or_(_said["misfit"].as_string().is_(None), _said["misfit"].as_string().in_([name for name in HOLDS if name])),
)

COLUMNS: dict[str, Any] = {
    "name": func.lower(Run.name),
    "state": Run.status,
    "rate": Run.last_reward,
    "ceiling": case((_known, _said["A"]["median"].as_float())),
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
    column = COLUMNS.get((sort or "").lstrip("-"))
    if column is None:
        return newest_first(session, query, Run.id, cursor, limit)
    order = column.desc() if sort and sort.startswith("-") else column.asc()
    before = int(cursor) if cursor and cursor.isdecimal() and len(cursor) <= _DIGITS else 0
    joined = query.outerjoin(Forecast, Forecast.id == Run.forecast_id)
    rows = session.scalars(joined.order_by(order.nulls_last(), Run.id.desc()).offset(before).limit(limit + 1)).all()
    return rows[:limit], str(before + limit) if len(rows) > limit else None


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
