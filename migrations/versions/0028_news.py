"""Channels hear of advice and of ends too; deliveries of these.

Revision: 0028
Follows: 0027
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_ABOUT = {"recommendation_id": "recommendations", "run_id": "runs", "sweep_id": "sweeps"}


def upgrade() -> None:
    op.add_column("channels", sa.Column("hears", ARRAY(sa.String()), nullable=False, server_default="{alerts}"))
    op.alter_column("deliveries", "level", nullable=True)
    for column, table in _ABOUT.items():
        op.add_column("deliveries", sa.Column(column, sa.String()))
        op.create_foreign_key(f"fk_deliveries_{column}_{table}", "deliveries", table, [column], ["id"])
    once = ["recommendation_id", "channel_id"]
    op.create_unique_constraint("uq_deliveries_recommendation_id_channel_id", "deliveries", once)
    one = "num_nonnulls(alert_id, recommendation_id, run_id, sweep_id) = (event <> 'channel.test')::int"
    op.create_check_constraint(op.f("ck_deliveries_about"), "deliveries", one)


def downgrade() -> None:
    """Channels that hear of no alerts are out of use: they would be sent all of them. Past deliveries name them."""
    op.execute("DELETE FROM deliveries WHERE num_nonnulls(recommendation_id, run_id, sweep_id) > 0")
    op.drop_constraint(op.f("ck_deliveries_about"), "deliveries")
    op.drop_constraint("uq_deliveries_recommendation_id_channel_id", "deliveries")
    for column in _ABOUT:
        op.drop_column("deliveries", column)
    op.alter_column("deliveries", "level", nullable=False)
    op.execute("UPDATE channels SET enabled = false, url = '', secret = '' WHERE NOT hears @> '{alerts}'")
    op.drop_column("channels", "hears")
