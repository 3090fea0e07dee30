"""Channels of kind `email`.

Revision: 0024
Follows: 0023
"""

from __future__ import annotations

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_KIND = "ck_channels_kind"


def upgrade() -> None:
    op.drop_constraint(op.f(_KIND), "channels", type_="check")
    op.create_check_constraint(op.f(_KIND), "channels", "kind IN ('slack', 'webhook', 'email')")


def downgrade() -> None:
    """Channels of mail are kept as webhooks that are not in use: past deliveries name them."""
    op.execute("UPDATE channels SET kind = 'webhook', enabled = false, url = '' WHERE kind = 'email'")
    op.drop_constraint(op.f(_KIND), "channels", type_="check")
    op.create_check_constraint(op.f(_KIND), "channels", "kind IN ('slack', 'webhook')")
