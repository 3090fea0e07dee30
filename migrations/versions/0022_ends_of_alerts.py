"""Deliveries tell what of an alert they are about: it may be told once more when it ends.

Revision: 0022
Follows: 0021
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_BEFORE = "uq_deliveries_alert_id_channel_id_level"
_AFTER = "uq_deliveries_alert_id_channel_id_level_event"


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("event", sa.String(), server_default="alert", nullable=False))
    op.add_column("deliveries", sa.Column("reason", sa.String()))
    op.execute("UPDATE deliveries SET event = 'channel.test' WHERE alert_id IS NULL")
    op.drop_constraint(_BEFORE, "deliveries")
    op.create_unique_constraint(_AFTER, "deliveries", ["alert_id", "channel_id", "level", "event"])


def downgrade() -> None:
    op.execute("DELETE FROM deliveries WHERE event NOT IN ('alert', 'channel.test')")
    op.drop_constraint(_AFTER, "deliveries")
    op.create_unique_constraint(_BEFORE, "deliveries", ["alert_id", "channel_id", "level"])
    op.drop_column("deliveries", "reason")
    op.drop_column("deliveries", "event")
