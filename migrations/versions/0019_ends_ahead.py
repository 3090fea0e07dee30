"""A forecast says how its run ends wherever that will be; a frozen one says what its noise was known from.

Forecasts that are there get their ends from their bands and the noise at their budgets, by which they were scored.

Revision: 0019
Follows: 0018
"""

from __future__ import annotations

from math import hypot, sqrt
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_FORECASTS = sa.table(
    "forecasts",
    sa.column("id", sa.String),
    sa.column("at_compute", sa.Float),
    sa.column("summary", JSONB),
    sa.column("band", JSONB),
)
_AT_ONCE = 200


def upgrade() -> None:
    op.execute("""
        UPDATE forecasts SET state = state || '{"version": 2, "source": null, "restarts": []}'
         WHERE state ->> 'version' = '1'
    """)
    connection, after = op.get_bind(), ""
    while rows := connection.execute(_page(after)).all():
        for row in rows:
            changed = {**row.summary, "ends_ahead": _ends(row.at_compute, row.summary, row.band)}
            connection.execute(sa.update(_FORECASTS).where(_FORECASTS.c.id == row.id).values(summary=changed))
        after = rows[-1].id


def downgrade() -> None:
    op.execute("UPDATE forecasts SET summary = summary - 'ends_ahead'")
    op.execute("""
        UPDATE forecasts SET state = (state - 'source' - 'restarts') || '{"version": 1}' WHERE state ->> 'version' = '2'
    """)


def _page(after: str) -> sa.Select[Any]:
    return sa.select(_FORECASTS).where(_FORECASTS.c.id > after).order_by(_FORECASTS.c.id).limit(_AT_ONCE)


def _ends(now: float, summary: dict[str, Any], band: dict[str, list[float]]) -> dict[str, list[float]] | None:
    """The band from now on, wider by the noise of such a mean."""
    if not band.get("compute"):
        return None
    below, above = _noise(summary.get("at_budget"))
    columns = ("compute", "median", "lower90", "upper90")
    rows = [row for row in zip(*(band[name] for name in columns), strict=True) if row[0] >= now]
    return (
        {
            "compute": [compute for compute, *_ in rows],
            "median": [median for _, median, *_ in rows],
            "lower": [median - hypot(median - low, below) for _, median, low, _ in rows],
            "upper": [median + hypot(high - median, above) for _, median, _, high in rows],
        }
        if rows
        else None
    )


def _noise(at_budget: dict[str, Any] | None) -> tuple[float, float]:
    """Half widths (below, above) that noise adds to the curve's own; 0 where no budget was known."""
    if not at_budget:
        return 0.0, 0.0
    curve, mean = at_budget["curve"], at_budget.get("ending") or at_budget["evaluation"]
    sides = (("median", "lower"), ("upper", "median"))
    below, above = (sqrt(max((mean[a] - mean[b]) ** 2 - (curve[a] - curve[b]) ** 2, 0.0)) for a, b in sides)
    return below, above
